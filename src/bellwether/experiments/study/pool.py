"""Runs of a study side by side, each in a process of its own that may die."""

import multiprocessing
import os
import warnings
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from bellwether.core.records import RoundRecord
from bellwether.engines.processes import start_method, undisturbed
from bellwether.experiments.study.plan import Cell
from bellwether.experiments.study.worker import FAILED, work

TRIES = 3
"""How often a run may be killed without a round between before it is given up."""
PATIENCE = 0.2
"""Seconds after which a wish to stop is looked at."""

OnRound = Callable[[Cell, RoundRecord], None]


@dataclass
class Stop:
    """What the user wants: 0 go on, 1 finish the rounds and save, 2 stop now."""

    level: int = 0


@dataclass(eq=False)
class _Job:
    cell: Cell
    deaths: int = 0
    """Since its last round."""
    ended: tuple[str, str] | None = None
    process: BaseProcess | None = field(default=None, repr=False)
    connection: Connection | None = field(default=None, repr=False)


def run_all(
    cells: Iterable[Cell], root: Path, processes: int, on_round: OnRound, stop: Stop
) -> dict[str, tuple[str, str]]:
    """Run these cells below `root`, so many at a time; how each ended, by name.

    One that was killed goes on from its last checkpoint. After a stop some are missing.
    """
    waiting = deque(map(_Job, cells))
    running: list[_Job] = []
    ended: dict[str, tuple[str, str]] = {}
    asked = False
    context = multiprocessing.get_context(start_method())
    try:
        while running or (waiting and not stop.level):
            while waiting and len(running) < processes and not stop.level:
                job = waiting.popleft()
                running.append(job)
                _start(job, root, context)
            if stop.level > 1:
                break
            if stop.level and not asked:
                asked = True
                for job in running:
                    _ask(job)
            wait(_signals(running), PATIENCE)
            for job in list(running):
                _hear(job, on_round)
                if job.process is None or job.process.is_alive():
                    continue
                _hear(job, on_round)
                running.remove(job)
                code = _end(job)
                if job.ended is None and job.deaths + 1 < TRIES:
                    job.deaths += 1
                    waiting.appendleft(job)
                else:
                    how = FAILED, f"its process ended {TRIES} times without a round (code {code})"
                    ended[job.cell.name] = job.ended or how
    finally:
        for job in running:
            _end(job)
    return ended


def _start(job: _Job, root: Path, context: BaseContext) -> None:
    here, there = multiprocessing.Pipe()
    arguments = os.getpid(), there, root / job.cell.name, job.cell.config.text
    with warnings.catch_warnings(), undisturbed():
        # As in `engines.processes`: the child takes none of the locks that other threads hold.
        warnings.simplefilter("ignore", DeprecationWarning)
        job.process = context.Process(target=work, args=arguments, daemon=True)  # type: ignore[attr-defined]
        job.process.start()
    there.close()
    job.connection = here


def _signals(running: list[_Job]) -> list[Any]:
    sentinels = [job.process.sentinel for job in running if job.process]
    return sentinels + [job.connection for job in running if job.connection]


def _ask(job: _Job) -> None:
    if job.connection:
        with suppress(OSError):  # it has just ended
            job.connection.send("stop")


def _hear(job: _Job, on_round: OnRound) -> None:
    """All that it has said."""
    try:
        while job.connection and job.connection.poll():
            first, second = job.connection.recv()
            if isinstance(first, str):
                job.ended = first, second
            else:
                job.deaths = 0
                on_round(job.cell, RoundRecord(first, (), 0, 0, 0.0, second))
    except (EOFError, OSError):
        if job.connection:
            job.connection.close()
        job.connection = None


def _end(job: _Job) -> int | None:
    """Leave nothing behind of its process; the exit code."""
    process, job.process = job.process, None
    if job.connection:
        job.connection.close()
        job.connection = None
    if process is None:
        return None
    if process.is_alive():
        process.kill()
    process.join()
    code = process.exitcode
    process.close()
    return code
