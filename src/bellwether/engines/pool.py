"""Worker processes: give them work, take in what they answer, replace those that die."""

import dataclasses
import multiprocessing
import selectors
import signal
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

from bellwether.core import profile as parts
from bellwether.core.errors import WorkerLost
from bellwether.core.tasks import Workplace
from bellwether.engines.arena import Arena, aligned
from bellwether.engines.jobs import Group, Job
from bellwether.engines.parcels import Parcel, Place, Unfit, opened
from bellwether.engines.processes import (
    Forked,
    Process,
    Spawned,
    StartMethod,
    luggage,
    undisturbed,
)
from bellwether.engines.work import Work
from bellwether.engines.worker import LARGE, UNFIT, Answer, Failure, Order, Tasks

WAITING = 256 * 2**20
"""Bytes of outcomes that may wait for their turn, before workers must wait for the reader."""
BUNDLE = 4 * 2**20
"""Bytes of outcomes in one answer, unless a single one has more."""
WORTHWHILE = 1e-3
"""Seconds of work that pay for the way to a worker and back."""
DEPTH = 2
"""Orders that a worker holds: it goes on with the second while the first is taken in."""
ATTEMPTS = 3
"""How many workers may die of a group."""


class Pool:
    """Up to so many workers for one workplace; they start when there is something to do."""

    def __init__(
        self, workplace: Workplace, workers: int, method: StartMethod, group: int = 1
    ) -> None:
        if multiprocessing.current_process().daemon:
            raise Unfit("this process is a daemonic worker itself, and may not have children")
        self._profile = workplace.profile
        if self._profile:
            self._profile.attend(self, _answers=parts.WAITING)
            workplace = dataclasses.replace(workplace, profile=parts.Profile())  # a worker's own
        things = luggage(workplace) if method == "spawn" else None
        self._workplace = workplace
        self._most = workers
        self._group = group
        self._arena = Arena()
        self._workers: list[_Worker] = []
        self._ready = selectors.PollSelector()  # unlike epoll it takes no descriptor into a fork
        self._tasks: list[_Task] = []
        self._serial = 0
        self._pace = 0.0
        """Seconds for a cost of 1, as last seen."""
        tensors = (*workplace.module.parameters(), *workplace.module.buffers())
        self._guess = 2 * sum(t.nbytes for t in tensors) + 1024
        self._seen = 0
        self._luggage = self._put(things) if things else None

    def submit(self, work: Work) -> "_Task":
        """Set the workers to work; `Unfit` if it cannot be sent."""
        groups, costs = work.groups(self._workplace, self._group), work.costs(self._workplace)
        job = Job(groups, costs, max(self._most + 1, WAITING // self._bytes))
        place = self._put(Parcel(work.packed(self._workplace)))
        self._serial += 1
        task = _Task(self._serial, work, place, job)
        self._tasks.append(task)
        while len(self._workers) < min(self._most, len(costs)):
            self._hire()
        self._dispatch()
        return task

    def outcomes(self, task: "_Task") -> Iterator[Any]:
        """What came of the work, by position; raises what was raised there."""
        job = task.job
        while job.unread:
            while not job.ready:
                self._listen()
            held_back, result = job.held_back, job.read()
            if held_back:
                self._dispatch()  # the window has moved
            if isinstance(result, Failure):
                job.cancel()
                self._close_if_done(task)
                result.reraise(self._relief)
            yield result

    def stop(self) -> None:
        """End all workers and give the memory back."""
        with undisturbed():
            for worker in self._workers:
                worker.end()
            self._workers.clear()
            self._ready.close()
            self._arena.close()

    @property
    def _bytes(self) -> int:
        """What an outcome takes: the most that was seen, or a guess."""
        return self._seen or self._guess

    def _put(self, parcel: Parcel) -> Place:
        start = self._arena.take(parcel.size)
        return parcel.write(self._arena.upto(start + parcel.size), start)

    def _hire(self) -> None:
        with undisturbed():
            ours, theirs = Pipe()
            process: Process
            try:
                if self._luggage is None:
                    strangers = [ours, *(worker.connection for worker in self._workers)]
                    process = Forked(theirs, strangers, self._arena, self._workplace)
                else:
                    process = Spawned(theirs, self._arena, self._luggage)
            except OSError as error:
                ours.close()
                raise Unfit(f"no process can be started ({error})") from error
            finally:
                theirs.close()
            self._workers.append(_Worker(process, ours))
            self._ready.register(ours, selectors.EVENT_READ, self._workers[-1])

    def _dispatch(self) -> None:
        """Give orders while somebody has room for one."""
        while True:
            worker = min(self._workers, key=lambda worker: len(worker.duties))
            duty = self._next_duty() if len(worker.duties) < DEPTH else None
            if duty is None:
                return
            worker.duties.append(duty)
            try:
                worker.connection.send_bytes(duty.order.encoded())
            except OSError:
                self._replace(worker)

    def _next_duty(self) -> "_Duty | None":
        least = WORTHWHILE / self._pace if self._pace else 0.0
        for task in self._tasks:
            groups = task.job.take(self._most, max(1, BUNDLE // self._bytes), least)
            if groups:
                return self._duty(task, groups)
        return None

    def _duty(self, task: "_Task", groups: list[Group]) -> "_Duty":
        tasks = self._put(Parcel(Tasks(groups, task.work.kept(groups))))
        room = aligned(sum(map(len, groups)) * self._bytes)
        order = Order(task.serial, task.place, tasks, self._arena.take(room), room)
        return _Duty(task, groups, order)

    def _listen(self) -> None:
        """Wait for answers, take them in and give new orders."""
        if not self._workers:
            raise Unfit("the workers were stopped")
        for worker in self._answers():
            try:
                answer = Answer.decoded(worker.connection.recv_bytes())
            except (EOFError, OSError):
                self._replace(worker)
            else:
                self._take_in(worker, answer)
        self._dispatch()

    def _answers(self) -> "list[_Worker]":
        """Those that have answered, or died; wait for one."""
        return [key.data for key, _ in self._ready.select()]

    def _take_in(self, worker: "_Worker", answer: Answer) -> None:
        if answer.kind == UNFIT:
            raise Unfit(answer.content.decode())
        duty = worker.duties.popleft()
        order = duty.order
        place = Place(order.block, answer.vectors, answer.skeleton)
        if answer.kind == LARGE:
            place = place._replace(start=0)
            results, spent = opened(bytearray(answer.content), place, copy=True)
        else:
            memory = self._arena.upto(order.block + order.room)
            results, spent = opened(memory, place, copy=True)
        each = iter(results)
        for group in duty.groups:
            duty.task.job.finish(group, list(islice(each, len(group))))
        positions = sum(map(len, duty.groups))
        self._seen = max(self._seen, aligned(place.size // positions + 1))
        cost = sum(map(duty.task.job.cost, duty.groups))
        self._pace = answer.nanoseconds * 1e-9 / cost
        if self._profile:
            self._profile.add_worker(answer.nanoseconds, spent)
        self._discharge(duty)

    def _discharge(self, duty: "_Duty") -> None:
        """Free what the order needed."""
        self._arena.give_back(duty.order.tasks.start)
        self._arena.give_back(duty.order.block)
        self._close_if_done(duty.task)

    def _close_if_done(self, task: "_Task") -> None:
        if task.job.idle and task in self._tasks:
            self._tasks.remove(task)
            self._arena.give_back(task.place.start)

    def _replace(self, worker: "_Worker") -> None:
        """A worker is dead: a new one does what it had to do, unless it dies of that."""
        with undisturbed():
            self._workers.remove(worker)
            self._ready.unregister(worker.connection)
            code = worker.end()
        for number, duty in enumerate(worker.duties):
            for group in duty.groups:
                duty.task.deaths[group] += number == 0  # it had begun with the first order only
                if duty.task.deaths[group] < ATTEMPTS:
                    duty.task.job.put_back(group)
                else:
                    lost = Failure(self._lost(duty.task.work, group, code), "", False)
                    duty.task.job.finish(group, [lost] * len(group))
            self._discharge(duty)
        self._hire()

    def _lost(self, work: Work, group: Group, code: int | None) -> WorkerLost:
        how = f"ended with exit code {code}; workers=1 may show why"
        if code == -signal.SIGKILL:
            how = f"were killed, as happens when memory runs out; {self._relief}"
        elif code is not None and code < 0:
            how = f"were ended by {signal.Signals(-code).name}; workers=1 may show why"
        return WorkerLost(f"{work.name(group)}: {ATTEMPTS} worker processes in a row {how}")

    @property
    def _relief(self) -> str:
        return f"lower workers (now {self._most}) or the batch size"


@dataclass(eq=False)
class _Task:
    """A work on its way, as the workers know it."""

    serial: int
    work: Work
    place: Place
    job: Job
    deaths: Counter[Group] = field(default_factory=Counter)
    """How many workers died of a group."""


@dataclass(eq=False)
class _Duty:
    """An order that a worker holds."""

    task: _Task
    groups: list[Group]
    order: Order


@dataclass(eq=False)
class _Worker:
    process: Process
    connection: Connection
    duties: deque[_Duty] = field(default_factory=deque)

    def end(self) -> int | None:
        """Kill it and forget it; its exit code."""
        self.connection.close()
        return self.process.end()
