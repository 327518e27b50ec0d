"""What every partition answers, and what several of them check."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from bellwether.core.errors import InputError
from bellwether.federation.checks import whole
from bellwether.federation.groups import Indices


class Shares(NamedTuple):
    """What a partition answers."""

    clients: Sequence[Indices]
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


def checked_samples(samples: int | None) -> int | None:
    """The wish for so many samples a client; None: as many as fit."""
    return None if samples is None else whole(samples, "samples per client", 1)


def equal_size(samples: int | None, available: int, clients: int) -> int:
    """How many samples each client gets where all get the same."""
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
