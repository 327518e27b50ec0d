"""How a worker process begins and ends.

Forked where that is sound: it takes milliseconds, nothing needs pickling, and data are shared
with the parent page by page. Otherwise a new interpreter is started, and is sent the workplace.
"""

import ctypes
import multiprocessing
import os
import signal
import subprocess
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from typing import Literal, Protocol

import torch

from bellwether.core.tasks import Workplace
from bellwether.engines.arena import SharedMemory
from bellwether.engines.parcels import Parcel, Place, Unfit, opened
from bellwether.engines.settings import Settings
from bellwether.engines.worker import UNFIT, Answer, serve

StartMethod = Literal["fork", "spawn"]


def start_method() -> StartMethod:
    """fork on Linux without CUDA, which does not survive it; macOS's libraries do not either."""
    if sys.platform == "win32":
        raise Unfit("they need Linux or macOS")
    return "fork" if sys.platform == "linux" and not torch.cuda.is_available() else "spawn"


class Process(Protocol):
    """A child process."""

    pid: int

    def end(self) -> int | None:
        """Kill it, and leave no zombie; its exit code, negative for a signal."""


class Forked:
    """A copy of this process; `strangers` are connections that it has no business with."""

    def __init__(
        self,
        connection: Connection,
        strangers: Sequence[Connection],
        memory: SharedMemory,
        workplace: Workplace,
    ) -> None:
        self._process = multiprocessing.get_context("fork").Process(
            target=_forked,
            args=(os.getpid(), connection, strangers, memory, workplace),
            name="bellwether-worker",
            daemon=True,
        )
        with warnings.catch_warnings():
            # Python 3.12 warns of a fork while other threads run, since they may hold locks. The
            # child takes none of theirs: it computes on one thread, with streams of its own.
            warnings.simplefilter("ignore", DeprecationWarning)
            self._process.start()
        assert self._process.pid
        self.pid: int = self._process.pid

    def end(self) -> int | None:
        self._process.kill()
        self._process.join()
        code = self._process.exitcode
        self._process.close()
        return code


def _forked(
    parent: int,
    connection: Connection,
    strangers: Sequence[Connection],
    memory: SharedMemory,
    workplace: Workplace,
) -> None:
    belong_to(parent)
    for stranger in strangers:  # a pipe ends only when its last holder closes it
        stranger.close()
    for name, number in (("stdout", 1), ("stderr", 2)):
        if getattr(sys, name) is getattr(sys, f"__{name}__"):  # a thread may have held its lock
            with suppress(OSError):
                setattr(sys, name, open(number, "w", buffering=1, closefd=False))  # noqa: SIM115
    serve(connection, memory, workplace)


class Spawned:
    """A new interpreter, which finds the workplace in shared memory.

    It imports what it needs by name, but never the program that is running: a script without
    `if __name__ == "__main__"` must not start again.
    """

    def __init__(self, connection: Connection, memory: SharedMemory, workplace: Place) -> None:
        numbers = connection.fileno(), memory.descriptor
        code = (
            f"import sys; sys.path[:] = {sys.path!r};"
            f" from bellwether.engines.processes import spawned;"
            f" spawned({os.getpid()}, {numbers}, {tuple(workplace)})"
        )
        self._process = subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.DEVNULL, pass_fds=numbers
        )
        self.pid = self._process.pid

    def end(self) -> int | None:
        self._process.kill()
        return self._process.wait()


def luggage(workplace: Workplace) -> Parcel:
    """What a new interpreter needs to be as this one is; `Unfit` if it cannot be sent."""
    return Parcel((Settings.here(), workplace))


def spawned(parent: int, descriptors: tuple[int, int], place: tuple[int, int, int]) -> None:
    """The life of a new interpreter."""
    belong_to(parent)
    connection, memory = Connection(descriptors[0]), SharedMemory(descriptors[1])
    where = Place(*place)
    try:
        unpacked = opened(memory.upto(where.start + where.size), where, copy=False)
    except Exception as error:
        reason = (
            f"they cannot load the model, the loss or the data ({type(error).__name__}: {error});"
            " what they need must be in a module that can be imported"
        )
        connection.send_bytes(Answer(UNFIT, content=reason.encode()).encoded())
        return
    settings, workplace = unpacked
    settings.adopt()
    serve(connection, memory, workplace)


def belong_to(parent: int) -> None:
    """Leave Ctrl-C to the parent, and end with it: by the kernel's hand, or see `serve`."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if os.getppid() != parent:
        os._exit(1)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Ctrl-C waits: a process that was begun must not be forgotten."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
