"""Situations that every method must cope with, each one function that yields what is wrong."""

from collections.abc import Iterator
from dataclasses import replace

import torch

from bellwether.core.errors import InputError
from bellwether.core.evaluation import evaluate
from bellwether.core.interfaces import Participation
from bellwether.core.workspace import Workspace
from bellwether.federation.participation import Fixed, Uniform
from bellwether.testing.checks import Check, Refused, Subject, said
from bellwether.testing.playing import ROUNDS, Played, played, tensors
from bellwether.testing.problems import Problem

_RATES = "if it only diverges, give an instance with smaller rates, such as SGD(lr=0.05, steps=2)"


def takes_one_client_a_round(subject: Subject) -> Iterator[str]:
    """Cohorts of a single client."""
    yield from _goes(subject, "with one client a round", subject.problem, Uniform(1))


def takes_visitors(subject: Subject) -> Iterator[str]:
    """A client that comes once, others that come always, in another order of ids."""
    count, problem = subject.problem.cohort, subject.problem
    regulars, visitor = list(range(count)), problem.federation.population - 1
    if visitor in regulars:
        raise Refused("all clients come in every round")
    visit = [visitor, *regulars[1:]]
    schedule = Fixed([regulars, visit, regulars[::-1], regulars])
    yield from _goes(subject, "with a client that comes once", problem, schedule)


def takes_one_client_at_all(subject: Subject) -> Iterator[str]:
    """A federation of one client that holds everything."""
    problem = subject.problem.with_one_client()
    yield from _goes(subject, "with one client that holds everything", problem, Uniform(1))


def says_whether_it_needs_server_data(subject: Subject) -> Iterator[str]:
    """A method without `needs_server_data` runs where the server holds nothing."""
    if subject.algorithm.needs_server_data:
        return
    try:
        played(subject.algorithm, subject.problem.without_server_data())
    except Exception as error:
        yield (
            f"needs_server_data is False, but where the server holds nothing: {said(error)};"
            " let the property return True"
        )


def keeps_precision(subject: Subject) -> Iterator[str]:
    """In float32 and in float64 all vectors have the model's precision."""
    own = subject.plain.moments[0].state.model.dtype
    other = torch.float64 if own == torch.float32 else torch.float32
    yield from _strangers(subject.plain, own)
    try:
        yield from _strangers(
            played(subject.algorithm, replace(subject.problem, precision=other)), other
        )
    except Exception as error:
        yield f"with a model in {other}: {said(error)}"


def learns(subject: Subject) -> Iterator[str]:
    """On quadratics the loss falls."""
    problem, moments = subject.problem, subject.plain.moments
    test = problem.federation.test
    if not problem.convex or test is None:
        return
    space = Workspace(problem.module(), problem.objective)
    before, after = (
        evaluate(space, test, moment.state.model, moment.buffers)["loss"]
        for moment in (moments[0], moments[-1])
    )
    if not after < before:
        yield (
            f"on {problem.name} the loss does not fall: {before:.3g} before, {after:.3g} after"
            f" {ROUNDS} rounds; look for a wrong sign or for a result that is not used ({_RATES})"
        )


def _strangers(run: Played, precision: torch.dtype) -> Iterator[str]:
    last = run.moments[-1]
    for name, vector in tensors({"state": last.state, "memory": [*last.memories.values()][:1]}):
        if vector.is_floating_point() and vector.dtype != precision:
            yield (
                f"with a model in {precision}, {name.replace('.0.', '.')} is {vector.dtype};"
                " make vectors like the model (torch.zeros_like(model))"
            )


def _goes(
    subject: Subject, when: str, problem: Problem, participation: Participation
) -> Iterator[str]:
    try:
        played(subject.algorithm, problem, participation=participation)
    except InputError as error:
        raise Refused(f"{when}: {error}") from error
    except Exception as error:
        yield f"{when}: {said(error)}"


SITUATIONS: tuple[Check, ...] = (
    takes_one_client_a_round,
    takes_visitors,
    takes_one_client_at_all,
    says_whether_it_needs_server_data,
    keeps_precision,
    learns,
)
