"""Cohorts of a wanted size: drawn, listed, or in turns."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from bellwether.core import interfaces
from bellwether.core.errors import InputError
from bellwether.core.streams import generator
from bellwether.federation.checks import distinct, is_list, whole
from bellwether.federation.groups import Indices


@dataclass(frozen=True)
class Uniform(interfaces.Participation):
    """`clients` of the population, uniformly without replacement, in random order."""

    clients: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "clients", whole(self.clients, "clients a round", 1))

    def check(self, population: int) -> None:
        _check_enough(self, self.clients, population)

    def cohort(self, population: int, seed: int, round: int, exchange: int) -> Sequence[int]:
        self.check(population)
        rng = generator(seed, "participation", round, exchange)
        return _ids(rng.choice(population, self.clients, replace=False))


@dataclass(frozen=True)
class Incomplete(interfaces.Participation):
    """Some clients never take part; cohorts are uniform among the rest (SAFARI).

    `absent` is how many, drawn once from the seed, or a list of their ids.
    """

    clients: int
    absent: int | Sequence[int]

    def __post_init__(self) -> None:
        object.__setattr__(self, "clients", whole(self.clients, "clients a round", 1))
        if is_list(self.absent):
            ids = distinct(self.absent, "the absent clients")
            object.__setattr__(self, "absent", tuple(sorted(ids)))
        else:
            object.__setattr__(self, "absent", whole(self.absent, "absent clients", 0))

    def check(self, population: int) -> None:
        if not isinstance(self.absent, int) and self.absent and self.absent[-1] >= population:
            raise InputError(
                f"absent client {self.absent[-1]} does not exist; the ids are 0 .. {population - 1}"
            )
        remaining = max(population - self._missing, 0)
        if self.clients > remaining:
            raise InputError(
                f"Incomplete asks for {self.clients} clients a round, but only {remaining} of "
                f"{population} ever take part"
            )

    def cohort(self, population: int, seed: int, round: int, exchange: int) -> Sequence[int]:
        self.check(population)
        missing = _missing(self.absent, population, seed)
        rng = generator(seed, "incomplete participation", round, exchange)
        ranks = rng.choice(population - len(missing), self.clients, replace=False)
        # The client of rank r among those who come has as many absentees before it as there are
        # absentees a_i with a_i - i <= r: no list of the population is needed.
        before = np.searchsorted(missing - np.arange(len(missing)), ranks, side="right")
        return _ids(ranks + before)

    def absentees(self, population: int, seed: int) -> Sequence[int]:
        """The clients that never take part, in ascending order."""
        self.check(population)
        return _ids(_missing(self.absent, population, seed))

    @property
    def _missing(self) -> int:
        return self.absent if isinstance(self.absent, int) else len(self.absent)


@dataclass(frozen=True)
class Fixed(interfaces.Participation):
    """Cohorts as listed: round r takes entry (r - 1) mod length, in every exchange of the round."""

    schedule: Sequence[Sequence[int]]

    def __post_init__(self) -> None:
        if not is_list(self.schedule) or not all(map(is_list, self.schedule)):
            raise InputError(
                "Fixed needs a list of cohorts, each a list of ids, such as Fixed([[0, 1], [2, 3]])"
            )
        cohorts = tuple(
            distinct(ids, f"cohort {number}") for number, ids in enumerate(self.schedule, 1)
        )
        if not cohorts or not all(cohorts):
            raise InputError("Fixed needs at least one cohort, and a client in every cohort")
        object.__setattr__(self, "schedule", cohorts)

    def check(self, population: int) -> None:
        largest = max(map(max, self.schedule))
        if largest >= population:
            raise InputError(
                f"client {largest} of the fixed schedule does not exist; "
                f"the ids are 0 .. {population - 1}"
            )

    def cohort(self, population: int, seed: int, round: int, exchange: int) -> Sequence[int]:
        return self.schedule[(round - 1) % len(self.schedule)]


@dataclass(frozen=True)
class Cyclic(interfaces.Participation):
    """`clients` at a time in turns, in the order of their ids, round after round.

    Round r takes the ids (r - 1) m .. r m - 1 modulo the population, in every exchange.
    """

    clients: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "clients", whole(self.clients, "clients a round", 1))

    def check(self, population: int) -> None:
        _check_enough(self, self.clients, population)

    def cohort(self, population: int, seed: int, round: int, exchange: int) -> Sequence[int]:
        self.check(population)
        first = (round - 1) * self.clients
        return [client % population for client in range(first, first + self.clients)]


def _check_enough(wish: object, clients: int, population: int) -> None:
    if clients > population:
        raise InputError(f"{wish} asks for {clients} clients a round, but there are {population}")


@lru_cache(maxsize=8)
def _missing(absent: int | tuple[int, ...], population: int, seed: int) -> Indices:
    """The absentees' ids in ascending order; remembered because every exchange asks."""
    if isinstance(absent, int):
        return np.sort(generator(seed, "absent").choice(population, absent, replace=False))
    return np.array(absent, dtype=np.int64)


def _ids(clients: Indices) -> list[int]:
    ids: list[int] = clients.tolist()
    return ids
