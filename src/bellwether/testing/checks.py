"""How every method must behave, each promise one function that yields what is wrong."""

import copy
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from bellwether.core.algorithm import Algorithm
from bellwether.experiments.training import train
from bellwether.federation.participation import Uniform
from bellwether.testing.elsewhere import Elsewhere
from bellwether.testing.playing import ROUNDS, Played, apart, differences, played, tensors
from bellwether.testing.problems import SEED, Problem


class Refused(Exception):
    """The method says by an `InputError` that a situation is not for it."""


@dataclass(frozen=True)
class Subject:
    """A method on a problem, and what it did there in a plain run."""

    algorithm: Algorithm[Any]
    problem: Problem
    plain: Played


Check = Callable[[Subject], Iterator[str]]


def leaves_itself_alone(subject: Subject) -> Iterator[str]:
    """The method's fields are settings: no run changes them, and its copy reads the same."""
    if repr(copy.deepcopy(subject.algorithm)) != repr(subject.algorithm):
        yield (
            "two equal instances have different reprs, so that a run could not be resumed;"
            " make the method a frozen dataclass"
        )
    for name in subject.plain.settings:
        yield (
            f"the method's own field {name} changed during a run; what changes belongs in the State"
            " that `round` returns, or in client.memory"
        )


def leaves_vectors_alone(subject: Subject) -> Iterator[str]:
    """What a round was given stays as it was."""
    for name in subject.plain.overwritten:
        first, _, rest = name.partition(".")
        what = f"client.memory.{rest.partition('.')[2]}" if first == "memories" else name
        yield (
            f"{what} was changed in place; make a new vector (x = x + v, not x += v or x.add_(v))"
            " and put it into a new State or Memory"
        )


def keeps_memory(subject: Subject) -> Iterator[str]:
    """Clients keep what the method declares, in the declared form."""
    declared, memories = subject.algorithm.memory, subject.plain.moments[-1].memories
    size = subject.plain.moments[0].state.model.shape
    if declared is None:
        if memories:
            yield (
                "clients keep a memory that the method does not declare, so that no checkpoint"
                " holds it; add `memory = Memory`, a frozen dataclass of vectors, to the class"
            )
        return
    for memory in memories.values():
        if type(memory) is not declared:
            yield f"client.memory became a {type(memory).__name__}, not a {declared.__name__}"
            return
    for name, vector in tensors(list(memories.values())):
        if vector.shape != size:
            field = name.partition(".")[2]
            yield f"client.memory.{field} has shape {tuple(vector.shape)}, not {tuple(size)}"
            return
    if memories and not any(vector.any() for _, vector in tensors(memories)):
        yield (
            f"the method declares a memory, but it is still 0 for all clients after {ROUNDS}"
            " rounds; `local` must assign client.memory = Memory(...)"
        )


def repeats(subject: Subject) -> Iterator[str]:
    """The same bits again, whatever torch's global generators hold."""
    if where := apart(subject.plain, played(subject.algorithm, subject.problem, disturbed=True)):
        yield (
            f"a second run gives other bits ({where}): something outlives a run (on self, in a"
            " class or a global variable) or is drawn from a global random generator; use State,"
            " client.memory and server.rng"
        )


def runs_elsewhere(subject: Subject) -> Iterator[str]:
    """The same bits with clients in any order, in other processes, behind a network."""
    again = played(subject.algorithm, subject.problem, engine=Elsewhere())
    if where := apart(subject.plain, again):
        yield (
            f"with clients in another order, on other machines, the bits differ ({where}):"
            " `local` may depend on client and sent alone (no self.x = ..., no global variable, no"
            " torch.rand), and messages arrive as vectors, numbers, text and tuples"
        )


def resumes(subject: Subject) -> Iterator[str]:
    """The same bits after going on from a checkpoint."""
    problem = subject.problem

    def go(folder: Path, rounds: int, resume: bool) -> tuple[torch.Tensor, torch.Tensor]:
        result = train(
            subject.algorithm,
            problem.federation,
            problem.module,
            rounds,
            participation=Uniform(problem.cohort),
            seed=SEED,
            loss=problem.objective,
            eval_every=0,
            run_dir=folder,
            resume=resume,
            device="cpu",
        )
        return result.model, result.buffers

    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "run"
        try:
            go(folder, ROUNDS // 2, resume=False)
            end = go(folder, ROUNDS, resume=True)
        except Exception as error:
            yield (
                f"a run cannot be written down and gone on with: {said(error)}; State holds"
                " vectors, numbers, text and tuples of them, Memory holds vectors"
            )
            return
    last = subject.plain.moments[-1]
    if any(differences((last.state.model, last.buffers), end)):
        yield (
            "resumed from a checkpoint it ends in other bits: something is kept neither in State"
            " nor in client.memory, or in a field whose length changes"
        )


def plain_run(algorithm: Algorithm[Any], problem: Problem) -> tuple[Played | None, str]:
    """What the method does with nothing special about it, or the reason why it cannot."""
    try:
        return played(copy.deepcopy(algorithm), problem), ""
    except Exception as error:
        reason = said(error)
        if "NoneType" in reason and algorithm.memory is None:
            reason += (
                "; if this is client.memory, declare `memory = Memory`, a frozen dataclass of"
                " vectors"
            )
        return None, reason


def said(error: Exception) -> str:
    """An error in one line."""
    return f"{type(error).__name__}: {error}"


HABITS: tuple[Check, ...] = (
    leaves_itself_alone,
    leaves_vectors_alone,
    keeps_memory,
    repeats,
    runs_elsewhere,
    resumes,
)
