"""Samples of the population itself."""

from bisect import bisect_left
from dataclasses import dataclass

import numpy as np

from bellwether.core.errors import InputError
from bellwether.federation.checks import positive, whole
from bellwether.federation.groups import Indices
from bellwether.federation.labels import draw
from bellwether.federation.partition import Partition
from bellwether.federation.server_data.base import Holdings, Pool, ServerData


@dataclass(frozen=True)
class Sample(ServerData):
    """IID server data: `samples` of them, or a `fraction` of all clients' samples (FedCLG's m_s).

    disjoint: taken from what no client holds. A set for all rounds is set aside before the
    partition, so that its labels are those of the whole data set; one drawn anew in each round
    (`fresh`) comes from what the partition left.
    Not disjoint: drawn from the clients' samples together, so that the server's gradient is an
    unbiased estimate of the clients' (FedCLG, Assumption 2).

    A fraction of what clients hold, who share what the server leaves, is the fixed point
    s = round(fraction * total(all but s)), at least 1.
    """

    samples: int | None = None
    fraction: float | None = None
    fresh: bool = False
    disjoint: bool = True

    def __post_init__(self) -> None:
        if (self.samples is None) == (self.fraction is None):
            raise InputError("server data: give either samples=... or fraction=...")
        if self.samples is not None:
            object.__setattr__(self, "samples", whole(self.samples, "the server's samples", 1))
        if self.fraction is not None:
            fraction = positive(self.fraction, "the server's fraction")
            object.__setattr__(self, "fraction", fraction)

    def set_aside(
        self,
        labels: Indices | None,
        count: int,
        partition: Partition,
        clients: int,
        rng: np.random.Generator,
    ) -> tuple[Indices, Indices]:
        if self.fresh or not self.disjoint:
            return super().set_aside(labels, count, partition, clients, rng)
        order = rng.permutation(count)

        def wanted(aside: int) -> int:
            return self._size(partition.total(labels, order[aside:], clients))

        # What is wanted never grows when more is set aside, so this is the fixed point. When
        # clients' sizes jump over it (they are whole numbers), the few samples between what is
        # wanted and what had to be set aside belong to nobody, and the fraction still holds.
        aside = bisect_left(range(count), True, key=lambda aside: wanted(aside) <= aside)
        if aside == count:
            raise InputError(
                f"the server's {wanted(0)} samples leave none of {count} to the clients; "
                "ask for less server data"
            )
        return np.sort(order[: wanted(aside)]), np.sort(order[aside:])

    def pool(self, held: Holdings, rng: np.random.Generator) -> Pool:
        if self.disjoint and not self.fresh:
            return Pool(held.aside)
        source, size = self.source(held)
        return Pool(source, size) if self.fresh else Pool(draw(source, size, rng))

    def source(self, held: Holdings) -> tuple[Indices, int]:
        """What the server's samples are drawn from, and how many."""
        size = self._size(len(held.clients.samples))
        if self.disjoint and len(held.left) <= size:
            raise InputError(
                f"fresh server data of {size} samples a round need more than the {len(held.left)} "
                "that no client holds; give the partition samples=..., or use disjoint=False "
                "(--overlap)"
            )
        source = held.left if self.disjoint else np.sort(held.clients.samples)
        if len(source) < size:
            raise InputError(
                f"{size} samples of server data are more than the {len(source)} that the clients "
                "hold; ask for less"
            )
        return source, size

    def _size(self, held: int) -> int:
        """How many samples, when the clients hold so many together."""
        if self.samples is not None:
            return self.samples
        return max(1, round((self.fraction or 0.0) * held))
