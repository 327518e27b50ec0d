"""What the papers reason with, measured on the way: gradients that differ, clients that drift.

At the model x that a round starts from, with the round's own server data, cohort and messages:

    gradient_norm        |grad F(x)|, F the mean of all clients' f_i
    dissimilarity        G^2 = mean |grad f_i(x) - grad F(x)|^2            (FSL, Figure 9)
    server_gap           xi^2 = |grad f_0(x) - grad F(x)|^2                (FSL, Figure 9)
    server_cosine        of grad f_0(x) and grad F(x)
    participation_error  |mean over the cohort of grad f_i(x) - grad F(x)|^2
    client_drift         mean over the cohort of |y_i - x|^2
    mean_change          |mean over the cohort of y_i - x|

Means over clients are as the method's: plain, or by samples where it counts clients so.
"""

import copy
import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from bellwether.core import streams
from bellwether.core.algorithm import Sent, side
from bellwether.core.errors import InputError
from bellwether.core.interfaces import Engine, Federation
from bellwether.core.participants import Client, Participant
from bellwether.core.rounds import Progress, Setting
from bellwether.core.sgd import Descent
from bellwether.core.tasks import Exchange, Outcome, Workplace, perform
from bellwether.core.vector import Vector, dot, norm

DIAGNOSIS = -1
"""The exchange in the addresses of the streams used here; those of rounds count from 0."""


@dataclass(frozen=True)
class Schedule:
    """When to measure, and on how many clients."""

    every: int
    """In the first round and in each whose number this divides; 0: never."""
    clients: int | None = None
    """So many, drawn anew each time, stand for all; None: all."""

    def due(self, round: int) -> bool:
        """Whether this round is measured."""
        return self.every > 0 and (round == 1 or round % self.every == 0)

    def check(self, federation: Federation) -> None:
        """Raise `InputError` for a pass over clients that nobody has counted, or for no use."""
        if self.clients is not None and not self.every:
            raise InputError("diagnose_clients needs diagnose_every, such as diagnose_every=50")
        if self.every and self.clients is None and federation.sizes([0]) is None:
            raise InputError(
                f"diagnose_every would load all {federation.population:,} clients of a"
                " lazy federation; measure on a sample of them, such as diagnose_clients=100"
            )

    def drawn(self, population: int, seed: int, round: int) -> Sequence[int]:
        """The clients that stand for all."""
        if self.clients is None or self.clients >= population:
            return range(population)
        rng = streams.generator(seed, "diagnosis", round)
        return sorted(rng.choice(population, self.clients, replace=False, shuffle=False).tolist())


class Moments:
    """The weighted mean of vectors, and their mean square distance from it.

    In one pass, in double precision, without the cancellation of |mean|^2 (West 1979).
    """

    def __init__(self) -> None:
        self.mean: Vector | None = None
        self._weight = 0.0
        self._scatter = 0.0

    def add(self, vector: Vector, weight: float = 1.0) -> None:
        """Take in one vector."""
        vector = vector.double()
        self._weight += weight
        if self.mean is None:
            self.mean = torch.zeros_like(vector)
        away = vector - self.mean
        self.mean.add_(away, alpha=weight / self._weight)
        self._scatter += weight * dot(away, vector - self.mean).item()

    @property
    def spread(self) -> float:
        """mean |v - mean|^2."""
        return self._scatter / self._weight


def of_server(guide: Vector, population: Vector) -> dict[str, float]:
    """How far the server's gradient is from the population's, and whether it points there."""
    guide = guide.double()
    measured = {"server_gap": square(guide - population)}
    lengths = norm(guide).item() * norm(population).item()
    if lengths:  # a zero vector points nowhere
        measured["server_cosine"] = dot(guide, population).item() / lengths
    return measured


def of_travel(changes: Moments) -> dict[str, float]:
    """How far clients went, and how far their mean went."""
    if changes.mean is None:
        return {}
    together = square(changes.mean)
    return {"client_drift": changes.spread + together, "mean_change": together**0.5}


def square(vector: Vector) -> float:
    """|v|^2."""
    return dot(vector, vector).item()


class Overheard:
    """An engine that remembers what was asked of it."""

    def __init__(self, engine: Engine) -> None:
        self.exchanges: list[Exchange] = []
        self.start, self.stop = engine.start, engine.stop
        self._engine = engine

    def run(self, exchange: Exchange) -> Iterator[Outcome]:
        self.exchanges.append(exchange)
        return self._engine.run(exchange)


def diagnose(
    setting: Setting,
    workplace: Workplace,
    before: Progress,
    exchanges: Sequence[Exchange],
    schedule: Schedule,
) -> dict[str, float]:
    """Measure at the model before a round, of whose exchanges the first one counts."""
    round = before.round + 1
    asked = exchanges[0].cohort if exchanges else ()
    sample = set(schedule.drawn(setting.federation.population, setting.seed, round))
    everybody, cohort, times = Moments(), Moments(), Counter(asked)
    for outcome in setting.engine.run(_gradients(setting, before, sorted(sample | set(asked)))):
        weight, gradient = _weight(setting, outcome), outcome.upload.vector
        if outcome.client in sample:
            everybody.add(gradient, weight)
        if outcome.client in times:
            cohort.add(gradient, weight * times[outcome.client])
    population = everybody.mean
    assert population is not None
    measured = {"gradient_norm": norm(population).item(), "dissimilarity": everybody.spread}
    if setting.federation.has_server_data:
        measured |= of_server(_guide(setting, before, round), population)
    if cohort.mean is not None:
        measured["participation_error"] = square(cohort.mean - population)
        measured |= of_travel(_changes(setting, workplace, exchanges[0]))
    return measured


@dataclass(frozen=True)
class Reported:
    """A client's gradient, or its change; None if it never descended."""

    vector: Vector | None


def gradient_at(client: Client, sent: Sent) -> Reported:
    """What every client is asked for."""
    return Reported(client.gradient(sent.model))


def _gradients(setting: Setting, before: Progress, clients: Sequence[int]) -> Exchange:
    """The same question to all of them, through the engine: in workers, where it has any."""
    sgd = side(setting.algorithm, "client")
    none = torch.zeros(0, dtype=torch.int64, device=setting.space.device)
    return Exchange(
        round=before.round + 1,
        exchange=DIAGNOSIS,
        local=gradient_at,
        sent=Sent(before.state.model),
        buffers=before.buffers,
        cohort=tuple(clients),
        chunk=sgd.batch_size if sgd else None,
        shares_server_data=False,
        memory=None,
        memories={},
        statistics=dict.fromkeys(range(len(clients)), none) if len(before.buffers) else {},
    )


def _guide(setting: Setting, before: Progress, round: int) -> Vector:
    """grad f_0(x) on the server's data of the round."""
    sgd, space = side(setting.algorithm, "server"), setting.space
    chunk = sgd.batch_size if sgd else None
    address = (round, DIAGNOSIS, streams.SERVER)
    server = Participant(space, before.buffers, chunk, setting.seed, *address)
    server.data = space.admit(setting.federation.server(round))
    return server.gradient(before.state.model)


@dataclass(frozen=True)
class _Travel:
    """A method's `local`, of which only its client's way is wanted."""

    local: Callable[[Any, Any], Any]

    def __call__(self, client: Any, sent: Any) -> Reported:
        descents: list[Descent] = []
        descend = client.descend

        def noted(*arguments: Any, **named: Any) -> Descent:
            descents.append(descend(*arguments, **named))
            return descents[-1]

        client.descend = noted
        self.local(client, sent)
        return Reported(descents[-1].end - descents[0].start if descents else None)


def _changes(setting: Setting, workplace: Workplace, exchange: Exchange) -> Moments:
    """y_i - x: the exchange once more, from the same streams, so the round's own y_i."""
    changes = Moments()
    for position, client in enumerate(exchange.cohort):
        kept = {c: copy.deepcopy(exchange.memories[c]) for c in (client,) if c in exchange.memories}
        again = dataclasses.replace(
            exchange, local=_Travel(exchange.local), memories=kept, compress_up=None
        )
        outcome = perform(setting.space, workplace, again, position)
        if outcome.upload.vector is not None:
            changes.add(outcome.upload.vector, _weight(setting, outcome))
    return changes


def _weight(setting: Setting, outcome: Outcome) -> float:
    return outcome.samples if setting.by_samples else 1.0
