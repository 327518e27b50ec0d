"""A study from beginning to end: tune, run, collect; what is done is not done again."""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from bellwether.core.errors import InputError
from bellwether.core.files import make_folder, write_atomically
from bellwether.core.records import RoundRecord
from bellwether.experiments.config.config import load
from bellwether.experiments.config.source import Tree
from bellwether.experiments.lock import Lock
from bellwether.experiments.run_directory import CONFIG
from bellwether.experiments.study.plan import Cell, Study
from bellwether.experiments.study.pool import Stop, run_all
from bellwether.experiments.study.results import Results, collect, flatly, run_of
from bellwether.experiments.study.worker import FAILED, outcome

Watch = Callable[[str, Sequence[Cell]], Callable[[Cell, RoundRecord], None]]
"""Told of the runs of a phase before they begin; what it gives is told of their rounds."""


@dataclass(frozen=True)
class Conducted:
    """How far a study came."""

    results: Results
    failed: dict[str, str]
    """Runs that could not be done, by name, and why."""
    stopped: bool


def conduct(study: Study, root: Path, processes: int, watch: Watch, stop: Stop) -> Conducted:
    """Run all that is not done, so many runs at a time; the results are in `results.json`."""
    make_folder(root)
    with Lock(root):
        tuned: dict[str, Tree] = {}
        failed: dict[str, str] = {}
        tuning = study.tuning_cells()
        if tuning:
            runs = [run for points in tuning.values() for _, own in points.values() for run in own]
            failed |= _run("tuning", runs, root, processes, watch, stop)
            if stop.level or failed:
                return Conducted(collect(study, [], root, {}), failed, bool(stop.level))
            tuned = choose(study, tuning, root)
        cells = study.cells(tuned)
        failed |= _run("running", cells, root, processes, watch, stop)
        results = collect(study, cells, root, tuned)
        write_atomically(root / "results.json", json.dumps(results.document, indent=1))
        return Conducted(results, failed, bool(stop.level))


def choose(
    study: Study, tuning: dict[str, dict[str, tuple[Tree, list[Cell]]]], root: Path
) -> dict[str, Tree]:
    """The best point of each group's grid, on the validation split.

    The rule: the best mean over the seeds of the first question's answer, where a run without an
    answer counts as never; among equal means the larger mean accuracy at the end; then the first.
    """
    kind, question = study.questions[0]
    chosen: dict[str, Tree] = {}
    account: dict[str, Any] = {}
    for group, points in tuning.items():
        ranks = {}
        for point, (_, runs) in points.items():
            ran = [run_of(root / run.name, run.name, run.seed) for run in runs]
            answers = [question.answer(run) if run.records else None for run in ran]
            never = math.inf if question.less else -math.inf
            mean = fmean(never if each is None else each for each in answers)
            final = fmean(_final(run.records) for run in ran)
            ranks[point] = (mean if question.less else -mean, -final)
            account.setdefault(group, {"points": {}})["points"][point] = {
                kind: answers,
                "mean": mean if math.isfinite(mean) else None,
                "accuracy": final if math.isfinite(final) else None,
            }
        best = min(ranks, key=lambda point: ranks[point])
        chosen[group] = points[best][0]
        account[group]["chosen"] = flatly(chosen[group])
    write_atomically(root / "tuned.json", json.dumps(account, indent=1))
    return chosen


def _final(records: Sequence[RoundRecord]) -> float:
    """The accuracy at the end, or less the loss; what diverged is the worst of all."""
    for record in reversed(records):
        if "loss" in record.metrics:  # a round may have been diagnosed only
            value = record.metrics.get("accuracy", -record.metrics["loss"])
            return value if math.isfinite(value) else -math.inf
    return -math.inf


def _run(
    phase: str, cells: Sequence[Cell], root: Path, processes: int, watch: Watch, stop: Stop
) -> dict[str, str]:
    """Run those that are not done; why some could not be."""
    left = [cell for cell in cells if not _done(cell, root)]
    if not left:
        return {}
    ended = run_all(left, root, processes, watch(phase, left), stop)
    return {name: reason for name, (how, reason) in ended.items() if how == FAILED}


def _done(cell: Cell, root: Path) -> bool:
    """Whether its run has ended; `InputError` where the folder holds another's."""
    folder = root / cell.name
    if not (folder / CONFIG).exists():
        return False
    kept = load(folder / CONFIG)
    if kept != cell.config:
        one, other = flatly(kept.tree), flatly(cell.config.tree)
        key = next(name for name in {**one, **other} if one.get(name) != other.get(name))
        raise InputError(
            f"{folder} was made with {key} = {one.get(key)!r}, not {other.get(key)!r}; choose"
            " another --out, or take that folder away"
        )
    return outcome(folder) is not None
