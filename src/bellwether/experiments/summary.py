"""What a comparison shows: per method over its seeds, with nothing dropped silently."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median

import numpy as np

from bellwether.core.records import RoundRecord
from bellwether.experiments.results import Comparison, Run


class Metric(StrEnum):
    """What the methods are judged by: accuracy where there is one, otherwise the loss."""

    ACCURACY = "accuracy"
    LOSS = "loss"

    def better(self, one: float, other: float) -> bool:
        """Whether the first value is strictly better; a number that is not finite never is."""
        if not math.isfinite(one):
            return False
        if not math.isfinite(other):
            return True
        return one > other if self is Metric.ACCURACY else one < other


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds with the sample standard deviation (divisor n - 1)."""

    mean: float
    """Not finite when a seed's value was not."""
    spread: float | None
    """None when there is one seed, or no finite mean."""


@dataclass(frozen=True)
class RoundsToTarget:
    """The first round at the target, over *all* seeds.

    A run that never got there is censored: its round is known only to be later than its last.
    """

    median: float
    """Of the rounds, with a censored run standing at its own last round."""
    bound: str
    """What the true median is to `median`: "" equal, ">" greater, "≥" equal or greater."""
    reached: int
    """How many of the seeds got there."""
    seeds: int
    earliest: int
    """No seed got there before this round."""
    latest: int | None
    """Every seed was there by this round; None when one is censored."""


@dataclass(frozen=True)
class Curve:
    """Mean and spread over seeds, at the rounds that every averaged run evaluated."""

    rounds: tuple[int, ...]
    mean: tuple[float, ...]
    spread: tuple[float | None, ...]
    down: tuple[float, ...]
    """Mean bytes sent to clients up to the end of each round."""
    up: tuple[float, ...]
    """Mean bytes that clients sent up to then."""
    seconds: tuple[float, ...]
    """Mean seconds up to then."""
    traffic: tuple[float, ...]
    """Down and up together."""


@dataclass(frozen=True)
class MethodSummary:
    """One method's row and curve. All but `to_target` describe the same `seeds` runs."""

    algorithm: str
    seeds: tuple[int, ...]
    """The seeds averaged: those of the finished runs or, while there are none, all that began."""
    rounds: int
    """The last round averaged."""
    final: Estimate | None
    """At the end of the curve; None when nothing was evaluated."""
    to_target: RoundsToTarget | None
    """None when the comparison has no target, or no run began."""
    bytes_down: float
    """Mean over the seeds of the run's total, as are the next two."""
    bytes_up: float
    seconds: float
    curve: Curve
    loss: Curve | None
    """The curve of the loss, where `curve` is the accuracy's and there is a loss too."""


@dataclass(frozen=True)
class Summary:
    """A whole comparison, summarised."""

    metric: Metric
    target: float | None
    planned_rounds: int
    methods: tuple[MethodSummary, ...]
    complete: bool
    """Whether every method finished with every seed."""
    notes: tuple[str, ...]
    """What a reader must know before reading the numbers: missing, short and diverged runs."""


def summarise(comparison: Comparison) -> Summary:
    """Every method over its seeds; interrupted comparisons too."""
    metric = _metric(comparison)
    missing = _missing(comparison)
    return Summary(
        metric=metric,
        target=comparison.target,
        planned_rounds=comparison.planned_rounds,
        methods=tuple(_method(comparison, name, metric) for name in comparison.algorithms),
        complete=not missing and all(comparison.finished(run) for run in comparison.runs),
        notes=(*comparison.notes, *missing, *_short(comparison), *_diverged(comparison)),
    )


def _metric(comparison: Comparison) -> Metric:
    """Accuracy if any round of any run has one, as in classification; otherwise loss."""
    measured = (record.metrics for run in comparison.runs for record in run.records)
    return Metric.ACCURACY if any("accuracy" in metrics for metrics in measured) else Metric.LOSS


def rounds_to_target(runs: Sequence[Run], metric: Metric, target: float) -> RoundsToTarget:
    """The median first round at which the metric is at the target or better."""
    marks = sorted(first_at(run, metric, target) for run in runs)
    value = median(round for round, _ in marks)
    if value == median(math.inf if censored else round for round, censored in marks):
        bound = ""
    else:
        middle = marks[(len(marks) - 1) // 2 : len(marks) // 2 + 1]
        bound = ">" if any(censored for _, censored in middle) else "≥"
    reached = sum(not censored for _, censored in marks)
    earliest = min(round + censored for round, censored in marks)
    latest = marks[-1][0] if reached == len(marks) else None
    return RoundsToTarget(value, bound, reached, len(marks), earliest, latest)


def _method(comparison: Comparison, algorithm: str, metric: Metric) -> MethodSummary:
    begun = [run for run in comparison.runs_of(algorithm) if run.records]
    averaged = _averaged(comparison, begun)
    rounds = min((run.rounds for run in averaged), default=0)
    kept = [[record for record in run.records if record.round <= rounds] for run in averaged]
    curve = _curve(kept, metric)
    loss = _curve(kept, Metric.LOSS) if metric is Metric.ACCURACY else None
    costs = [
        np.sum([(record.bytes_down, record.bytes_up, record.seconds) for record in records], axis=0)
        for records in kept
    ]
    down, up, seconds = np.mean(costs, axis=0).tolist() if costs else (0.0, 0.0, 0.0)
    target = comparison.target
    return MethodSummary(
        algorithm=algorithm,
        seeds=tuple(run.seed for run in averaged),
        rounds=rounds,
        final=Estimate(curve.mean[-1], curve.spread[-1]) if curve.rounds else None,
        to_target=rounds_to_target(begun, metric, target) if begun and target is not None else None,
        bytes_down=down,
        bytes_up=up,
        seconds=seconds,
        curve=curve,
        loss=loss if loss and loss.rounds else None,
    )


def _averaged(comparison: Comparison, begun: Sequence[Run]) -> Sequence[Run]:
    """Finished runs only, so that a run cut at round 3 does not drag down a mean at round 60."""
    return [run for run in begun if comparison.finished(run)] or begun


def _curve(runs: Sequence[Sequence[RoundRecord]], metric: Metric) -> Curve:
    values = [
        {record.round: record.metrics[metric] for record in records if metric in record.metrics}
        for records in runs
    ]
    rounds = sorted(set.intersection(*map(set, values))) if values else []
    if not rounds:
        return Curve((), (), (), (), (), (), ())
    table = np.array([[run[round] for round in rounds] for run in values], dtype=np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        mean = table.mean(axis=0)
        spread = table.std(axis=0, ddof=1) if len(runs) > 1 else np.full(len(rounds), np.nan)
    return Curve(
        rounds=tuple(rounds),
        mean=tuple(mean.tolist()),
        spread=tuple(value if math.isfinite(value) else None for value in spread.tolist()),
        down=_spent(runs, rounds, lambda record: record.bytes_down),
        up=_spent(runs, rounds, lambda record: record.bytes_up),
        seconds=_spent(runs, rounds, lambda record: record.seconds),
        traffic=_spent(runs, rounds, lambda record: record.bytes_down + record.bytes_up),
    )


def _spent(
    runs: Sequence[Sequence[RoundRecord]],
    rounds: Sequence[int],
    cost: Callable[[RoundRecord], float],
) -> tuple[float, ...]:
    """The mean of what the runs spent up to the end of each of these rounds."""
    totals = []
    for records in runs:
        spent = np.cumsum([cost(record) for record in records])
        ends = np.searchsorted([record.round for record in records], rounds, side="right")
        totals.append(spent[ends - 1])
    return tuple(np.mean(totals, axis=0).tolist())


def first_at(run: Run, metric: Metric, target: float) -> tuple[int, bool]:
    """The first round at the target and False, or the last round and True for censored."""
    for record in run.records:
        value = record.metrics.get(metric, math.nan)
        if math.isfinite(value) and not metric.better(target, value):
            return record.round, False
    return run.rounds, True


def _missing(comparison: Comparison) -> list[str]:
    """A seed that one method ran is expected of all."""
    seeds = sorted({run.seed for run in comparison.runs})
    notes = []
    for algorithm in comparison.algorithms:
        begun = {run.seed for run in comparison.runs_of(algorithm) if run.records}
        absent = [seed for seed in seeds if seed not in begun]
        if absent:
            notes.append(f"{algorithm} has not run with {_seeds(absent)}.")
    return notes


def _short(comparison: Comparison) -> list[str]:
    notes = []
    for algorithm in comparison.algorithms:
        begun = [run for run in comparison.runs_of(algorithm) if run.records]
        short = [run for run in begun if not comparison.finished(run)]
        if not short:
            continue
        averaged = _averaged(comparison, begun)
        if len(short) < len(begun):
            use = f"the means are over {_seeds([run.seed for run in averaged])}"
        else:
            use = f"the means end at round {min(run.rounds for run in averaged)}"
        where = ", ".join(f"{_seeds([run.seed])} after {run.rounds}" for run in short)
        planned = comparison.planned_rounds
        cut = "has fewer rounds" if all(run.complete for run in short) else "was interrupted"
        notes.append(f"{algorithm} {cut} ({where} of {planned} rounds): {use}.")
    return notes


def _diverged(comparison: Comparison) -> list[str]:
    notes = []
    for run in comparison.runs:
        measured = (item for record in run.records for item in record.metrics.items())
        lost = {name for name, value in measured if not math.isfinite(value)}
        if lost:
            names = " and ".join(sorted(lost))
            notes.append(f"{run.algorithm} diverged with {_seeds([run.seed])}: {names} not finite.")
    return notes


def _seeds(seeds: Sequence[int]) -> str:
    return f"seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}"
