"""One client's work in one exchange: what an engine is given and what it gives back."""

import dataclasses
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from bellwether.core import compression
from bellwether.core.algorithm import Algorithm
from bellwether.core.dataset import Samples
from bellwether.core.errors import BellwetherError, ClientFailed, InputError
from bellwether.core.evaluation import check_labels
from bellwether.core.fields import values_of
from bellwether.core.interfaces import Compressor, Federation
from bellwether.core.participants import Client
from bellwether.core.profile import Profile
from bellwether.core.vector import Vector
from bellwether.core.workspace import Loss, Regularised, Workspace

STATISTICS = "statistics"
"""The name of a client's own batch-norm statistics among what stays with it."""


@dataclass(frozen=True)
class Workplace:
    """What stays the same for all tasks of a training run."""

    module: nn.Module
    loss: Loss | Regularised
    federation: Federation
    seed: int
    device: torch.device
    classes: int | None = None
    """Clients' labels are still to be checked, and must lie below; None: they are known to fit."""
    algorithm: Algorithm[Any] | None = None
    """The method as the run uses it: an engine with processes names its functions, and need not
    send them."""
    profile: Profile | None = None
    """Where the engine says what it spends time on, if it is asked to."""

    def workspace(self) -> Workspace:
        """A private place to compute, for one worker."""
        return Workspace(self.module, self.loss, self.device)


@dataclass(frozen=True)
class Exchange:
    """One call of `clients.run`: the same message to every client of a cohort."""

    round: int
    exchange: int
    """Which of the round's exchanges, from 0."""
    local: Callable[[Client, Any], Any]
    sent: Any
    """As it travels: compressed, if there is a compressor."""
    buffers: Vector
    cohort: tuple[int, ...]
    chunk: int | None
    shares_server_data: bool
    """Whether clients train on the server's samples beside their own."""
    memory: type[Any] | None
    memories: Mapping[int, Any]
    """What the clients of this cohort keep; a client that is missing starts from zero."""
    compress_up: Compressor | None = None
    compress_down: Compressor | None = None
    residuals: Mapping[int, compression.Kept] = field(default_factory=dict)
    """What stays with this cohort's clients: what compression left out of their replies before,
    and their own batch-norm statistics."""
    held: compression.Kept = field(default_factory=dict)
    """What every client holds of earlier messages, where `sent` is the difference to it.

    It does not travel: with clients elsewhere it stays with them.
    """
    statistics: Mapping[int, Tensor] = field(default_factory=dict)
    """Which of `buffers` the members at some positions send; all, where a position is missing."""
    keeps_statistics: bool = False
    """Whether clients keep batch-norm statistics of their own."""
    versions: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "versions", versions(self.sent))


@dataclass(frozen=True)
class Outcome:
    """What came of one task."""

    client: int
    position: int
    upload: Any
    """As it travels: compressed, if there is a compressor."""
    buffers: Vector
    """Those that this client sends."""
    memory: Any
    samples: int
    residuals: compression.Kept
    """What stays with the client if the upload is accepted."""


def perform(space: Workspace, workplace: Workplace, exchange: Exchange, position: int) -> Outcome:
    """Run one client's `local`; it depends on the arguments alone, not on what ran before."""
    identity = exchange.cohort[position]
    where = f"client {identity}, round {exchange.round}"
    kept = exchange.residuals.get(identity, {})
    client = Client(
        space,
        kept.get(STATISTICS, exchange.buffers),
        exchange.chunk,
        workplace.seed,
        exchange.round,
        exchange.exchange,
        identity,
        data=samples_of(workplace, exchange, identity),
        memory=memory_of(exchange, identity, space.parameters),
        position=position,
    )
    upload = answer(exchange, client, where)
    return reported(
        workplace,
        exchange,
        position,
        upload,
        client.buffers,
        client.memory,
        client.samples,
        space.size,
    )


def samples_of(workplace: Workplace, exchange: Exchange, identity: int) -> Samples:
    """What this client trains on."""
    where = f"client {identity}, round {exchange.round}"
    with named(where):
        data = workplace.federation.client(identity)
    if workplace.classes is not None:
        check_labels(data, workplace.classes, where)
    if exchange.shares_server_data and workplace.federation.has_server_data:
        data = data.union(workplace.federation.server(exchange.round))
    return data


def memory_of(exchange: Exchange, identity: int, like: Vector) -> Any:
    """What this client keeps, zero at first; None for a method without memory."""
    memory = exchange.memories.get(identity)
    if memory is None and exchange.memory is not None:
        zero = torch.zeros_like(like)
        memory = exchange.memory(*(zero.clone() for _ in dataclasses.fields(exchange.memory)))
    return memory


def answer(exchange: Exchange, client: Any, where: str) -> Any:
    """What `local` makes of the message; it must be a dataclass, and the message unharmed."""
    sent, before = exchange.sent, exchange.versions
    if exchange.compress_down:
        sent = compression.unpack(exchange.compress_down, sent, exchange.exchange, exchange.held)
        before = versions(sent)
    with named(where):
        upload = exchange.local(client, sent)
    if versions(sent) != before:
        raise InputError(
            f"{where}: what was sent was changed in place; `local` must leave `sent` as it is"
            " (write y = y + v, not y += v)"
        )
    if not dataclasses.is_dataclass(upload):
        raise InputError(
            f"{where}: `local` must return a dataclass such as Upload, not {type(upload).__name__}"
        )
    return upload


def reported(
    workplace: Workplace,
    exchange: Exchange,
    position: int,
    upload: Any,
    buffers: Vector,
    memory: Any,
    samples: int,
    size: int,
) -> Outcome:
    """The outcome as it travels: the upload compressed; `size` is d."""
    identity = exchange.cohort[position]
    residuals: compression.Kept = {}
    if exchange.compress_up:
        upload, residuals = compression.pack(
            exchange.compress_up,
            upload,
            exchange.residuals.get(identity, {}),
            size,
            workplace.seed,
            exchange.round,
            exchange.exchange,
            identity,
        )
    if exchange.keeps_statistics:
        residuals = {**residuals, STATISTICS: buffers}
    if position in exchange.statistics:
        buffers = buffers[exchange.statistics[position]]
    return Outcome(identity, position, upload, buffers, memory, samples, residuals)


@contextmanager
def named(where: str) -> Iterator[None]:
    """Whatever a client's work raises says whose it was, in which round and line."""
    try:
        yield
    except BellwetherError:
        raise
    except Exception as error:
        line = traceback.extract_tb(error.__traceback__)[-1]
        raise ClientFailed(
            f"{where}: {type(error).__name__}: {error} ({line.filename}:{line.lineno})"
        ) from error


def vectors(message: Any) -> dict[str, Tensor]:
    """The fields of a message that are vectors."""
    return {name: value for name, value in values_of(message).items() if isinstance(value, Tensor)}


def versions(message: Any) -> tuple[int, ...]:
    """How often each vector was written to; unequal once somebody changed one in place."""
    return tuple(vector._version for vector in vectors(message).values())
