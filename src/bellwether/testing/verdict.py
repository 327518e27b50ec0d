"""`conformance`: does a method keep what every engine relies on?"""

import copy
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from torch import nn

from bellwether.core.algorithm import Algorithm
from bellwether.core.errors import BellwetherError, InputError
from bellwether.core.isolation import isolated
from bellwether.core.workspace import Loss
from bellwether.federation import Federation
from bellwether.testing.checks import HABITS, Check, Refused, Subject, plain_run, said
from bellwether.testing.problems import Problem, classes, quadratics
from bellwether.testing.situations import SITUATIONS

CHECKS: tuple[Check, ...] = (*HABITS, *SITUATIONS)

RUNS = "runs"
"""The first check: without a plain run there is nothing to compare with."""


@dataclass(frozen=True)
class Finding:
    """What one check found on one problem."""

    check: str
    problem: str
    reason: str

    def __str__(self) -> str:
        return f"{self.check} ({self.problem}): {self.reason}"


@dataclass(frozen=True)
class Report:
    """What held, what failed, and which situations the method says are not for it."""

    method: str
    held: tuple[str, ...]
    failures: tuple[Finding, ...] = ()
    refused: tuple[Finding, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether nothing failed."""
        return not self.failures

    def __str__(self) -> str:
        verdict = "keeps" if self.passed else "does not keep"
        lines = [f"{self.method} {verdict} what a method must"]
        lines += [f"  ok       {name}" for name in self.held]
        lines += [f"  refused  {finding}" for finding in self.refused]
        lines += [f"  FAILED   {finding}" for finding in self.failures]
        return "\n".join(lines)


class NonConformant(BellwetherError, AssertionError):
    """The method breaks a promise; `report` has all that was found."""

    def __init__(self, report: Report) -> None:
        super().__init__(str(report))
        self.report = report


def conformance(
    algorithm: Algorithm[Any],
    *,
    federation: Federation | None = None,
    model: nn.Module | Callable[[], nn.Module] | None = None,
    loss: Loss | None = None,
) -> Report:
    """Check a method; return the report, or raise `NonConformant` with all that is wrong.

    It runs on least squares in float64 and on a classifier with dropout and batch-norm, both with
    layers `first`, `second` and `head`; or on your own federation and model, where the loss need
    not fall. Give an instance with small rates, such as SGD(lr=0.05, epochs=2, batch_size=8). A
    method may refuse a cohort of one by an `InputError`; the report says so.
    """
    if not isinstance(algorithm, Algorithm):
        given = getattr(algorithm, "__name__", type(algorithm).__name__)
        raise InputError(f"conformance checks a method such as FedAvg(SGD(...)), not {given}")
    if (federation is None) != (model is None):
        raise InputError("conformance needs federation and model together, or neither")
    problems = [quadratics(), classes()]
    if federation is not None and model is not None:
        problems = [Problem("your problem", federation, model, loss)]
    elif loss is not None:
        raise InputError("conformance takes a loss only with a federation and a model")
    with isolated():
        report = _examined(algorithm, problems)
    if not report.passed:
        raise NonConformant(report)
    return report


def _examined(algorithm: Algorithm[Any], problems: Iterable[Problem]) -> Report:
    failures: dict[str, list[Finding]] = {}
    refused: dict[str, Finding] = {}
    for problem in problems:
        plain, reason = plain_run(algorithm, problem)
        if plain is None:
            failures[RUNS] = [Finding(RUNS, problem.name, reason)]
            break
        for check in CHECKS:
            name = _name(check)
            if name in failures:
                continue  # it need not be said twice
            # A copy each: what one run leaves on the method shall not blur the other checks.
            subject = Subject(copy.deepcopy(algorithm), problem, plain)
            try:
                if found := [Finding(name, problem.name, why) for why in check(subject)]:
                    failures[name] = found
            except Refused as refusal:
                refused[name] = Finding(name, problem.name, str(refusal))
            except Exception as error:
                failures[name] = [Finding(name, problem.name, said(error))]
    names = [RUNS] if RUNS in failures else [RUNS, *map(_name, CHECKS)]
    return Report(
        type(algorithm).__name__,
        tuple(name for name in names if name not in failures and name not in refused),
        tuple(finding for found in failures.values() for finding in found),
        tuple(refused.values()),
    )


def _name(check: Check) -> str:
    return check.__name__.replace("_", " ")
