"""Where a run's time goes, by parts; for those who ask for it."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeVar

GRADIENTS = "clients' gradients"
STEPS = "clients' steps"
LOADING = "loading data"
COPYING = "copying vectors"
WAITING = "waiting for workers"
SERVER = "server"
METHOD = "method"
EVALUATION = "evaluation"
DIAGNOSTICS = "diagnostics"
DISK = "disk"
OTHER = "other"
PARTS = {
    GRADIENTS: "forward and backward passes",
    STEPS: "mini-batches, steps, corrections",
    LOADING: "clients' samples, until they are here",
    COPYING: "models in and out, and messages",
    WAITING: "until one of them answers",
    SERVER: "its gradients and steps",
    METHOD: "its arithmetic, checks of replies",
    EVALUATION: "on the test samples",
    DIAGNOSTICS: "what diagnose_every asks for",
    DISK: "metrics and checkpoints",
    OTHER: "what is left of the rounds",
}
"""What each part is, in the order to show."""

P = ParamSpec("P")
T = TypeVar("T")


class Profile:
    """Nanoseconds by part; every moment of a round counts for the innermost part that is open.

    So the parts add up to the rounds. Nothing is slower where nobody made a profile: functions
    are wrapped one by one, on the objects of one run.
    """

    def __init__(self, clock: Callable[[], int] = time.perf_counter_ns) -> None:
        self.nanoseconds: Counter[str] = Counter()
        self.rounds = 0
        """Those that were begun."""
        self.in_workers: Counter[str] = Counter()
        """Nanoseconds that all workers together were at work, as they say."""
        self._clock = clock
        self._open: list[str] = []
        self._sealed = 0
        """How many parts deep in one that is not to be divided; 0 outside."""
        self._since = 0

    def add_worker(self, busy: int, spent: dict[str, int]) -> None:
        """What a worker says of one answer: how long it took, and the parts without messages."""
        if not self._sealed:
            self.in_workers.update(spent)
            self.in_workers[COPYING] += busy - sum(spent.values())

    def taken(self) -> dict[str, int]:
        """The nanoseconds by part since the last time."""
        taken, self.nanoseconds = dict(self.nanoseconds), Counter()
        return taken

    @contextmanager
    def round(self) -> Iterator[None]:
        """All that belongs to a round; what no other part takes is OTHER."""
        self.rounds += 1
        self._enter(OTHER, whole=False)
        try:
            yield
        finally:
            self._leave()

    def wrap(self, part: str, function: Callable[P, T], whole: bool = False) -> Callable[P, T]:
        """The function, timed in rounds; `whole`: with what is in it, which then counts for it."""

        def timed(*arguments: P.args, **named: P.kwargs) -> T:
            if not self._open:
                return function(*arguments, **named)
            self._enter(part, whole)
            try:
                return function(*arguments, **named)
            finally:
                self._leave()

        return timed

    def each(self, part: str, items: Iterator[T]) -> Iterator[T]:
        """The items, timed while they are made."""
        following = self.wrap(part, lambda: next(items, _END))
        while (item := following()) is not _END:
            yield item

    def attend(self, thing: Any, whole: bool = False, **parts: str) -> None:
        """Time some methods of this one object; it must be the run's own."""
        for name, part in parts.items():
            object.__setattr__(thing, name, self.wrap(part, getattr(thing, name), whole))

    def _enter(self, part: str, whole: bool) -> None:
        if self._sealed:
            self._sealed += 1
            return
        self._charge()
        self._open.append(part)
        self._sealed = int(whole)

    def _leave(self) -> None:
        if self._sealed > 1:
            self._sealed -= 1
            return
        self._sealed = 0
        self._charge()
        self._open.pop()

    def _charge(self) -> None:
        now = self._clock()
        if self._open:
            self.nanoseconds[self._open[-1]] += now - self._since
        self._since = now


_END: Any = object()
