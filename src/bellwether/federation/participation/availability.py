"""Clients that come and go by chance: independently in each round, or by a Markov chain."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from bellwether.core import interfaces
from bellwether.core.errors import InputError
from bellwether.core.streams import generator
from bellwether.federation.checks import is_list, probability, whole
from bellwether.federation.groups import Indices

Chance = float | Sequence[float]
"""One probability for all clients, or a list with each client's own."""


@dataclass(frozen=True)
class Bernoulli(interfaces.Participation):
    """Each client is there in a round with its own probability, independently.

    All who are there come, in random order; with `clients`, at most so many of them, uniformly.
    Now and then nobody is there: such a round changes nothing at the clients.
    """

    probability: Chance
    clients: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "probability", _chance(self.probability, "the probability"))
        object.__setattr__(self, "clients", _most(self.clients))

    def check(self, population: int) -> None:
        _check_length(self.probability, "probabilities", population)

    def cohort(self, population: int, seed: int, round: int, exchange: int) -> Sequence[int]:
        self.check(population)
        rng = generator(seed, "availability", round)
        # At the price of those who come, not of all: so many as the likeliest chance brings, and
        # of these everyone with its own chance's share of that one.
        chances = self._chances
        likeliest = float(chances.max())
        count = rng.binomial(population, likeliest)
        there = rng.choice(population, count, replace=False)
        if chances.ndim:
            there = there[rng.random(count) * likeliest < chances[there]]
        return _some(there, self.clients, generator(seed, "those there", round, exchange))

    @cached_property
    def _chances(self) -> npt.NDArray[np.float64]:
        return np.asarray(self.probability)


@dataclass(frozen=True)
class Markov(interfaces.Participation):
    """Each client comes and goes: away, it is back in the next round with probability `arrive`;
    there, it is away in the next with probability `leave`.

    Round 1 is drawn from the chain's stationary law, arrive / (arrive + leave), which is also the
    share of rounds in which a client is there. Stays last 1 / leave rounds on average. Who comes
    of those who are there is as with `Bernoulli`. Every client is followed: a millisecond a round
    for 100,000 of them.
    """

    arrive: Chance
    leave: Chance
    clients: int | None = None

    def __post_init__(self) -> None:
        for name in ("arrive", "leave"):
            object.__setattr__(self, name, _chance(getattr(self, name), name))
        if np.any(np.asarray(self.arrive) + np.asarray(self.leave) == 0):
            raise InputError("Markov: arrive and leave must not both be 0; nobody would ever move")
        object.__setattr__(self, "clients", _most(self.clients))

    def check(self, population: int) -> None:
        _check_length(self.arrive, "probabilities to arrive", population)
        _check_length(self.leave, "probabilities to leave", population)

    def cohort(self, population: int, seed: int, round: int, exchange: int) -> Sequence[int]:
        self.check(population)
        there = np.flatnonzero(_walk(self, population, seed).at(round))
        return _some(there, self.clients, generator(seed, "those who stay", round, exchange))


class _Walk:
    """Who is there, followed from round to round; the same whatever was asked before."""

    _round: int
    _there: npt.NDArray[np.bool_]

    def __init__(self, chain: Markov, population: int, seed: int) -> None:
        self._arrive, self._leave = np.asarray(chain.arrive), np.asarray(chain.leave)
        self._population, self._seed = population, seed
        self._begin()

    def at(self, round: int) -> npt.NDArray[np.bool_]:
        if round < self._round:
            self._begin()
        while self._round < round:
            self._round += 1
            moves = np.where(self._there, self._leave, self._arrive)
            self._there = self._there ^ (self._draws() < moves)
        return self._there

    def _begin(self) -> None:
        self._round = 1
        self._there = self._draws() < self._arrive / (self._arrive + self._leave)

    def _draws(self) -> npt.NDArray[np.float64]:
        return generator(self._seed, "stays", self._round).random(self._population)


@lru_cache(maxsize=4)
def _walk(chain: Markov, population: int, seed: int) -> _Walk:
    """Remembered, because the next round follows from this one."""
    return _Walk(chain, population, seed)


def _some(there: Indices, most: int | None, rng: np.random.Generator) -> Sequence[int]:
    size = len(there) if most is None else min(most, len(there))
    cohort: list[int] = rng.choice(there, size, replace=False).tolist() if size else []
    return cohort


def _chance(value: Chance, name: str) -> Chance:
    if is_list(value):
        return tuple(probability(each, name) for each in value)  # type: ignore[union-attr]
    return probability(value, name)


def _most(clients: int | None) -> int | None:
    return None if clients is None else whole(clients, "clients a round", 1)


def _check_length(chance: Chance, name: str, population: int) -> None:
    if isinstance(chance, tuple) and len(chance) != population:
        raise InputError(
            f"{len(chance)} {name} were given for {population} clients; give one each, or one "
            "number for all"
        )
