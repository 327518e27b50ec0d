"""Partitions: how the clients share the samples of one data set."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from bellwether.core.errors import InputError
from bellwether.federation.checks import positive, whole
from bellwether.federation.labels import Indices, deal, label_counts, label_pools


class Shares(NamedTuple):
    """What a partition answers."""

    clients: list[Indices]
    """Each client's samples in ascending order; no sample comes twice."""
    notes: tuple[str, ...] = ()
    """What a reader of the results should know, such as fallbacks."""


@runtime_checkable
class Partition(Protocol):
    """A way to share samples. `labels` are those of the whole data set, None when it has none;
    `available` are the indices that may be given away."""

    def total(self, labels: Indices | None, available: Indices, clients: int) -> int:
        """How many samples the clients will hold together; 0 when it cannot be done."""

    def split(
        self, labels: Indices | None, available: Indices, clients: int, rng: np.random.Generator
    ) -> Shares:
        """Share the available samples."""


@dataclass(frozen=True)
class IID(Partition):
    """Equal shares drawn uniformly without replacement; `samples` each (None: all that fit)."""

    samples: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "samples", _checked_samples(self.samples))

    def total(self, labels: Indices | None, available: Indices, clients: int) -> int:
        return clients * (self.samples or len(available) // clients)

    def split(
        self,
        labels: Indices | None,
        available: Indices,
        clients: int,
        rng: np.random.Generator,
    ) -> Shares:
        size = _equal_size(self.samples, len(available), clients)
        drawn = rng.permutation(available)[: clients * size].reshape(clients, size)
        return Shares(list(np.sort(drawn, axis=1)))


@dataclass(frozen=True)
class Dirichlet(Partition):
    """Equal sizes; each client's label proportions p ~ Dirichlet(alpha * 1) (FedCLG).

    Filled without replacement, client after client: counts ~ Multinomial(samples, p), clipped at
    what a label still has; the shortage is drawn again among p's remaining labels. A client whose
    p has no such label left takes the rest uniformly from what is there, and a note counts it.
    """

    alpha: float
    samples: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", positive(self.alpha, "Dirichlet's alpha"))
        object.__setattr__(self, "samples", _checked_samples(self.samples))

    def total(self, labels: Indices | None, available: Indices, clients: int) -> int:
        label_counts(labels, available, str(self))
        return clients * (self.samples or len(available) // clients)

    def split(
        self, labels: Indices | None, available: Indices, clients: int, rng: np.random.Generator
    ) -> Shares:
        size = _equal_size(self.samples, len(available), clients)
        pools = label_pools(labels, available, rng, str(self))
        left = np.array([len(pool) for pool in pools])
        # Outside these bounds p is one label or uniform to the last bit, and its sums overflow.
        alpha = min(max(self.alpha, 1e-300), 1e300)
        counts = np.empty((clients, len(left)), dtype=np.int64)
        exhausted = 0
        for client, proportions in enumerate(rng.dirichlet(np.full(len(left), alpha), clients)):
            counts[client], ran_out = _fill(proportions, left, size, rng)
            left -= counts[client]
            exhausted += ran_out
        note = (
            f"{self}: {exhausted} of {clients} clients found none of their labels left "
            "and took the rest from what was there"
        )
        return Shares(deal(pools, counts), (note,) if exhausted else ())


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
        object.__setattr__(self, "samples", _checked_samples(self.samples))
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


def _checked_samples(samples: int | None) -> int | None:
    return None if samples is None else whole(samples, "samples per client", 1)


def _equal_size(samples: int | None, available: int, clients: int) -> int:
    largest = available // clients
    if largest == 0:
        raise InputError(
            f"{clients} clients cannot share {available} samples; ask for fewer clients"
        )
    if samples is not None and samples > largest:
        raise InputError(
            f"{clients} clients with {samples} samples each need {clients * samples}, but there "
            f"are {available} to share; ask for at most {largest} each"
        )
    return samples or largest


def _fill(
    proportions: npt.NDArray[np.float64], left: Indices, size: int, rng: np.random.Generator
) -> tuple[Indices, bool]:
    """Counts by label for one client, and whether its own labels ran out.

    Every pass fills the client or empties a label, so there are at most L + 1 passes.
    """
    taken = np.zeros_like(left)
    while (need := size - int(taken.sum())) > 0:
        usable = np.flatnonzero((left > taken) & (proportions > 0))
        if not len(usable):
            return taken + rng.multivariate_hypergeometric(left - taken, need), True
        p = proportions[usable]
        drawn = rng.multinomial(need, p / p.sum())
        taken[usable] += np.minimum(drawn, (left - taken)[usable])
    return taken, False


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
