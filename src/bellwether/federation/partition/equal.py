"""Shares of equal size: IID, and each client's labels by its own Dirichlet draw."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bellwether.federation.checks import positive
from bellwether.federation.groups import Groups, Indices
from bellwether.federation.labels import deal, label_counts, label_pools
from bellwether.federation.partition.base import Partition, Shares, checked_samples, equal_size


@dataclass(frozen=True)
class IID(Partition):
    """Equal shares drawn uniformly without replacement; `samples` each (None: all that fit)."""

    samples: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "samples", checked_samples(self.samples))

    def total(self, labels: Indices | None, available: Indices, clients: int) -> int:
        return clients * (self.samples or len(available) // clients)

    def split(
        self,
        labels: Indices | None,
        available: Indices,
        clients: int,
        rng: np.random.Generator,
    ) -> Shares:
        size = equal_size(self.samples, len(available), clients)
        drawn = rng.permutation(available)[: clients * size].reshape(clients, size)
        return Shares(Groups(np.sort(drawn, axis=1).ravel(), np.full(clients, size)))


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
        object.__setattr__(self, "samples", checked_samples(self.samples))

    def total(self, labels: Indices | None, available: Indices, clients: int) -> int:
        label_counts(labels, available, str(self))
        return clients * (self.samples or len(available) // clients)

    def split(
        self, labels: Indices | None, available: Indices, clients: int, rng: np.random.Generator
    ) -> Shares:
        size = equal_size(self.samples, len(available), clients)
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
