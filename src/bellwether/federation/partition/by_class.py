"""Shares of unequal size: each class is divided over the clients by a Dirichlet draw."""

from dataclasses import dataclass

import numpy as np

from bellwether.core.errors import InputError
from bellwether.federation.checks import positive, whole
from bellwether.federation.groups import Indices
from bellwether.federation.labels import deal, label_counts, label_pools
from bellwether.federation.partition.base import Partition, Shares


@dataclass(frozen=True)
class DirichletByClass(Partition):
    """Unequal sizes; each class's shares over the clients p ~ Dirichlet(alpha * 1).

    The common form (Yurochkin et al. 2019; Li et al. 2022, NIID-Bench): every available sample is
    given away, class k by counts ~ Multinomial(n_k, p_k). Where others draw again until every
    client holds enough, a client below `at_least` takes samples from those who hold most, one
    after the other, and a note counts such clients: so it always ends, and with one draw.
    """

    alpha: float
    at_least: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", positive(self.alpha, "DirichletByClass's alpha"))
        object.__setattr__(self, "at_least", whole(self.at_least, "at_least", 1))

    def total(self, labels: Indices | None, available: Indices, clients: int) -> int:
        label_counts(labels, available, str(self))
        return len(available) if len(available) >= clients * self.at_least else 0

    def split(
        self, labels: Indices | None, available: Indices, clients: int, rng: np.random.Generator
    ) -> Shares:
        pools = label_pools(labels, available, rng, str(self))
        if len(available) < clients * self.at_least:
            raise InputError(
                f"{clients} clients with at least {self.at_least} samples each need "
                f"{clients * self.at_least}, but there are {len(available)} to share; "
                "ask for fewer clients"
            )
        # Outside these bounds p is one client or uniform to the last bit, and its sums overflow.
        alpha = np.full(clients, min(max(self.alpha, 1e-300), 1e300))
        counts = np.stack(
            [rng.multinomial(len(pool), rng.dirichlet(alpha)) for pool in pools], axis=1
        ).astype(np.int64)
        sizes = counts.sum(axis=1)
        poor = np.flatnonzero(sizes < self.at_least)
        for client in np.repeat(poor, self.at_least - sizes[poor]):
            rich = sizes.argmax()
            label = counts[rich].argmax()
            counts[[rich, client], label] += (-1, 1)
            sizes[[rich, client]] += (-1, 1)
        note = (
            f"{self}: {len(poor)} of {clients} clients drew fewer than {self.at_least} samples "
            "and took the rest from those who hold most"
        )
        return Shares(deal(pools, counts), (note,) if len(poor) else ())
