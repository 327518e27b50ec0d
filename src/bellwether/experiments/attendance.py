"""Who took part: how often the server asked each client."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bellwether.experiments.results import Comparison, Run


@dataclass(frozen=True, eq=False)
class Attendance:
    """How often each client was asked by one method, seed by seed."""

    algorithm: str
    seeds: tuple[int, ...]
    rounds: tuple[int, int]
    """The least and the most rounds in which clients were asked, over the seeds."""
    cohorts: tuple[int, int]
    """The least and the most clients of such a round."""
    times: NDArray[np.int64]
    """By seed and client."""


def attendance(comparison: Comparison) -> tuple[Attendance, ...]:
    """Of every method that ran, whether it asked anybody or not."""
    runs = [run for run in comparison.runs if run.records]
    population = _population(comparison, runs)
    found = []
    for name in comparison.algorithms:
        own = [run for run in comparison.runs_of(name) if run.records]
        if own:
            sizes = [[len(r.cohort) for r in run.records if r.cohort] for run in own]
            asked = [len(of_run) for of_run in sizes]
            flat = [size for of_run in sizes for size in of_run] or [0]
            times = np.stack([_times(run, population) for run in own])
            found.append(
                Attendance(
                    name,
                    tuple(run.seed for run in own),
                    (min(asked), max(asked)),
                    (min(flat), max(flat)),
                    times,
                )
            )
    return tuple(found)


def _population(comparison: Comparison, runs: list[Run]) -> int:
    """N where it is known, else as many as were ever met."""
    met = max((max(r.cohort) for run in runs for r in run.records if r.cohort), default=-1) + 1
    held = 0 if comparison.histogram is None else len(comparison.histogram)
    return max(met, held, comparison.population or 0)


def _times(run: Run, population: int) -> NDArray[np.int64]:
    asked = [client for record in run.records for client in record.cohort]
    return np.bincount(np.array(asked, dtype=np.int64), minlength=population).astype(np.int64)
