"""What a study asks of each run. No answer (None) is a run that never got there."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import ClassVar, Protocol

from bellwether.core.errors import InputError, check_fraction
from bellwether.core.records import RoundRecord
from bellwether.experiments.config.schema import Choice, table
from bellwether.experiments.results import Run, check_target
from bellwether.experiments.summary import Metric, first_at
from bellwether.federation.checks import whole


class Question(Protocol):
    """A number of each run."""

    less: ClassVar[bool]
    """Whether less is better."""
    unit: ClassVar[str]

    def answer(self, run: Run) -> float | None:
        """The number; None where the run never got there."""

    def check(self, rounds: int) -> None:
        """Raise `InputError` where so many rounds cannot answer."""


class _Anyhow:
    def check(self, rounds: int) -> None:
        """Any number of rounds answers."""


@dataclass(frozen=True)
class RoundsToTarget(_Anyhow):
    """The first round at the target."""

    target: float
    less = True
    unit = "rounds"

    def __post_init__(self) -> None:
        check_target(self.target)

    def answer(self, run: Run) -> float | None:
        round, censored = first_at(run, metric_of(run), self.target)
        return None if censored else round


@dataclass(frozen=True)
class BytesToTarget(_Anyhow):
    """Bytes sent, down and up together, up to the end of the first round at the target."""

    target: float
    less = True
    unit = "bytes"

    def __post_init__(self) -> None:
        check_target(self.target)

    def answer(self, run: Run) -> float | None:
        round, censored = first_at(run, metric_of(run), self.target)
        sent = (r.bytes_down + r.bytes_up for r in run.records if r.round <= round)
        return None if censored else sum(sent)


@dataclass(frozen=True)
class AccuracyAfter:
    """The accuracy after T rounds: at the last measured one up to there."""

    rounds: int
    less = False
    unit = "accuracy"

    def __post_init__(self) -> None:
        whole(self.rounds, "rounds", 1)

    def check(self, rounds: int) -> None:
        if self.rounds > rounds:
            raise InputError(
                f"the question looks at round {self.rounds}, but there are {rounds} rounds"
            )

    def answer(self, run: Run) -> float | None:
        values = [value for round, value in accuracies(run) if round <= self.rounds]
        return values[-1] if values and run.rounds >= self.rounds else None


@dataclass(frozen=True)
class BestAccuracy(_Anyhow):
    """The best accuracy of any round (SAFARI's tables)."""

    less = False
    unit = "accuracy"

    def answer(self, run: Run) -> float | None:
        return max((value for _, value in accuracies(run)), default=None)


@dataclass(frozen=True)
class FinalAccuracy(_Anyhow):
    """The accuracy at the end, as the mean of the last measured rounds (FSL: 20)."""

    window: int = 1
    less = False
    unit = "accuracy"

    def __post_init__(self) -> None:
        whole(self.window, "window", 1)

    def answer(self, run: Run) -> float | None:
        rolled = _rolled([value for _, value in accuracies(run)], self.window)
        return rolled[-1] if rolled and run.complete else None


@dataclass(frozen=True)
class RiseTime(_Anyhow):
    """The first round at a share of the final accuracy, both on the rolled curve (FSL)."""

    share: float = 0.9
    window: int = 20
    less = True
    unit = "rounds"

    def __post_init__(self) -> None:
        whole(self.window, "window", 1)
        check_fraction(share=self.share)

    def answer(self, run: Run) -> float | None:
        points = accuracies(run)
        rolled = _rolled([value for _, value in points], self.window)
        if not rolled or not run.complete:
            return None
        enough = self.share * rolled[-1]
        return next(r for (r, _), v in zip(points, rolled, strict=True) if v >= enough)


QUESTION = Choice(
    "kind",
    {
        "rounds-to-target": table(RoundsToTarget),
        "bytes-to-target": table(BytesToTarget),
        "accuracy-after": table(AccuracyAfter),
        "best-accuracy": table(BestAccuracy),
        "final-accuracy": table(FinalAccuracy),
        "rise-time": table(RiseTime),
    },
    meaning="what is asked of each run",
)


def metric_of(run: Run) -> Metric:
    """Accuracy where the run has it, otherwise the loss."""
    measured = any(Metric.ACCURACY in record.metrics for record in run.records)
    return Metric.ACCURACY if measured else Metric.LOSS


def accuracies(run: Run) -> list[tuple[int, float]]:
    """The measured rounds with a finite accuracy, and it."""
    found = ((record.round, _accuracy(record)) for record in run.records)
    return [(round, value) for round, value in found if math.isfinite(value)]


def _accuracy(record: RoundRecord) -> float:
    return record.metrics.get(Metric.ACCURACY, math.nan)


def _rolled(values: Sequence[float], window: int) -> list[float]:
    """At each point the mean of the last `window` values, of fewer at the beginning."""
    sums = [0.0, *accumulate(values)]
    ends = range(1, len(sums))
    return [(sums[end] - sums[max(0, end - window)]) / min(end, window) for end in ends]
