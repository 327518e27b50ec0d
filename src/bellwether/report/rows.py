"""The summary table, cell by cell: the terminal and the page only dress it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import compress

from bellwether.experiments.summary import MethodSummary, Metric, Summary
from bellwether.report.words import (
    ABSENT,
    bytes_text,
    estimate_text,
    goal_text,
    rounds_text,
    seconds_text,
    span,
)


@dataclass(frozen=True)
class Cell:
    """One number of one method."""

    text: str
    value: float | None
    """The number that the text shows; None where there is none."""
    detail: str = ""
    """What qualifies the number, shown smaller beside it."""
    best: bool = False

    @property
    def number(self) -> str:
        """The text without spread and unit."""
        return self.text.partition(" ±")[0].removesuffix(" %")


@dataclass(frozen=True)
class Row:
    """One method: the final metric, rounds to the target (if any), down, up, seconds."""

    algorithm: str
    cells: tuple[Cell, ...]


def headers(summary: Summary) -> tuple[str, ...]:
    """What the cells of a row are, in order."""
    target = summary.target
    goal = () if target is None else (f"rounds to {goal_text(summary.metric, target)}",)
    return (f"final {summary.metric}", *goal, "down", "up", "seconds")


def rows(summary: Summary) -> tuple[Row, ...]:
    """Every method's cells, the best of each column marked.

    A method that is not as far as the others does not compete, for it had less time to spend
    bytes; nor does a bound ("> 60"). A number that reads the same as the best is as good, and a
    column where all are equal marks nobody.
    """
    furthest = max(method.rounds for method in summary.methods)
    competes = [method.rounds == furthest for method in summary.methods]
    table = [_cells(method, summary) for method in summary.methods]
    winners = []
    for index, column in enumerate(zip(*table, strict=True)):
        rises = index == 0 and summary.metric is Metric.ACCURACY
        winners.append(_winner(list(compress(column, competes)), rises))
    return tuple(
        Row(
            method.algorithm,
            tuple(
                replace(cell, best=here and cell.number == winner)
                for cell, winner in zip(cells, winners, strict=True)
            ),
        )
        for method, cells, here in zip(summary.methods, table, competes, strict=True)
    )


def _winner(cells: Sequence[Cell], rises: bool) -> str | None:
    """How the best number reads, unless all read the same."""
    known = [cell for cell in cells if cell.value is not None and cell.text[0] not in ">≥"]
    if not known or len({cell.number for cell in cells}) < 2:
        return None
    return (max if rises else min)(known, key=lambda cell: cell.value or 0.0).number


def caption(summary: Summary) -> str:
    """How to read the rows."""
    counts = [len(method.seeds) for method in summary.methods if method.seeds]
    if max(counts, default=0) < 2:
        seeds = "One seed, so no spread."
    else:
        seeds = f"Mean ± sample standard deviation over {span(min(counts), max(counts))} seeds."
    goal = " Rounds: median, and how many seeds got there." if summary.target is not None else ""
    totals = " Down, up, seconds: totals of a run (mean)."
    return f"{seeds}{goal}{totals} Bold: the best number, even where spreads overlap."


def _cells(method: MethodSummary, summary: Summary) -> tuple[Cell, ...]:
    if not method.rounds:
        return (Cell(ABSENT, None),) * len(headers(summary))
    final, to_target = method.final, method.to_target
    value = final.mean if final is not None and math.isfinite(final.mean) else None
    cells = [Cell(estimate_text(summary.metric, final), value)]
    if to_target is not None:
        reached = f"{to_target.reached}/{to_target.seeds}"
        cells.append(Cell(rounds_text(to_target), to_target.median, reached))
    return (
        *cells,
        Cell(bytes_text(method.bytes_down), method.bytes_down),
        Cell(bytes_text(method.bytes_up), method.bytes_up),
        Cell(seconds_text(method.seconds), method.seconds),
    )
