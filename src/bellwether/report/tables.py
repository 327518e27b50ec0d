"""Every table of a report, cell by cell: the page and the files only dress them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bellwether.experiments.attendance import Attendance, attendance
from bellwether.experiments.results import Comparison
from bellwether.experiments.statistics import MOST_EXACT, pairs_needed, smallest_p
from bellwether.experiments.summary import Summary
from bellwether.experiments.versus import LEVEL, Difference, Verdict, Versus, versus
from bellwether.report.rows import Cell, Row, caption, headers, rows
from bellwether.report.words import (
    ABSENT,
    difference_text,
    goal_text,
    interval_text,
    p_text,
    ratio_text,
    signed,
    span,
)

PARTICIPATION = "participation"
READING = (
    "The method minus the baseline, seed by seed: both met the same clients and initial model."
    " p: exact, over all flips of the differences' signs; Holm: adjusted for the methods of the"
    " table, and what the last column goes by, at 5 %. Wilcoxon's signed ranks are exact too; the"
    " interval and the t test take the differences for normal."
)
NONE = Cell(ABSENT, None)


@dataclass(frozen=True)
class Table:
    """A table: a row a method, a header for each cell of a row."""

    name: str
    """Of its file."""
    title: str
    headers: tuple[str, ...]
    rows: tuple[Row, ...]
    caption: str
    reading: str = ""
    """How to read it, where several tables are read alike."""


def tables(
    comparison: Comparison, summary: Summary, baseline: str | None = None
) -> tuple[Table, ...]:
    """What a comparison has: the summary, ratios and tests where there is a baseline, who came."""
    compared = versus(comparison, summary, baseline)
    found = [summary_table(summary)]
    if len(summary.methods) > 1:
        found += [ratio_table(summary, compared.baseline), *noise_tables(summary, compared)]
    there = attendance(comparison)
    if any(times.times.any() for times in there):
        found.append(attendance_table(there))
    return tuple(found)


def summary_table(summary: Summary) -> Table:
    """What each method reached, and what it cost."""
    return Table("summary", "Summary", headers(summary), rows(summary), caption(summary))


def ratio_table(summary: Summary, baseline: str) -> Table:
    """Each number of the summary in multiples of the baseline's."""
    by_name = {row.algorithm: row for row in rows(summary)}
    base = by_name[baseline].cells
    found = [
        Row(name, tuple(map(_ratio, row.cells, base)))
        for name, row in by_name.items()
        if name != baseline
    ]
    text = (
        f"Each number of the summary in multiples of {baseline}'s, of means and medians."
        " A bound stands where a run never got to the target."
    )
    return Table("ratios", f"In multiples of {baseline}", headers(summary), tuple(found), text)


def _ratio(cell: Cell, base: Cell) -> Cell:
    if cell.value is None or not base.value:
        return NONE
    mine, theirs = (text[0] if text[0] in ">≥" else "" for text in (cell.text, base.text))
    if mine and theirs:
        return NONE
    ratio = cell.value / base.value
    sign = mine or {"": "", ">": "<", "≥": "≤"}[theirs]
    return Cell(f"{sign} {ratio_text(ratio)}".strip(), ratio)


def noise_tables(summary: Summary, compared: Versus) -> list[Table]:
    """Is a difference to the baseline more than noise: the final metric, then the target."""
    metric, target = summary.metric, summary.target
    found = [
        _tests(
            "final-test",
            f"Final {metric} against {compared.baseline}",
            compared.final,
            lambda value: difference_text(metric, value),
            lambda low, high: interval_text(metric, low, high),
        )
    ]
    if compared.to_target and target is not None:
        found.append(
            _tests(
                "target-test",
                f"Rounds to {goal_text(metric, target)} against {compared.baseline}",
                compared.to_target,
                lambda value: signed(f"{value:+.1f}"),
                lambda low, high: signed(f"{low:+.1f} to {high:+.1f}"),
            )
        )
    return found


def _tests(
    name: str,
    title: str,
    differences: Sequence[Difference],
    said: Callable[[float], str],
    between: Callable[[float, float], str],
) -> Table:
    names = (
        "difference",
        "95 % interval",
        "seeds",
        "p",
        "p (Holm)",
        "Wilcoxon",
        "t test",
        "more than noise?",
    )
    found = []
    for each in differences:
        test = each.test
        low, high = test.low, test.high
        mean = (
            NONE
            if test.mean is None
            else Cell(f"{each.bound} {said(test.mean)}".strip(), test.mean)
        )
        found.append(
            Row(
                each.algorithm,
                (
                    mean,
                    NONE if low is None or high is None else Cell(between(low, high), None),
                    Cell(str(test.pairs), test.pairs, _missing(each)),
                    *(_p(p) for p in (test.p_signs, each.p, test.p_ranks, test.p_t)),
                    Cell(each.verdict.value, None, best=each.verdict is Verdict.BETTER),
                ),
            )
        )
    return Table(name, title, names, tuple(found), _honest(differences), READING)


def _missing(difference: Difference) -> str:
    """What is not known of some seeds, beside their number."""
    mine, theirs = difference.censored
    if difference.lost:
        return f"{difference.lost} diverged"
    return f"{mine}+{theirs} never" if mine or theirs else ""


def _p(p: float | None) -> Cell:
    return NONE if p is None else Cell(p_text(p), p)


def _honest(differences: Sequence[Difference]) -> str:
    """What so few seeds can say at all, and what is known of runs that never got there."""
    known = [each.test.pairs for each in differences if each.test.p_signs is not None]
    if not known:
        if any(each.test.pairs for each in differences):
            return "One seed has no spread, so nothing can be tested."
        return "No seed gave both a finite number, so nothing can be compared."
    needed = pairs_needed(LEVEL, len(known))
    least = smallest_p(max(known))
    text = f"The smallest p that {max(known)} seeds can give is {p_text(least)}"
    if len(known) > 1:
        text += f", after Holm's correction {p_text(min(1.0, len(known) * least))}"
    text += f": it takes {needed} seeds to come to 5 %." if max(known) < needed else "."
    if max(known) > MOST_EXACT:
        text += f" With more than {MOST_EXACT} seeds p is that of the t test."
    if any(any(each.censored) for each in differences):
        text += (
            " Never: runs of the method + of the baseline that did not get there. Such a run counts"
            " as one round after the last, which keeps p exact; the difference is then a bound"
            " (? where both sides have such runs) and has no interval."
        )
    return text


def attendance_table(there: Sequence[Attendance]) -> Table:
    """How often clients were asked."""
    names = ("rounds with clients", "clients a round", "came at all", "least", "median", "most")
    found = []
    for each in there:
        came = (each.times > 0).sum(axis=1)
        times = sorted(each.times.ravel().tolist())
        middle = (times[(len(times) - 1) // 2] + times[len(times) // 2]) / 2
        low, high = int(came.min()), int(came.max())
        found.append(
            Row(
                each.algorithm,
                (
                    Cell(span(*each.rounds), None),
                    Cell(span(*each.cohorts), None),
                    Cell(f"{span(low, high)} of {each.times.shape[1]:,}", None),
                    Cell(str(times[0]), times[0]),
                    Cell(f"{middle:g}", middle),
                    Cell(str(times[-1]), times[-1]),
                ),
            )
        )
    text = (
        "Over the seeds. Least, median, most: how often the server asked one client in one run,"
        " whether or not it answered."
    )
    return Table(PARTICIPATION, "Who came", names, tuple(found), text)
