"""What a study found: every run's numbers, and their mean and spread over the seeds."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any

from bellwether.experiments.config.source import Tree
from bellwether.experiments.results import Run
from bellwether.experiments.run_directory import read_records
from bellwether.experiments.study.axes import flat
from bellwether.experiments.study.plan import Cell, Study, group_name
from bellwether.experiments.study.questions import Question, accuracies
from bellwether.experiments.study.worker import DONE, outcome


@dataclass(frozen=True)
class Measured:
    """One run's numbers."""

    seed: int
    folder: str
    outcome: str
    """done, diverged, or unfinished."""
    rounds: int
    answers: Mapping[str, float | None]
    """By the question's kind; None: it never got there."""
    final_accuracy: float | None
    bytes_down: int
    bytes_up: int
    seconds: float


@dataclass(frozen=True)
class Over:
    """An answer over the seeds that are not unfinished; one that never got there is censored."""

    mean: float | None
    """None where a run is censored: no mean of the others could stand for all."""
    spread: float | None
    """The sample standard deviation; None for fewer than two runs, or where one is censored."""
    median: float | None
    """With the censored as infinitely late, or infinitely bad; None where that is the middle."""
    censored: int
    runs: int


@dataclass(frozen=True)
class Row:
    """A group: all seeds of one combination of the axes."""

    labels: Mapping[str, str]
    tuned: Mapping[str, Any]
    """What was tuned for it, by key."""
    answers: Mapping[str, Over]
    final_accuracy: Over
    measured: tuple[Measured, ...]

    @property
    def unfinished(self) -> int:
        """Runs that have not ended."""
        return sum(each.outcome == UNFINISHED for each in self.measured)


@dataclass(frozen=True)
class Results:
    """A study's table."""

    title: str
    axes: tuple[str, ...]
    questions: Mapping[str, Mapping[str, Any]]
    """By kind, with their settings."""
    rows: tuple[Row, ...]
    complete: bool

    @property
    def document(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)


UNFINISHED = "unfinished"


def collect(study: Study, cells: Sequence[Cell], root: Path, tuned: Mapping[str, Tree]) -> Results:
    """The numbers of these runs as they are on disk."""
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(group_name(cell.labels), []).append(cell)
    rows = tuple(_row(study, own, root, tuned.get(group, {})) for group, own in groups.items())
    return Results(
        title=study.title,
        axes=tuple(cells[0].labels) if cells else (),
        questions={kind: vars(question) for kind, question in study.questions},
        rows=rows,
        complete=bool(rows) and not any(row.unfinished for row in rows),
    )


def run_of(folder: Path, name: str, seed: int) -> Run:
    """The rounds that a run wrote down."""
    records = tuple(read_records(folder / "metrics.jsonl"))
    return Run(name, seed, records, complete=outcome(folder) == DONE)


def over(values: Sequence[float | None], less: bool) -> Over:
    """Mean, spread, median, and how many never got there."""
    found = [value for value in values if value is not None]
    all_there = len(found) == len(values) and bool(found)
    worst = math.inf if less else -math.inf
    middle = median(worst if v is None else v for v in values) if values else math.nan
    return Over(
        mean=fmean(found) if all_there else None,
        spread=stdev(found) if all_there and len(found) > 1 else None,
        median=middle if math.isfinite(middle) else None,
        censored=len(values) - len(found),
        runs=len(values),
    )


def _row(study: Study, cells: Sequence[Cell], root: Path, tuned: Tree) -> Row:
    measured = tuple(_measured(study.questions, cell, root) for cell in cells)
    ended = [each for each in measured if each.outcome != UNFINISHED]
    return Row(
        labels=cells[0].labels,
        tuned=flatly(tuned),
        answers={
            kind: over([each.answers[kind] for each in ended], question.less)
            for kind, question in study.questions
        },
        final_accuracy=over([each.final_accuracy for each in ended], less=False),
        measured=measured,
    )


def _measured(questions: Sequence[tuple[str, Question]], cell: Cell, root: Path) -> Measured:
    run = run_of(root / cell.name, cell.name, cell.seed)
    values = accuracies(run)
    return Measured(
        seed=cell.seed,
        folder=cell.name,
        outcome=outcome(root / cell.name) or UNFINISHED,
        rounds=run.rounds,
        answers={
            kind: question.answer(run) if run.records else None for kind, question in questions
        },
        final_accuracy=values[-1][1] if values and run.complete else None,
        bytes_down=sum(record.bytes_down for record in run.records),
        bytes_up=sum(record.bytes_up for record in run.records),
        seconds=sum(record.seconds for record in run.records),
    )


def flatly(tree: Tree) -> dict[str, Any]:
    """Settings by their dotted keys."""
    return {".".join(path): value for path, value in flat(tree)}
