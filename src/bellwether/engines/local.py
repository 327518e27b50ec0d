"""Clients run on this machine: in this process one after the other, or in worker processes."""

import os
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Literal

from bellwether.core.errors import InputError
from bellwether.core.evaluation import Evaluation, Score
from bellwether.core.stacked.rule import Wish, check_wish, group_size, groups
from bellwether.core.tasks import Exchange, Outcome, Workplace
from bellwether.engines.in_process import InProcess
from bellwether.engines.parcels import Unfit
from bellwether.engines.pool import Pool
from bellwether.engines.processes import start_method
from bellwether.engines.work import Clients, Pieces

MOST = 8
"""Workers a core; more only take memory."""
WORTHWHILE = 0.02
"""Seconds of clients' work in a round from which on "auto" starts workers, in some 10 ms each."""


class Local:
    """The default engine.

    workers: 1 runs clients in this process while their replies are read; more, in so many
    processes of one thread each. "auto" starts as 1 and takes a process a core once a round's
    clients are seen to be worth it, but only this process on a GPU. All give the same bits.
    batch_clients: how many clients are computed side by side, in one stacked computation; "auto"
    where that is faster (see `core.stacked.rule`). Bits then differ in the last places from those
    of 1, but not with the number of workers.
    """

    workers: int | Literal["auto"] = 1
    batch_clients: Wish = 1
    _pool: Pool | None = None
    _seconds = 0.0
    """What a client took, where "auto" has still to decide."""

    def __init__(self, workers: int | Literal["auto"] = 1, *, batch_clients: Wish = 1) -> None:
        self.workers = check_workers(workers)
        self.batch_clients = check_wish(batch_clients)

    def __repr__(self) -> str:
        return f"Local(workers={self.workers!r}, batch_clients={self.batch_clients!r})"

    def start(self, workplace: Workplace) -> None:
        self._workplace = workplace
        self._in_process: InProcess | None = None
        self._group = 1
        if self.batch_clients != 1:
            self._group = group_size(self.batch_clients, self._this_process().space, workplace)
        self._alone = self.workers == 1
        self._seconds = 0.0

    def run(self, exchange: Exchange) -> Iterator[Outcome]:
        pool = self._pool or self._new_pool(len(exchange.cohort))
        if pool is None:
            return self._here(exchange)
        try:
            task = pool.submit(Clients(exchange))
        except Unfit as reason:
            self._fall_back(reason)
            return self._here(exchange)
        return self._there(exchange, pool.outcomes(task))

    def scores(self, evaluation: Evaluation) -> Callable[[], Iterable[Score]] | None:
        """Start to evaluate in the workers, if there are any; call the answer for the scores."""
        if self._pool is None:
            return None
        pool, task = self._pool, self._pool.submit(Pieces(evaluation))
        return lambda: pool.outcomes(task)

    def stop(self) -> None:
        if self._pool:
            self._pool.stop()
        self._pool = None
        del self._workplace, self._in_process

    def _new_pool(self, cohort: int) -> Pool | None:
        if self._alone:
            return None
        workers = self._advised(cohort) if self.workers == "auto" else self.workers
        if workers == 1:
            return None
        self._in_process = None
        try:
            self._pool = Pool(self._workplace, workers, start_method(), self._group)
        except (Unfit, OSError) as reason:
            self._fall_back(reason)
        return self._pool

    def _advised(self, cohort: int) -> int:
        """How many workers pay, after what clients took so far."""
        alone = self._workplace.device.type != "cpu" or cohort == 1
        return 1 if alone or cohort * self._seconds < WORTHWHILE else cores()

    def _here(self, exchange: Exchange, begin: int = 0) -> Iterator[Outcome]:
        here = self._this_process()
        for group in groups(len(exchange.cohort), self._group):
            if group[-1] < begin:
                continue
            started = time.perf_counter()
            outcomes = here.perform(exchange, group)
            self._seconds = (time.perf_counter() - started) / len(group)
            yield from (outcome for outcome in outcomes if outcome.position >= begin)

    def _this_process(self) -> InProcess:
        self._in_process = self._in_process or InProcess(self._workplace)
        return self._in_process

    def _there(self, exchange: Exchange, outcomes: Iterator[Outcome]) -> Iterator[Outcome]:
        done = 0
        try:
            for outcome in outcomes:
                yield outcome
                done += 1
        except Unfit as reason:
            self._fall_back(reason)
            yield from self._here(exchange, done)

    def _fall_back(self, reason: Exception) -> None:
        """Go on in this process, and say why, once."""
        if self._pool:
            self._pool.stop()
        self._pool = None
        if not self._alone:
            self._alone = True
            warnings.warn(f"clients run in this process, not in workers: {reason}", stacklevel=2)


def check_workers(workers: int | str) -> int | Literal["auto"]:
    """The number of workers, or "auto"; `InputError` for what is neither, or makes no sense."""
    wish = check_wish(workers, "workers")
    if wish != "auto" and wish > MOST * cores():
        raise InputError(
            f"{workers} workers are too many for the {cores()} cores that this process may use;"
            f" give at most {MOST * cores()}, or 'auto' for one a core"
        )
    return wish


def cores() -> int:
    """How many this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
