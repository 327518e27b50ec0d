"""The comparison in one sentence, which claims an order only when the seeds agree on it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from bellwether.experiments.summary import MethodSummary, Metric, RoundsToTarget, Summary
from bellwether.report.words import estimate_text, goal_text, listing, rounds_text, span


@dataclass(frozen=True)
class _Contestant:
    """A method in a contest where lower is better; its seeds lie between low and high."""

    name: str
    text: str
    seeds: int
    low: float
    value: float
    high: float
    arrived: bool = True


def headline(summary: Summary) -> str:
    """Who got to the target first or, when nobody did, who ended best."""
    goal = _goal(summary)
    racers = [(method, method.to_target) for method in summary.methods if method.to_target]
    finalists = _finalists(summary)
    if any(rounds.reached for _, rounds in racers):
        sentence = _verdict(
            [_racer(*racer) for racer in racers], f"first to {goal}", f" reached {goal}"
        )
    elif finalists:
        best = "highest" if summary.metric is Metric.ACCURACY else "lowest"
        rounds = _furthest(summary)
        ending = f"{summary.metric} after {rounds} round{'s' if rounds > 1 else ''}"
        sentence = _verdict(finalists, f"{best} in {ending}", f"'s {ending}")
        if goal:
            sentence = f"No method reached {goal}. {sentence}"
    else:
        sentence = "Nothing has been evaluated yet."
    return sentence if summary.complete else f"So far: {sentence}"


def _goal(summary: Summary) -> str:
    if summary.target is None:
        return ""
    goal = goal_text(summary.metric, summary.target)
    return f"{goal} accuracy" if summary.metric is Metric.ACCURACY else f"a loss of {goal}"


def _furthest(summary: Summary) -> int:
    return max(method.rounds for method in summary.methods)


def _racer(method: MethodSummary, rounds: RoundsToTarget) -> _Contestant:
    text = f"round {rounds_text(rounds)}"
    if not rounds.reached:
        text = f"not within {rounds.median:g} rounds"
    elif rounds.latest is None:
        text += f" ({rounds.reached} of {rounds.seeds} seeds)"
    elif rounds.earliest < rounds.latest:
        text += f" ({span(rounds.earliest, rounds.latest)})"
    return _Contestant(
        name=method.algorithm,
        text=text,
        seeds=rounds.seeds,
        low=rounds.earliest,
        # what is known to be later than a round stands behind what is there in that round
        value=rounds.median + (0.5 if rounds.bound else 0.0),
        high=math.inf if rounds.latest is None else rounds.latest,
        arrived=rounds.reached > 0,
    )


def _finalists(summary: Summary) -> list[_Contestant]:
    """The methods that went furthest and ended finite, from mean - spread to mean + spread."""
    finalists = []
    for method in summary.methods:
        final = method.final
        if method.rounds < _furthest(summary) or final is None or not math.isfinite(final.mean):
            continue
        value = -final.mean if summary.metric is Metric.ACCURACY else final.mean
        spread = final.spread or 0.0
        text = estimate_text(summary.metric, final)
        low, high, seeds = value - spread, value + spread, len(method.seeds)
        finalists.append(_Contestant(method.algorithm, text, seeds, low, value, high))
    return finalists


def _verdict(contestants: Sequence[_Contestant], feat: str, alone: str) -> str:
    """`feat` is what the first of several was; `alone` is what to say of a single method."""
    first, *rest = sorted(contestants, key=lambda contestant: contestant.value)
    over = _seeds(contestants)
    if not rest:
        return f"{first.name}{alone} {over}: {first.text}."
    single = all(contestant.seeds == 1 for contestant in contestants)
    # a method with one seed among others with several has a spread that nobody knows
    close = [
        other
        for other in rest
        if other.low <= first.high or (not single and 1 in (first.seeds, other.seeds))
    ]
    if close:
        level = listing([f"{one.name}, {one.text}" for one in (first, *close)], "; ")
        return f"No method was clearly {feat} {over}: the seeds do not separate {level}."
    after = f"next, {rest[0].name}: {rest[0].text}" if rest[0].arrived else "no other got there"
    caution = "; one seed shows no spread" if single else ""
    return f"{first.name} was {feat} {over}: {first.text}; {after}{caution}."


def _seeds(contestants: Sequence[_Contestant]) -> str:
    counts = [contestant.seeds for contestant in contestants]
    if max(counts) == 1:
        return "with one seed"
    return f"over {span(min(counts), max(counts))} seeds"
