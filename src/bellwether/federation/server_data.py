"""Server data: which samples the server owns."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from bellwether.core.errors import InputError
from bellwether.federation.checks import positive, whole
from bellwether.federation.labels import Indices
from bellwether.federation.partition import Partition


class Pool(NamedTuple):
    """The samples the server has, or draws from."""

    indices: Indices
    drawn: int | None = None
    """How many are drawn from the pool anew in each round; None: the server has them all."""


@runtime_checkable
class ServerData(Protocol):
    """A way to choose the server's samples: some before the clients share the rest, some after."""

    def set_aside(
        self,
        labels: Indices | None,
        count: int,
        partition: Partition,
        clients: int,
        rng: np.random.Generator,
    ) -> tuple[Indices, Indices]:
        """What the server takes first of 0 .. count-1, and what it leaves to the clients."""

    def pool(
        self, aside: Indices, held: Sequence[Indices], left: Indices, rng: np.random.Generator
    ) -> Pool:
        """The server's pool, once each client's samples and what nobody holds are known."""


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
            return np.empty(0, dtype=np.int64), np.arange(count)
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

    def pool(
        self, aside: Indices, held: Sequence[Indices], left: Indices, rng: np.random.Generator
    ) -> Pool:
        if self.disjoint and not self.fresh:
            return Pool(aside)
        size = self._size(sum(map(len, held)))
        if self.disjoint and len(left) <= size:
            raise InputError(
                f"fresh server data of {size} samples a round need more than the {len(left)} that "
                "no client holds; give the partition samples=..., or use disjoint=False"
            )
        source = left if self.disjoint else np.sort(np.concatenate(held))
        if len(source) < size:
            raise InputError(
                f"{size} samples of server data are more than the {len(source)} that the clients "
                "hold; ask for less"
            )
        return Pool(source, size) if self.fresh else Pool(draw(source, size, rng))

    def _size(self, held: int) -> int:
        """How many samples, when the clients hold so many together."""
        if self.samples is not None:
            return self.samples
        return max(1, round((self.fraction or 0.0) * held))


def draw(source: Indices, size: int, rng: np.random.Generator) -> Indices:
    """Uniformly without replacement, in ascending order."""
    return np.sort(rng.choice(source, size, replace=False, shuffle=False))
