"""What a worker process does: it reads orders, performs groups of tasks, and answers."""

import contextlib
import dataclasses
import gc
import os
import pickle
import struct
import sys
import time
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, NamedTuple, Self

import torch

from bellwether.core.errors import ClientFailed
from bellwether.core.stacked.clients import Stacks, perform_group
from bellwether.core.tasks import Exchange, Outcome, Workplace
from bellwether.engines.arena import SharedMemory
from bellwether.engines.jobs import Group
from bellwether.engines.parcels import Parcel, Place, Unfit, opened

DONE, LARGE, UNFIT = range(3)
"""Kinds of answers: in the block; too large for it, so beside the answer; the reason why not."""


class Order(NamedTuple):
    """Do this: a parcel with the exchange, one with the tasks, and a block for the answer."""

    serial: int
    """The exchange's own number."""
    exchange: Place
    tasks: Place
    block: int
    room: int

    def encoded(self) -> bytes:
        """As it goes through the pipe: few bytes, so that sending never waits."""
        return _ORDER.pack(self.serial, *self.exchange, *self.tasks, self.block, self.room)

    @classmethod
    def decoded(cls, data: bytes) -> Self:
        """The order that these bytes are."""
        serial, *numbers, block, room = _ORDER.unpack(data)
        return cls(serial, Place(*numbers[:3]), Place(*numbers[3:]), block, room)


_ORDER = struct.Struct("<9q")


class Answer(NamedTuple):
    """The order is done."""

    kind: int
    vectors: int = 0
    skeleton: int = 0
    nanoseconds: int = 0
    content: bytes = b""

    def encoded(self) -> bytes:
        """As it goes through the pipe."""
        return _ANSWER.pack(*self[:4]) + self.content

    @classmethod
    def decoded(cls, data: bytes) -> Self:
        """The answer that these bytes are."""
        kind, vectors, skeleton, nanoseconds = _ANSWER.unpack_from(data)
        return cls(kind, vectors, skeleton, nanoseconds, data[_ANSWER.size :])


_ANSWER = struct.Struct("<4q")


@dataclasses.dataclass(frozen=True)
class Tasks:
    """The part of an exchange that concerns some of its members."""

    groups: list[Group]
    memories: dict[int, Any]
    residuals: dict[int, Any]


@dataclasses.dataclass(frozen=True)
class Failure:
    """A task that raised."""

    error: Exception
    trace: str
    """Where it was raised, as text: frames do not travel."""
    short_of_memory: bool


def serve(connection: Connection, memory: SharedMemory, workplace: Workplace) -> None:
    """Follow orders until nobody can give any."""
    torch.set_num_threads(1)
    gc.freeze()  # what was there before stays shared with the parent: not even counted again
    parent = os.getppid()
    stacks: Stacks | None = None
    exchanges: dict[int, Exchange] = {}
    while True:
        try:
            order = Order.decoded(connection.recv_bytes())
            stacks = stacks or Stacks(workplace.workspace())
            answer = _obey(order, memory, workplace, stacks, exchanges)
            if os.getppid() != parent:
                return
            connection.send_bytes(answer.encoded())
        except (EOFError, OSError):
            return


def _obey(
    order: Order,
    memory: SharedMemory,
    workplace: Workplace,
    stacks: Stacks,
    exchanges: dict[int, Exchange],
) -> Answer:
    started = time.perf_counter_ns()
    shared = memory.upto(max(order.block + order.room, order.exchange.start + order.exchange.size))
    if order.serial not in exchanges:
        while len(exchanges) > 3:
            del exchanges[min(exchanges)]
        exchanges[order.serial] = received(opened(shared, order.exchange, copy=False), workplace)
    tasks: Tasks = opened(shared, order.tasks, copy=False)
    exchange = dataclasses.replace(
        exchanges[order.serial], memories=tasks.memories, residuals=tasks.residuals
    )
    results = [r for group in tasks.groups for r in _attempt(stacks, workplace, exchange, group)]
    _flush()
    try:
        parcel = Parcel(results)
    except Unfit as reason:
        why = f"what a client sends or keeps cannot be pickled ({reason})"
        return Answer(UNFIT, content=why.encode())
    beside = bytearray() if parcel.size <= order.room else bytearray(parcel.size)
    place = parcel.write(beside, 0) if beside else parcel.write(shared, order.block)
    elapsed = time.perf_counter_ns() - started
    return Answer(LARGE if beside else DONE, place.vectors, place.skeleton, elapsed, bytes(beside))


def sendable(exchange: Exchange, workplace: Workplace) -> Exchange:
    """The part of an exchange that all its members share; a function of the method by its name."""
    local, memory = exchange.local, exchange.memory
    method = workplace.algorithm
    if method is not None and getattr(method, _name(local), None) == local:
        local, memory = _name(local), None  # type: ignore[assignment]
    return dataclasses.replace(exchange, local=local, memory=memory, memories={}, residuals={})


def received(exchange: Exchange, workplace: Workplace) -> Exchange:
    """What `sendable` made, as `perform` takes it."""
    method = workplace.algorithm
    if isinstance(exchange.local, str) and method is not None:
        local = getattr(method, exchange.local)
        return dataclasses.replace(exchange, local=local, memory=method.memory)
    return dataclasses.replace(exchange)  # counts anew how often its vectors were written to


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", "")


def _attempt(
    stacks: Stacks, workplace: Workplace, exchange: Exchange, group: Group
) -> list[Outcome | Failure]:
    try:
        return list(perform_group(stacks, workplace, exchange, group))
    except Exception as error:
        if len(group) == 1:
            return [_failure(error, exchange, group[0])]
    # Whose fault it is shows only one by one; a task does not depend on those before it.
    return [r for position in group for r in _attempt(stacks, workplace, exchange, (position,))]


def _failure(error: Exception, exchange: Exchange, position: int) -> Failure:
    trace = "".join(traceback.format_exception(error))
    chain = [error, error.__cause__]
    short = any(
        isinstance(e, MemoryError | torch.cuda.OutOfMemoryError)
        or "can't allocate memory" in str(e)
        for e in chain
    )
    return Failure(_portable(error, exchange, position), trace, short)


def _portable(error: Exception, exchange: Exchange, position: int) -> Exception:
    """The error if it survives pickling, otherwise its words."""
    with contextlib.suppress(Exception):
        copy = pickle.loads(pickle.dumps(error))
        if type(copy) is type(error) and str(copy) == str(error):
            return error
    where = f"client {exchange.cohort[position]}, round {exchange.round}"
    return ClientFailed(f"{where}: {type(error).__name__}: {error}")


def _flush() -> None:
    """What a client's code prints is seen, although a worker may be killed at any time."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
