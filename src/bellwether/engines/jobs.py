"""What of one exchange is still to be done, in which order, and what waits to be read."""

import heapq
from collections import deque
from collections.abc import Sequence
from typing import Any

Group = tuple[int, ...]
"""Positions in the cohort that are computed together; today, one."""


class Job:
    """The groups of one exchange.

    Outcomes are read in cohort order, so only groups that begin less than `window` positions
    after the next one to be read are handed out: that bounds the outcomes that wait, and the
    next one is always among those handed out. Within the window the longest go first.
    """

    def __init__(self, groups: Sequence[Group], costs: Sequence[float], window: int) -> None:
        self.next = 0
        """The position to be read next."""
        self.under_way = 0
        """How many groups are handed out."""
        self._window = window
        self._costs = costs
        self._results: dict[int, Any] = {}
        self._coming = deque(sorted(groups, key=min))
        self._eligible: list[tuple[float, Group]] = []
        self._again: deque[Group] = deque()
        self._left = 0.0
        self._advance()

    @property
    def idle(self) -> bool:
        """Whether no group is handed out nor waits for it."""
        return not (self.under_way or self._coming or self._eligible or self._again)

    @property
    def unread(self) -> bool:
        """Whether there are outcomes that nobody has read."""
        return self.next < len(self._costs)

    @property
    def held_back(self) -> bool:
        """Whether groups wait for the window to move on."""
        return bool(self._coming)

    @property
    def ready(self) -> bool:
        """Whether the next outcome is there."""
        return self.next in self._results

    def cost(self, group: Group) -> float:
        """How much work a group is, in the unit of the costs given."""
        return sum(self._costs[position] for position in group)

    def take(self, workers: int, most: int, least: float = 0.0) -> list[Group]:
        """Groups for a worker to do at a stretch; none if none may begin now.

        A share of 1 / (2 workers) of the work that is left: big bundles first, so that workers
        are busy while nobody looks after them, then ever smaller ones, so that all end together.
        At most `most` positions, unless one group has more; bundles below a cost of `least`
        are not worth the way.
        """
        if self._again:
            taken = [self._again.popleft()]
        else:
            taken = self._share(max(self._left / (2 * workers), least), most)
        self.under_way += len(taken)
        return taken

    def put_back(self, group: Group) -> None:
        """A group that was handed out is to be done again: next, and alone."""
        self.under_way -= 1
        self._again.append(group)

    def finish(self, group: Group, results: Sequence[Any]) -> None:
        """What came of a group that was handed out."""
        self.under_way -= 1
        self._results.update(zip(group, results, strict=True))

    def read(self) -> Any:
        """The next outcome."""
        result = self._results.pop(self.next)
        self.next += 1
        self._advance()
        return result

    def cancel(self) -> None:
        """Hand out no more, keep nothing."""
        self.next = len(self._costs)
        self._results.clear()
        self._coming.clear()
        self._eligible.clear()
        self._again.clear()

    def _share(self, target: float, most: int) -> list[Group]:
        taken: list[Group] = []
        count, cost = 0, 0.0
        while self._eligible:
            negative, group = self._eligible[0]
            if taken and (count + len(group) > most or cost - negative > target):
                break
            heapq.heappop(self._eligible)
            taken.append(group)
            count, cost = count + len(group), cost - negative
        self._left -= cost
        return taken

    def _advance(self) -> None:
        while self._coming and min(self._coming[0]) < self.next + self._window:
            group = self._coming.popleft()
            cost = self.cost(group)
            heapq.heappush(self._eligible, (-cost, group))
            self._left += cost
