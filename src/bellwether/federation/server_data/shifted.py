"""Samples whose labels are distributed otherwise than the population's."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bellwether.core.errors import InputError
from bellwether.federation.checks import positive
from bellwether.federation.groups import Indices
from bellwether.federation.labels import cosine, draw_by_label, grouped, known
from bellwether.federation.partition import Partition
from bellwether.federation.server_data.base import Holdings, Pool, ServerData
from bellwether.federation.server_data.sample import Sample

TOLERANCE = 0.005
"""How far the cosine may be from the wanted one."""

Population = Callable[[Indices], Indices]
"""The clients' label counts, given the server's."""


@dataclass(frozen=True)
class Shifted(ServerData):
    """Server data whose label counts have a wanted cosine with all clients' (FedCLG, Figure 7).

    The counts are s_k ~ p_k exp(b u_k): each label's log-odds move in a direction u ~ N(0, I)
    drawn from the seed, as far (b) as the cosine asks for; then single samples change their label
    until it is within 0.005. `samples`, `fraction` (1 % when neither is given), `fresh` and
    `disjoint` mean what they mean for `Sample`; fresh draws have the same label counts each round.
    """

    cosine: float
    samples: int | None = None
    fraction: float | None = None
    fresh: bool = False
    disjoint: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "cosine", positive(self.cosine, "the cosine"))
        if self.cosine > 1:
            raise InputError(f"the cosine must be at most 1, got {self.cosine}")
        if self.samples is None and self.fraction is None:
            object.__setattr__(self, "fraction", 0.01)
        for name in ("samples", "fraction"):
            object.__setattr__(self, name, getattr(self._amount, name))

    @property
    def _amount(self) -> Sample:
        return Sample(self.samples, self.fraction, self.fresh, self.disjoint)

    def set_aside(
        self,
        labels: Indices | None,
        count: int,
        partition: Partition,
        clients: int,
        rng: np.random.Generator,
    ) -> tuple[Indices, Indices]:
        aside, available = self._amount.set_aside(labels, count, partition, clients, rng)
        if not len(aside):
            return aside, available
        pools = grouped(known(labels, str(self)), np.arange(count))
        sizes = _sizes(pools)
        counts = _tilted(lambda s: sizes - s, sizes, len(aside), self.cosine, rng)
        counts = _refined(counts, lambda s: sizes - s, sizes, self.cosine)
        aside = draw_by_label(pools, counts, rng)
        return aside, np.setdiff1d(np.arange(count), aside, assume_unique=True)

    def pool(self, held: Holdings, rng: np.random.Generator) -> Pool:
        labels = known(held.labels, str(self))
        population = _sizes(grouped(labels, held.clients.samples))
        if len(held.aside):
            # What the partition left over changes the population a little, and makes up for it.
            counts = _sizes(grouped(labels, held.aside))
            source = np.sort(np.concatenate([held.aside, held.left]))
        else:
            source, size = self._amount.source(held)
            available = _sizes(grouped(labels, source))
            counts = _tilted(lambda _: population, available, size, self.cosine, rng)
        pools = grouped(labels, source)
        counts = _refined(counts, lambda _: population, _sizes(pools), self.cosine)
        reached = cosine(counts, population)
        if abs(reached - self.cosine) > TOLERANCE:
            raise InputError(
                f"{self}: the nearest cosine found for {counts.sum()} of these samples is "
                f"{reached:.4f}; ask for that, for another size or other server data"
            )
        if self.fresh:
            return Pool(np.concatenate(pools), int(counts.sum()), counts)
        return Pool(draw_by_label(pools, counts, rng))


def _tilted(
    population: Population, sizes: Indices, size: int, wanted: float, rng: np.random.Generator
) -> Indices:
    """Whole label counts near p exp(b u), b by bisection, as far as the labels' samples allow."""
    direction = rng.standard_normal(len(sizes))
    base = population(np.zeros_like(sizes)).astype(float)

    def counts(strength: float) -> Indices:
        tilt = strength * direction
        return _rounded(base * np.exp(tilt - tilt.max()), sizes, size)

    low, high = 0.0, 1.0
    while high < 1e3 and cosine(counts(high), population(counts(high))) > wanted:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        reached = cosine(counts(middle), population(counts(middle)))
        low, high = (middle, high) if reached > wanted else (low, middle)
    return counts(high)


def _rounded(weights: npt.NDArray[np.float64], sizes: Indices, size: int) -> Indices:
    """Whole counts in proportion to the weights, none above its size (largest remainders)."""
    counts = np.zeros_like(sizes)
    while (need := size - int(counts.sum())) > 0:
        free = counts < sizes
        # Where only labels of no weight are left, they share what is needed.
        weight = np.where(free, weights, 0.0)
        weight = weight if weight.sum() > 0 else free.astype(float)
        exact = np.minimum(need * weight / weight.sum(), sizes - counts)
        whole = np.floor(exact).astype(np.int64)
        if not whole.any():
            order = np.argsort(-exact, kind="stable")[:need]
            whole[order] = free[order]
        counts += whole
    return counts


def _refined(counts: Indices, population: Population, sizes: Indices, wanted: float) -> Indices:
    """Move one sample at a time between two labels while the cosine comes nearer."""
    steps = np.eye(len(counts), dtype=np.int64)
    best = abs(cosine(counts, population(counts)) - wanted)
    while best > TOLERANCE / 10:
        moves = [
            counts - steps[source] + steps[target]
            for source in np.flatnonzero(counts)
            for target in np.flatnonzero(counts < sizes)
        ]
        errors = [abs(cosine(moved, population(moved)) - wanted) for moved in moves]
        if min(errors, default=best) >= best:
            break
        best = min(errors)
        counts = moves[errors.index(best)]
    return counts


def _sizes(pools: Sequence[Indices]) -> Indices:
    return np.array([len(pool) for pool in pools], dtype=np.int64)
