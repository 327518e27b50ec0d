"""What a comparison of methods wrote down: its runs, and what the methods were compared on."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from bellwether.core.errors import InputError
from bellwether.core.records import RoundRecord


def check_target(target: float | None) -> None:
    """Raise `InputError` for a target that no run can be compared with."""
    if target is not None and not math.isfinite(target):
        raise InputError(f"the target must be a finite number, got {target}")


@dataclass(frozen=True)
class Run:
    """One method trained from one seed."""

    algorithm: str
    """The method's name as it is shown."""
    seed: int
    records: tuple[RoundRecord, ...]
    """The rounds in order; fewer than planned when the run was interrupted."""
    complete: bool = True

    def __post_init__(self) -> None:
        rounds = [0, *(record.round for record in self.records)]
        if any(later <= earlier for earlier, later in pairwise(rounds)):
            raise InputError(
                f"{self.algorithm}, seed {self.seed}: give the records in order of their rounds, "
                "counted from 1, each once"
            )

    @property
    def rounds(self) -> int:
        """The last round that was recorded; 0 before the first."""
        return self.records[-1].round if self.records else 0


@dataclass(frozen=True, eq=False)
class Comparison:
    """Methods side by side: the same data, model and seeds."""

    title: str
    runs: tuple[Run, ...]
    settings: Mapping[str, str]
    """What a reader must know of the setting, in the order to show: data, clients, model ..."""
    target: float | None
    """The accuracy (or, where there is none, the loss) for "rounds to the target"."""
    planned_rounds: int
    histogram: NDArray[np.integer] | None = None
    """Samples by client and label."""
    server_histogram: NDArray[np.integer] | None = None
    """The server's samples by label, or those it draws from."""
    server_draws: int | None = None
    """How many the server draws of them in each round; None: it has them all."""
    class_names: tuple[str, ...] = ()
    """What label 0, 1 ... stand for; without them the numbers are shown."""
    population: int | None = None
    """N, the number of clients; None: as many as are known of."""
    configurations: Mapping[str, str] = field(default_factory=dict)
    """The files that the runs were made from, by the method (or what else they are of)."""
    notes: tuple[str, ...] = ()
    """What a reader must know that the records do not tell."""

    def __post_init__(self) -> None:
        if not self.runs:
            raise InputError("nothing to compare; give the comparison at least one run")
        names = [(run.algorithm, run.seed) for run in self.runs]
        for algorithm, seed in names:
            if names.count((algorithm, seed)) > 1:
                raise InputError(f"{algorithm} has two runs with seed {seed}; keep one of them")
        if self.planned_rounds < max(1, *(run.rounds for run in self.runs)):
            raise InputError(
                f"planned_rounds is {self.planned_rounds}; it must be at least 1 and at least "
                f"the {max(run.rounds for run in self.runs)} rounds that were recorded"
            )
        check_target(self.target)
        self._check_labels()

    def _check_labels(self) -> None:
        labels = set()
        for name, counts, axes in (
            ("histogram", self.histogram, 2),
            ("server_histogram", self.server_histogram, 1),
        ):
            if counts is None:
                continue
            if counts.ndim != axes or counts.dtype.kind not in "iu" or counts.size == 0:
                shape = "clients x labels" if axes == 2 else "labels"
                raise InputError(f"{name} must hold whole numbers, {shape}; got {counts.shape}")
            if counts.min() < 0:
                raise InputError(f"{name} counts samples, so nothing in it can be negative")
            labels.add(counts.shape[-1])
        if len(labels) > 1:
            raise InputError(
                "histogram and server_histogram must agree on the number of labels, "
                f"got {' and '.join(map(str, sorted(labels)))}"
            )
        if self.class_names and labels and len(self.class_names) < max(labels):
            raise InputError(
                f"{len(self.class_names)} class names for {max(labels)} labels; "
                "name every label, or none"
            )

    @property
    def algorithms(self) -> tuple[str, ...]:
        """The methods in the order in which they first appear."""
        return tuple(dict.fromkeys(run.algorithm for run in self.runs))

    def runs_of(self, algorithm: str) -> tuple[Run, ...]:
        """The method's runs, by seed."""
        runs = (run for run in self.runs if run.algorithm == algorithm)
        return tuple(sorted(runs, key=lambda run: run.seed))

    def finished(self, run: Run) -> bool:
        """Whether the run came to the planned end."""
        return run.complete and run.rounds == self.planned_rounds
