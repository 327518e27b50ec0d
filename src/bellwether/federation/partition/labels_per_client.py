"""A fixed number of labels a client."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bellwether.core.errors import InputError
from bellwether.federation.checks import whole
from bellwether.federation.groups import Indices
from bellwether.federation.labels import deal, label_counts, label_pools
from bellwether.federation.partition.base import Partition, Shares, checked_samples


@dataclass(frozen=True)
class LabelsPerClient(Partition):
    """Exactly `labels` distinct labels a client (FSL's C, SAFARI's p), equal sizes.

    Labels are dealt evenly (each is used floor or ceil of clients * labels / L times, the larger
    labels first), and so are a client's samples over its labels; `samples=None` is the largest
    size that allows it.
    """

    labels: int
    samples: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "labels", whole(self.labels, "labels per client", 1))
        object.__setattr__(self, "samples", checked_samples(self.samples))
        if self.samples is not None and self.samples < self.labels:
            raise InputError(
                f"{self.samples} samples cannot have {self.labels} labels; "
                f"ask for at least {self.labels} samples"
            )

    def total(self, labels: Indices | None, available: Indices, clients: int) -> int:
        held = label_counts(labels, available, str(self))
        if self.samples is not None or self.labels > len(held):
            return clients * (self.samples or 0)
        uses = self._uses(held, clients, np.zeros(len(held)))
        return clients * self._largest(held, uses, clients)

    def split(
        self, labels: Indices | None, available: Indices, clients: int, rng: np.random.Generator
    ) -> Shares:
        pools = label_pools(labels, available, rng, str(self))
        held = np.array([len(pool) for pool in pools])
        if self.labels > len(held):
            raise InputError(
                f"{self} asks for more labels than the {len(held)} there are to share; "
                f"ask for at most {len(held)}"
            )
        uses = self._uses(held, clients, rng.random(len(held)))
        largest = self._largest(held, uses, clients)
        size = self.samples or largest
        if size > largest or not largest:
            raise InputError(
                f"{self} cannot serve {clients} clients: the largest feasible size is {largest} "
                f"samples a client; ask for {'less' if largest else 'fewer clients or labels'}"
            )
        each, larger = divmod(size, self.labels)
        # A client gets each + 1 samples of `larger` labels and `each` of its others. How often a
        # label is the former (cards[0]) or the latter (cards[1]) is drawn among what it can give.
        spare = np.minimum(uses, held - uses * each)
        more = rng.multivariate_hypergeometric(spare, clients * larger)
        cards = np.stack([more, uses - more])
        counts = np.zeros((clients, len(held)), dtype=np.int64)
        for client in range(clients):
            order = np.lexsort((rng.random(len(held)), -cards.sum(axis=0)))
            hand = _hand(order.tolist(), cards, (larger, self.labels - larger))
            for kind, chosen in enumerate(hand):
                counts[client, chosen] = each + 1 - kind
                cards[kind, chosen] -= 1
        return Shares(deal(pools, counts))

    def _uses(self, held: Indices, clients: int, ties: npt.NDArray[np.float64]) -> Indices:
        """How many clients use each label."""
        each, extra = divmod(clients * self.labels, len(held))
        uses = np.full(len(held), each, dtype=np.int64)
        uses[np.lexsort((ties, -held))[:extra]] += 1
        return uses

    def _largest(self, held: Indices, uses: Indices, clients: int) -> int:
        """The largest feasible size; that the counts decide it is De Werra's theorem (`_hand`)."""
        used = uses > 0
        each = int((held[used] // uses[used]).min())
        spare = int(np.minimum(uses, held - uses * each).sum())
        return self.labels * each + min(self.labels - 1, spare // clients) if each else 0


def _hand(
    order: Sequence[int], cards: Indices, room: tuple[int, int]
) -> tuple[list[int], list[int]]:
    """The next client's cards: room[kind] of each kind, no label twice, first labels first.

    A hand that takes every label with as many cards as there are clients waiting leaves a deal
    that can be finished (De Werra 1971: a bipartite multigraph has an equitable edge colouring
    with any number of colours; the labels and the two kinds are the vertices, the clients the
    colours). Such labels have the most cards, so they come first in the order, and placing labels
    in an order with augmentation never gives one up.
    """
    hand: tuple[list[int], list[int]] = ([], [])
    for label in order:
        if len(hand[0]) + len(hand[1]) == sum(room):
            break
        for kind, other in ((0, 1), (1, 0)):
            if not cards[kind, label]:
                continue
            if len(hand[kind]) < room[kind]:
                hand[kind].append(label)
                break
            movable = next((held for held in hand[kind] if cards[other, held]), None)
            if movable is not None and len(hand[other]) < room[other]:
                hand[kind][hand[kind].index(movable)] = label
                hand[other].append(movable)
                break
    return hand
