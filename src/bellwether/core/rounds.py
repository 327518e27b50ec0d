"""The round: draws the cohort, opens the door to the clients, counts, records."""

import cmath
import dataclasses
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor

from bellwether.core import compression, streams, wire
from bellwether.core.algorithm import Algorithm, Replies, Reply, State, check_cohort, side
from bellwether.core.errors import Diverged, InputError
from bellwether.core.interfaces import Compressor, Engine, Federation, Participation
from bellwether.core.participants import Client, Server
from bellwether.core.records import RoundRecord
from bellwether.core.sgd import SGD
from bellwether.core.snapshot import Snapshot
from bellwether.core.store import Store
from bellwether.core.tasks import Exchange, Outcome, vectors
from bellwether.core.vector import Vector
from bellwether.core.workspace import Workspace

Statistics = Literal["average", "server", "local"]
"""What becomes of the batch-norm statistics that clients end with: their mean is the model's, they
are dropped, or each client keeps its own. The server's descents change the model's in any case."""


@dataclass(frozen=True)
class Setting:
    """What stays the same in every round of a training run."""

    algorithm: Algorithm[Any]
    federation: Federation
    participation: Participation
    engine: Engine
    space: Workspace
    """Where the server computes."""
    seed: int
    stop_on_divergence: bool = True
    compress_up: Compressor | None = None
    compress_down: Compressor | None = None
    statistics: Statistics = "average"
    store: Store = field(default_factory=Store)
    """Where what clients keep lies."""

    @property
    def by_samples(self) -> bool:
        """Whether the method weighs clients by their samples; then their statistics count so."""
        return getattr(self.algorithm, "weights", "uniform") == "samples"

    def server(self, round: int, buffers: Vector) -> Server:
        """The server at the beginning of a round; round 0 is before the first."""
        chunk = _batch_size(side(self.algorithm, "server"))
        return Server(self.space, buffers, chunk, self.seed, round, self.federation)


@dataclass(frozen=True)
class Progress:
    """Everything that a run carries from round to round: enough to go on from here."""

    round: int
    state: State
    buffers: Vector
    memories: Snapshot[Any]
    residuals: Snapshot[compression.Kept]
    """What stays with each client: what compression left out of its replies, its statistics."""
    held: compression.Kept = field(default_factory=dict)
    """What every client holds of the server's messages, where these travel as differences."""


def begin(setting: Setting) -> Progress:
    """Before the first round; the model is the one that the workspace holds."""
    buffers = setting.space.read_buffers()
    server = setting.server(0, buffers)
    state = setting.algorithm.start(setting.space.parameters.clone(), server)
    store = setting.store
    return Progress(0, state, server.buffers, Snapshot(store), Snapshot(store))


def play(setting: Setting, before: Progress) -> tuple[Progress, RoundRecord]:
    """One round."""
    started = time.perf_counter()
    number = before.round + 1
    server = setting.server(number, before.buffers)
    clients = _Cohorts(setting, before, server)
    state = setting.algorithm.round(before.state, clients, server)
    clients.finish()
    _check_state(setting, state)
    if setting.stop_on_divergence and not _finite(state.model):
        raise Diverged(
            f"round {number}, server: the model is not finite although every reply was;"
            f" {_hint(setting.algorithm, 'server', 'client')}"
        )
    record = RoundRecord(
        round=number,
        cohort=tuple(clients.asked),
        bytes_down=clients.bytes_down,
        bytes_up=clients.bytes_up,
        seconds=time.perf_counter() - started,
        model=state.model,
    )
    memories, residuals = clients.memories.commit(), clients.residuals.commit()
    after = Progress(number, state, server.buffers, memories, residuals, clients.held)
    return after, record


class _Cohorts:
    """The door to the clients in one round (`core.algorithm.Clients`)."""

    def __init__(self, setting: Setting, before: Progress, server: Server) -> None:
        self.population = setting.federation.population
        self.asked: list[int] = []
        self.bytes_down = 0
        self.bytes_up = 0
        self.memories = before.memories.draft()
        self.residuals = before.residuals.draft()
        self.held = before.held
        self._setting = setting
        self._round = before.round + 1
        self._server = server
        self._open: list[Iterator[Reply[Any]]] = []
        self._unseen: list[tuple[int, str, Tensor]] = []
        """Whether vectors on a GPU are finite, not looked at yet."""

    @property
    def samples(self) -> int:
        return self._setting.federation.samples

    def run(self, local: Callable[[Client, Any], Any], sent: Any) -> Replies[Any]:
        if not dataclasses.is_dataclass(sent):
            raise InputError(
                f"clients.run sends a dataclass such as Sent(model=x), not {type(sent).__name__}"
            )
        setting = self._setting
        number = len(self._open)
        cohort = tuple(
            setting.participation.cohort(self.population, setting.seed, self._round, number)
        )
        check_cohort(setting.algorithm, len(cohort))
        held = self.held
        if setting.compress_down:
            sent = self._announce(setting.compress_down, sent, number, len(cohort))
        exchange = Exchange(
            round=self._round,
            exchange=number,
            local=local,
            sent=sent,
            buffers=self._server.buffers,
            cohort=cohort,
            chunk=_batch_size(side(setting.algorithm, "client")),
            shares_server_data=setting.algorithm.shares_server_data,
            memory=setting.algorithm.memory,
            memories=self.memories.of(cohort),
            compress_up=setting.compress_up,
            compress_down=setting.compress_down,
            residuals=self.residuals.of(cohort),
            held=held,
            statistics=_statistics(setting, len(cohort)),
            keeps_statistics=setting.statistics == "local" and bool(self._server.buffers.numel()),
        )
        self.asked.extend(cohort)
        self.bytes_down += len(cohort) * wire.size(sent)
        at_home = len(exchange.residuals) if exchange.keeps_statistics else 0
        self.bytes_down += (len(cohort) - at_home) * wire.tensor_size(exchange.buffers)
        replies = self._accept(exchange, setting.engine.run(exchange))
        self._open.append(replies)
        return Replies(cohort, replies)

    def _announce(self, compressor: Compressor, sent: Any, exchange: int, cohort: int) -> Any:
        """What travels to the clients; with error feedback all of them must hear it."""
        if compressor.feedback and cohort < self.population:
            raise InputError(
                f"compress_down={compressor} sends differences, so every client must hear every"
                f" message, but {cohort} of {self.population} take part; compress_down=Quantise()"
                " or Half() needs no memory"
            )
        address = (self._round, exchange, streams.SERVER)
        seed = self._setting.seed
        packed, holds = compression.announce(compressor, sent, self.held, seed, *address)
        self.held = {**self.held, **holds}
        return packed

    def finish(self) -> None:
        """Take in what the method did not read, so that nothing depends on its reading."""
        for replies in self._open:
            for _ in replies:
                pass
        if self._unseen:  # one look at them all: a GPU would have to wait for each
            finite = torch.stack([flag for _, _, flag in self._unseen]).tolist()
            for (client, name, _), fine in zip(self._unseen, finite, strict=True):
                self._refuse(client, name, fine)

    def _accept(self, exchange: Exchange, outcomes: Iterator[Outcome]) -> Iterator[Reply[Any]]:
        sent = exchange.buffers
        moved, mass = torch.zeros_like(sent), torch.zeros_like(sent)
        for outcome in outcomes:
            upload = outcome.upload
            if exchange.compress_up:
                upload = compression.unpack(exchange.compress_up, upload, exchange.exchange)
            self._check(outcome.client, upload)
            self.bytes_up += wire.size(outcome.upload) + wire.tensor_size(outcome.buffers)
            if outcome.memory is not None:
                self.memories[outcome.client] = outcome.memory
            if outcome.residuals:
                kept = self.residuals.get(outcome.client) or {}
                self.residuals[outcome.client] = {**kept, **outcome.residuals}
            if len(sent):  # else this would cost small models a percent
                which = exchange.statistics.get(outcome.position, slice(None))
                weight = outcome.samples if self._setting.by_samples else 1
                moved[which] += weight * (outcome.buffers - sent[which])
                mass[which] += weight
            yield Reply(upload, outcome.client, outcome.position, outcome.samples)
        if len(sent) and mass.any():
            # A sum of changes, so that a constant buffer stays as it is.
            self._server.buffers = sent + moved / mass.clamp(min=1)

    def _check(self, client: int, upload: Any) -> None:
        if self._setting.stop_on_divergence:
            for name, vector in vectors(upload).items():
                if vector.device.type == "cpu":
                    self._refuse(client, name, _finite(vector))
                else:
                    self._unseen.append((client, name, torch.isfinite(vector).all()))

    def _refuse(self, client: int, name: str, finite: bool) -> None:
        if not finite:
            raise Diverged(
                f"round {self._round}, client {client}: {name} is not finite;"
                f" {_hint(self._setting.algorithm, 'client', 'server')}"
            )


def _statistics(setting: Setting, cohort: int) -> dict[int, Tensor]:
    """Which of the buffers each member sends: none, or those of the part of the model it sends."""
    homes = setting.space.homes
    if not len(homes):
        return {}
    if setting.statistics != "average":
        none = torch.zeros(0, dtype=torch.int64, device=setting.space.device)
        return dict.fromkeys(range(cohort), none)
    parts = {p: part for p in range(cohort) if (part := setting.algorithm.part(p)) is not None}
    chosen = {}
    for position, part in parts.items():
        held = torch.zeros(setting.space.size, dtype=torch.bool)
        for stretch in part:
            held[stretch] = True
        chosen[position] = (
            torch.nonzero(held[homes] | (homes < 0)).flatten().to(setting.space.device)
        )
    return chosen


def _check_state(setting: Setting, state: Any) -> None:
    name = f"{type(setting.algorithm).__name__}.round"
    if not isinstance(state, State):
        raise InputError(f"{name} must return a State, not {type(state).__name__}")
    if state.model.shape != setting.space.parameters.shape:
        shape, size = tuple(state.model.shape), setting.space.size
        raise InputError(f"{name} returned a model of shape {shape}, not a vector of {size}")


def _finite(vector: Vector) -> bool:
    # One NaN or Inf makes the sum so; a sum can also overflow, so only then look at each.
    return cmath.isfinite(vector.sum().item()) or bool(torch.isfinite(vector).all())


def _hint(algorithm: Algorithm[Any], *sides: str) -> str:
    """What to do; a rate of the other side may be at fault too."""
    rates = " or ".join(
        f"the {name}'s learning rate (lr is {sgd.lr:g})"
        for name in sides
        if (sgd := side(algorithm, name))
    )
    return (
        f"lower {rates or 'the learning rate'}, or go on with stop_on_divergence=False"
        " (--no-stop-on-divergence)"
    )


def _batch_size(sgd: SGD | None) -> int | None:
    return sgd.batch_size if sgd else None
