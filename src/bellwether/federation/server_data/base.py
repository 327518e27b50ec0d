"""What every choice of server data answers."""

from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from bellwether.core.dataset import Dataset
from bellwether.federation.groups import Groups, Indices
from bellwether.federation.partition import Partition


class Pool(NamedTuple):
    """The samples the server has, or draws from."""

    indices: Indices
    drawn: int | None = None
    """How many are drawn from the pool anew in each round; None: the server has them all."""
    quotas: Indices | None = None
    """How many of them of each label; None: as it happens. The pool is then in order of labels."""
    source: Dataset | None = None
    """The data set that the indices count in; None: the one that the clients share."""


class Holdings(NamedTuple):
    """Who has which samples once the clients have shared."""

    labels: Indices | None
    """Of the whole data set; None when it has none."""
    aside: Indices
    """What was set aside for the server."""
    clients: Groups
    left: Indices
    """What nobody holds."""


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
        return np.empty(0, dtype=np.int64), np.arange(count)

    def pool(self, held: Holdings, rng: np.random.Generator) -> Pool:
        """The server's pool, once it is known who holds what."""
