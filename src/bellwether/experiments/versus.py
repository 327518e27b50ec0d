"""Every method against a baseline, seed by seed: how much, and whether it is more than noise."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from bellwether.core.errors import unknown
from bellwether.experiments.results import Comparison, Run
from bellwether.experiments.statistics import Paired, holm, paired, pairs_needed
from bellwether.experiments.summary import Metric, Summary, first_at

LEVEL = 0.05
"""A difference is more than noise when noise would show it in at most this share of cases."""


class Verdict(StrEnum):
    """Whether a difference is more than noise."""

    BETTER = "yes, better"
    WORSE = "yes, worse"
    OPEN = "not shown"
    TOO_FEW = "too few seeds"
    UNKNOWN = "not comparable"


@dataclass(frozen=True)
class Difference:
    """A method minus the baseline in one quantity, over the seeds that both have run."""

    algorithm: str
    test: Paired
    p: float | None
    """That of the flips of signs after Holm's correction over the methods of the table."""
    censored: tuple[int, int]
    """In how many pairs the method, and the baseline, never got to the target."""
    lost: int
    """How many pairs have no difference: something in them is not finite."""
    verdict: Verdict

    @property
    def bound(self) -> str:
        """What the mean difference is: "" exact, "≥" or "≤" a bound, "?" of unknown side."""
        mine, theirs = (bool(count) for count in self.censored)
        return "?" if mine and theirs else "≥" if mine else "≤" if theirs else ""


@dataclass(frozen=True)
class Versus:
    """All methods but the baseline against it."""

    baseline: str
    final: tuple[Difference, ...]
    """In the metric at the last round that both runs of a pair evaluated."""
    to_target: tuple[Difference, ...]
    """In the first round at the target; empty without one."""


Pair = tuple[Run, Run]


def versus(comparison: Comparison, summary: Summary, baseline: str | None = None) -> Versus:
    """Against this method, by default FedAvg or, where it is not there, the first."""
    names = comparison.algorithms
    if baseline is None:
        baseline = "FedAvg" if "FedAvg" in names else names[0]
    by_typed = {name.lower().replace(" ", "-"): name for name in names}
    if baseline.lower().replace(" ", "-") not in by_typed:
        raise unknown("baseline", baseline, names)
    baseline = by_typed[baseline.lower().replace(" ", "-")]
    others = [name for name in names if name != baseline]
    pairs = {name: _pairs(comparison, name, baseline) for name in others}
    metric, target = summary.metric, comparison.target
    rises = metric is Metric.ACCURACY
    final = [
        _difference(name, _whole(comparison, pairs[name]), lambda pair: _final(pair, metric))
        for name in others
    ]
    reached: list[Difference] = []
    if target is not None:
        reached = [
            _difference(name, pairs[name], lambda pair: _reached(pair, metric, target))
            for name in others
        ]
    return Versus(baseline, _judged(final, rises), _judged(reached, rises=False))


def _pairs(comparison: Comparison, one: str, other: str) -> list[Pair]:
    partners = {run.seed: run for run in comparison.runs_of(other) if run.records}
    mine = (run for run in comparison.runs_of(one) if run.records and run.seed in partners)
    return [(run, partners[run.seed]) for run in mine]


def _whole(comparison: Comparison, pairs: Sequence[Pair]) -> Sequence[Pair]:
    """Pairs of finished runs only, as in the means; while there is none, all."""
    return [pair for pair in pairs if all(map(comparison.finished, pair))] or pairs


Values = tuple[float, float, bool, bool]
"""The method's, the baseline's, and whether each is a run that never got there."""


def _difference(
    name: str, pairs: Sequence[Pair], measured: Callable[[Pair], Values | None]
) -> Difference:
    values = [value for pair in pairs if (value := measured(pair)) is not None]
    finite = [value for value in values if math.isfinite(value[0]) and math.isfinite(value[1])]
    censored = sum(value[2] for value in finite), sum(value[3] for value in finite)
    lost = len(values) - len(finite)
    test = paired([] if lost else [mine - theirs for mine, theirs, *_ in finite])
    if any(censored):  # of what was never seen no interval is known
        test = replace(test, low=None, high=None, p_t=None)
    return Difference(name, test, None, censored, lost, Verdict.UNKNOWN)


def _final(pair: Pair, metric: Metric) -> Values | None:
    one, other = ({r.round: r.metrics[metric] for r in run.records if metric in r.metrics}
                  for run in pair)  # fmt: skip
    shared = one.keys() & other.keys()
    return (one[max(shared)], other[max(shared)], False, False) if shared else None


def _reached(pair: Pair, metric: Metric, target: float) -> Values:
    """The first rounds at the target; "never" counts as the round after the last of both.

    Flips of signs stay an exact test of rounds that are cut off so, for both are cut off alike.
    """
    horizon = min(run.rounds for run in pair)
    firsts = []
    for run in pair:
        round, censored = first_at(run, metric, target)
        never = censored or round > horizon
        firsts.append((horizon + 1 if never else round, never))
    (one, one_never), (other, other_never) = firsts
    return float(one), float(other), one_never, other_never


def _judged(differences: Sequence[Difference], rises: bool) -> tuple[Difference, ...]:
    adjusted = holm([difference.test.p_signs for difference in differences])
    tests = sum(p is not None for p in adjusted)
    return tuple(
        replace(difference, p=p, verdict=_verdict(difference.test, p, tests, rises))
        for difference, p in zip(differences, adjusted, strict=True)
    )


def _verdict(test: Paired, p: float | None, tests: int, rises: bool) -> Verdict:
    if not test.pairs or test.mean is None:
        return Verdict.UNKNOWN
    if p is not None and p <= LEVEL:
        return Verdict.BETTER if (test.mean > 0) is rises else Verdict.WORSE
    few = test.pairs < pairs_needed(LEVEL, max(1, tests))
    return Verdict.TOO_FEW if few else Verdict.OPEN
