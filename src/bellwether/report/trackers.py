"""Records for trackers of experiments: what they are told of a round."""

from collections.abc import Callable
from typing import Protocol

from bellwether.core.records import RoundRecord
from bellwether.experiments.results import Comparison, Run


class Tracker(Protocol):
    """One run in a tracker; also an `on_round` of `train`."""

    def __call__(self, record: RoundRecord) -> None:
        """Take in a round."""

    def close(self) -> None:
        """Write what is not written yet, and end the run."""


def scalars(record: RoundRecord) -> dict[str, float]:
    """The numbers of a round by name."""
    costs = {
        "bytes/down": record.bytes_down,
        "bytes/up": record.bytes_up,
        "seconds": record.seconds,
        "clients": len(record.cohort),
    }
    return {**record.metrics, **costs}


def export(comparison: Comparison, begin: Callable[[Run], Tracker]) -> None:
    """Tell a tracker of every round of every run."""
    for run in comparison.runs:
        tracker = begin(run)
        try:
            for record in run.records:
                tracker(record)
        finally:
            tracker.close()
