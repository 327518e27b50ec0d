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
from multiprocessing.connection import Connection
from typing import Any, NamedTuple, NoReturn, Self

import torch

from bellwether.core.errors import ClientFailed, WorkerLost
from bellwether.core.profile import Profile
from bellwether.core.tasks import Workplace
from bellwether.engines.arena import SharedMemory
from bellwether.engines.in_process import InProcess
from bellwether.engines.jobs import Group
from bellwether.engines.parcels import Parcel, Place, Unfit, opened
from bellwether.engines.work import Kept, Work

DONE, LARGE, UNFIT = range(3)
"""Kinds of answers: in the block; too large for it, so beside the answer; the reason why not."""


class Order(NamedTuple):
    """Do this: a parcel with the work, one with the part of it, and a block for the answer."""

    serial: int
    """The work's own number."""
    work: Place
    tasks: Place
    block: int
    room: int

    def encoded(self) -> bytes:
        """As it goes through the pipe: few bytes, so that sending never waits."""
        return _ORDER.pack(self.serial, *self.work, *self.tasks, self.block, self.room)

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
    """The part of a work that an order is about."""

    groups: list[Group]
    kept: Kept


@dataclasses.dataclass(frozen=True)
class Failure:
    """A task that raised."""

    error: Exception
    trace: str
    """Where it was raised, as text: frames do not travel."""
    short_of_memory: bool

    def reraise(self, relief: str) -> NoReturn:
        """Raise it where the outcome is read; `relief` is what helps where memory ran out."""
        error = WorkerLost(f"{self.error}; {relief}") if self.short_of_memory else self.error
        raise error from _Trace(self.trace)


class _Trace(Exception):
    """Where a task raised in its own process."""


def serve(connection: Connection, memory: SharedMemory, workplace: Workplace) -> None:
    """Follow orders until nobody can give any."""
    torch.set_num_threads(1)
    gc.freeze()  # what was there before stays shared with the parent: not even counted again
    parent = os.getppid()
    here: InProcess | None = None
    works: dict[int, Work] = {}
    while True:
        try:
            order = Order.decoded(connection.recv_bytes())
            here = here or InProcess(workplace)
            answer = _obey(order, memory, workplace, here, works)
            if os.getppid() != parent:
                return
            connection.send_bytes(answer.encoded())
        except (EOFError, OSError):
            return


def _obey(
    order: Order,
    memory: SharedMemory,
    workplace: Workplace,
    here: InProcess,
    works: dict[int, Work],
) -> Answer:
    started = time.perf_counter_ns()
    shared = memory.upto(max(order.block + order.room, order.work.start + order.work.size))
    if order.serial not in works:
        while len(works) > 3:
            del works[min(works)]
        packed: Work = opened(shared, order.work, copy=False)
        works[order.serial] = packed.unpacked(workplace)
    work, tasks = works[order.serial], opened(shared, order.tasks, copy=False)
    content = performed(here, work, tasks, workplace.profile)
    _flush()
    try:
        parcel = Parcel(content)
    except Unfit as reason:
        why = f"what a client sends or keeps cannot be pickled ({reason})"
        return Answer(UNFIT, content=why.encode())
    beside = bytearray() if parcel.size <= order.room else bytearray(parcel.size)
    place = parcel.write(beside, 0) if beside else parcel.write(shared, order.block)
    elapsed = time.perf_counter_ns() - started
    return Answer(LARGE if beside else DONE, place.vectors, place.skeleton, elapsed, bytes(beside))


def performed(
    here: InProcess, work: Work, tasks: Tasks, profile: Profile | None
) -> tuple[list[Any], dict[str, int]]:
    """What comes of each position, or a `Failure`; the nanoseconds by part, if asked."""
    with profile.round() if profile else contextlib.nullcontext():
        results = [r for group in tasks.groups for r in _attempt(here, work, group, tasks.kept)]
    return results, profile.taken() if profile else {}


def _attempt(here: InProcess, work: Work, group: Group, kept: Kept) -> list[Any]:
    try:
        return list(here.do(work, group, kept))
    except Exception as error:
        if len(group) == 1:
            return [_failure(error, work.name(group))]
    # Whose fault it is shows only one by one; a task does not depend on those before it.
    return [r for p in group for r in _attempt(here, work, (p,), kept)]


def _failure(error: Exception, where: str) -> Failure:
    trace = "".join(traceback.format_exception(error))
    chain = [error, error.__cause__]
    short = any(
        isinstance(e, MemoryError | torch.cuda.OutOfMemoryError)
        or "can't allocate memory" in str(e)
        for e in chain
    )
    return Failure(_portable(error, where), trace, short)


def _portable(error: Exception, where: str) -> Exception:
    """The error if it survives pickling, otherwise its words."""
    with contextlib.suppress(Exception):
        copy = pickle.loads(pickle.dumps(error))
        if type(copy) is type(error) and str(copy) == str(error):
            return error
    return ClientFailed(f"{where}: {type(error).__name__}: {error}")


def _flush() -> None:
    """What a client's code prints is seen, although a worker may be killed at any time."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
