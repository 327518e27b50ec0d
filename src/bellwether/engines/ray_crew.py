"""Ray's actors at work: give them tasks, take in the outcomes, replace those that are lost.

Every outcome travels by itself and is summed by the server, in cohort order. Partial sums of fixed
groups would send less, but they add up in another order: not the bits of `Local`, nor a sum over
single replies, which a method may want (`mean` with weights, a trust score, a median).
"""

import dataclasses
import itertools
import sys
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Self

import ray
from ray.exceptions import RayError, RayTaskError

from bellwether.core import profile as parts
from bellwether.core.errors import ClientFailed, InputError, WorkerLost
from bellwether.core.stacked.rule import Wish
from bellwether.core.tasks import Workplace
from bellwether.engines.jobs import Group, Job
from bellwether.engines.parcels import Unfit
from bellwether.engines.pool import ATTEMPTS, BUNDLE, DEPTH, WAITING
from bellwether.engines.processes import undisturbed
from bellwether.engines.ray_worker import Worker, packed, unpacked, version
from bellwether.engines.settings import Settings
from bellwether.engines.work import Work
from bellwether.engines.worker import Failure, Tasks

WORTHWHILE = 5e-3
"""Seconds of work that pay for the way to an actor and back."""
PATIENCE = 120.0
"""Seconds in which one actor must have started, while none has."""


class Crew:
    """Up to so many actors, for one run after the other; they start when there is work."""

    def __init__(self, workers: Wish) -> None:
        self._wish = workers
        self._needs: dict[str, int] = {}
        self._workers: list[_Actor] = []
        self._serials = itertools.count()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._dismiss(self._workers)

    def begin(self, workplace: Workplace, group: int) -> None:
        """Get ready for a run, whose data go once to every node."""
        on_cpu = workplace.device.type == "cpu"
        needs = {"num_cpus": 1, "num_gpus": 0 if on_cpu else 1}
        if needs != self._needs:
            self._dismiss(self._workers)
        self._needs, self._unit = needs, "CPU" if on_cpu else "GPU"
        self._most = max(1, self._there()) if self._wish == "auto" else self._wish
        self._profile, self._wait = workplace.profile, ray.wait
        if self._profile:
            self._wait = self._profile.wrap(parts.WAITING, ray.wait)
            workplace = dataclasses.replace(workplace, profile=parts.Profile())  # an actor's own
        self._workplace, self._group = workplace, group
        self._tasks: list[_Task] = []
        self._lost_at_once = 0
        self._pace = 0.0
        """Seconds for a cost of 1, as last seen."""
        tensors = (*workplace.module.parameters(), *workplace.module.buffers())
        self._bytes = 2 * sum(t.nbytes for t in tensors) + 1024
        """What an outcome takes: the most that was seen, at first a guess."""
        self._luggage = _put((Settings.here(), workplace), "the model, the loss or the data")
        for worker in self._workers:
            worker.prepare(self._luggage)

    def finish(self) -> None:
        """Stop all work; an actor that has nothing to do stays for the next run."""
        self._dismiss([worker for worker in self._workers if worker.duties])
        self._tasks = []
        self._luggage = None

    @property
    def at_work(self) -> bool:
        """Whether there are actors already."""
        return bool(self._workers)

    def submit(self, work: Work) -> "_Task":
        """Set the actors to work."""
        groups, costs = work.groups(self._workplace, self._group), work.costs(self._workplace)
        window = max((self._most + 1) * self._group, WAITING // self._bytes)
        sent = _put(work.packed(self._workplace), "what the server sends")
        task = _Task(next(self._serials), work, sent, Job(groups, costs, window))
        self._tasks.append(task)
        while len(self._workers) < min(self._most, len(groups)):
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
                result.reraise(self._relief)
            yield result

    def _hire(self) -> None:
        kind = ray.remote(Worker).options(
            **self._needs, max_restarts=0, max_task_retries=0, scheduling_strategy="SPREAD"
        )
        worker = _Actor(kind.remote(sys.path))
        worker.prepare(self._luggage)
        self._workers.append(worker)

    def _dismiss(self, workers: list["_Actor"]) -> None:
        with undisturbed():
            for worker in list(workers):
                worker.end()
                self._workers.remove(worker)

    def _dispatch(self) -> None:
        """Give orders while somebody has room for one."""
        self._tasks = [task for task in self._tasks if not task.job.idle]
        ready = [worker for worker in self._workers if worker.starting is None]
        while ready:
            worker = min(ready, key=lambda worker: len(worker.duties))
            duty = self._next_duty(worker) if len(worker.duties) < DEPTH else None
            if duty is None:
                return
            worker.duties.append(duty)

    def _next_duty(self, worker: "_Actor") -> "_Duty | None":
        least = WORTHWHILE / self._pace if self._pace else 0.0
        for task in self._tasks:
            taken = task.job.take(len(self._workers), max(1, BUNDLE // self._bytes), least)
            if taken:
                tasks = packed(Tasks(taken, task.work.kept(taken)))
                answer = worker.handle.perform.remote(task.serial, [task.sent], tasks)
                return _Duty(task, taken, answer)
        return None

    def _listen(self) -> None:
        """Wait for an answer, take it in and give new orders."""
        awaited = {ref: worker for worker in self._workers if (ref := worker.awaited) is not None}
        patience = None if any(worker.duties for worker in self._workers) else PATIENCE
        answered, _ = self._wait(list(awaited), timeout=patience)
        if not answered:  # or Ray would let them wait for ever
            free = int(ray.available_resources().get(self._unit, 0))
            raise WorkerLost(
                f"no worker could start on Ray within {PATIENCE:g} s: of its {self._there()}"
                f" {self._unit}s {free} are free, and a worker needs one"
            )
        for ref in answered:
            self._take_in(awaited[ref], ref)
        self._dispatch()

    def _take_in(self, worker: "_Actor", ref: Any) -> None:
        try:
            answer = ray.get(ref)
        except RayTaskError as error:  # not a client's work, which is caught: it could not travel
            whose = _named(worker.duties[0]) if worker.duties else "a Ray worker"
            raise ClientFailed(f"{whose}: {type(error.cause).__name__}: {error.cause}") from error
        except RayError as error:
            self._replace(worker, error)
            return
        if worker.starting is not None:
            if answer:
                raise InputError(answer)
            worker.starting, self._lost_at_once = None, 0
            return
        nanoseconds, parcel = answer
        results, spent = unpacked(parcel, copy=True)
        duty = worker.duties.popleft()
        each = iter(results)
        for group in duty.groups:
            duty.task.job.finish(group, list(islice(each, len(group))))
        self._bytes = max(self._bytes, parcel[1].size // sum(map(len, duty.groups)))
        self._pace = nanoseconds * 1e-9 / sum(map(duty.task.job.cost, duty.groups))
        if self._profile:
            self._profile.add_worker(nanoseconds, spent)

    def _replace(self, worker: "_Actor", error: RayError) -> None:
        """An actor is lost: others do what it had to do, unless they are lost by that."""
        self._dismiss([worker])
        if worker.starting is not None:
            self._lost_at_once += 1
            if self._lost_at_once == ATTEMPTS:
                reason = " ".join(str(error).split())
                raise WorkerLost(f"{ATTEMPTS} Ray workers in a row could not start: {reason}")
        for number, duty in enumerate(worker.duties):
            task = duty.task
            for group in duty.groups:
                task.losses[group] += number == 0  # it had begun with the first order only
                if task.losses[group] < ATTEMPTS:
                    task.job.put_back(group)
                else:
                    lost = WorkerLost(
                        f"{_named(duty)}: {ATTEMPTS} Ray workers in a row were lost with it, as"
                        f" happens when memory runs out; {self._relief}"
                    )
                    task.job.finish(group, [Failure(lost, str(error), False)] * len(group))
        self._hire()

    def _there(self) -> int:
        """How many cores, or GPUs, the cluster has."""
        return int(ray.cluster_resources().get(self._unit, 0))

    @property
    def _relief(self) -> str:
        return f"lower workers (now {self._most}) or the batch size"


@dataclass(eq=False)
class _Task:
    """A work on its way."""

    serial: int
    work: Work
    sent: Any
    """Where it lies in Ray's memory, once for all actors of a node."""
    job: Job
    losses: Counter[Group] = field(default_factory=Counter)
    """How many actors were lost with a group."""


@dataclass(eq=False)
class _Duty:
    """What an actor was told to do."""

    task: _Task
    groups: list[Group]
    answer: Any


@dataclass(eq=False)
class _Actor:
    handle: Any
    starting: Any = None
    """Its first answer, until that has come."""
    duties: deque[_Duty] = field(default_factory=deque)

    @property
    def awaited(self) -> Any:
        """The next answer to come; None if there is none."""
        if self.starting is not None:
            return self.starting
        return self.duties[0].answer if self.duties else None

    def prepare(self, luggage: Any) -> None:
        """Let it take in what stays the same in a run."""
        self.starting = self.handle.prepare.remote(version(), luggage)

    def end(self) -> None:
        """Kill it, also where it is only out of reach."""
        with suppress(RayError):
            ray.kill(self.handle)


def _put(content: Any, what: str) -> Any:
    try:
        return ray.put(packed(content))
    except Unfit as reason:
        raise InputError(f"{what} cannot travel to Ray's workers: {reason}") from reason


def _named(duty: _Duty) -> str:
    return duty.task.work.name(tuple(p for group in duty.groups for p in group))
