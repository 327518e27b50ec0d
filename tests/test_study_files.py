"""The file of a study: its questions, its rule of tuning, and what contradicts."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellwether.core.errors import InputError
from bellwether.core.records import RoundRecord
from bellwether.experiments.results import Run
from bellwether.experiments.study import conduct, questions
from bellwether.experiments.study.plan import Study
from bellwether.experiments.study.read import load
from bellwether.experiments.study.results import over
from experiment_files import EXPERIMENT, STUDY, line_of, written


def study(folder: Path, text: str = STUDY, base: str = EXPERIMENT) -> Study:
    written(folder, base)
    return load(written(folder, text, "study.toml"))


def test_the_rule_of_tuning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The smallest mean where never is infinite; ties by accuracy; then the first."""
    one = STUDY.replace('"fedavg", ', "").replace("participation.clients = [2, 4]\n", "")
    grid = '[tune]\nseeds = 2\n[tune.grid]\n"algorithm.client.lr" = [0.1, 0.2, 0.3]\n'
    asked = study(tmp_path, one + grid)
    cells = asked.tuning_cells()
    for accuracies, best in (
        ([[0.3, 0.4], [0.1, 0.3], [0.2, 0.1]], 0.1),  # 1, 2, never
        ([[0.3, 0.3], [0.3, 0.5], [0.0, 0.0]], 0.2),  # a tie, by the accuracy at the end
        ([[0.1, 0.1], [0.2, 0.1], [0.1, 0.2]], 0.3),  # nobody got there
        ([[0.1, 0.1], [0.1, 0.1], [0.1, 0.1]], 0.1),
    ):
        by_lr = dict(zip((0.1, 0.2, 0.3), accuracies, strict=True))

        def of(folder: Path, name: str, seed: int, by_lr: Any = by_lr) -> Run:
            return curve(by_lr[float(name.split("lr=")[1].split("/")[0])])

        monkeypatch.setattr(conduct, "run_of", of)
        chosen = conduct.choose(asked, cells, tmp_path)
        assert chosen == {"ours": {"algorithm": {"client": {"lr": best}}}}


# Questions, against their definitions.


def curve(values: list[float], bytes_each: int = 10) -> Run:
    records = (
        RoundRecord(n, (), bytes_each, 1, 0.0, {"loss": 1.0, "accuracy": value})
        for n, value in enumerate(values, 1)
    )
    return Run("method", 0, tuple(records))


def test_questions_in_closed_form() -> None:
    run = curve([0.1, 0.5, 0.4, 0.8, 0.6])
    for question, answer in (
        (questions.RoundsToTarget(0.5), 2),
        (questions.RoundsToTarget(0.81), None),
        (questions.BytesToTarget(0.8), 44),
        (questions.AccuracyAfter(3), 0.4),
        (questions.AccuracyAfter(6), None),
        (questions.BestAccuracy(), 0.8),
        (questions.FinalAccuracy(), 0.6),
        (questions.FinalAccuracy(2), 0.7),
        (questions.RiseTime(0.9, 1), 4),
        (questions.RiseTime(0.5, 2), 3),  # rolled: .1 .3 .45 .6 .7, so .35 first in round 3
    ):
        found = question.answer(run)
        assert found == pytest.approx(answer) if answer is not None else found is None


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.integers(1, 8))
def test_the_rise_time_is_the_first_such_round(values: list[float], window: int) -> None:
    rolled = [np.mean(values[max(0, end - window) : end]) for end in range(1, len(values) + 1)]
    answer = questions.RiseTime(0.9, window).answer(curve(values))
    assert answer is not None
    slack = 1e-9
    assert rolled[int(answer) - 1] >= 0.9 * rolled[-1] - slack
    assert all(value < 0.9 * rolled[-1] + slack for value in rolled[: int(answer) - 1])


@given(st.lists(st.none() | st.floats(0, 100), max_size=8))
def test_over_counts_every_run(values: list[float | None]) -> None:
    told = over(values, less=True)
    assert told.runs == len(values)
    assert told.censored == values.count(None)
    if told.censored or not values:
        assert told.mean is None
        assert told.spread is None
    else:
        assert told.mean == pytest.approx(np.mean(values))
        if len(values) > 1:
            assert told.spread == pytest.approx(np.std(values, ddof=1), abs=1e-9)
    if values:
        middle = np.median([math.inf if value is None else value for value in values])
        assert told.median == (pytest.approx(middle) if math.isfinite(middle) else None)


# What is refused.

CONTRADICTIONS = {
    "the same key twice": (
        'few = [{ label = "few", participation.clients = 1 }]',
        "few = ",
        "axes participation.clients and few both say participation.clients; keep one of them",
    ),
    "a seed twice": ("seed = [5]", "seed = ", "two axes say training.seed; keep one of them"),
    "a value twice": (
        "federation.partition.alpha = [1, 1]",
        "federation",
        "axis federation.partition.alpha has 1 twice; keep one",
    ),
    "no value": ("data.classes = []", "data", "axis data.classes has no value; give one or leave"),
    "no list": ("data.classes = 3", "data", "axis data.classes must be a list of values, not 3"),
    "a key that a method has not": (
        "algorithm.gradient = ['full', 'batch']",
        "algorithm",
        "unknown key 'gradient' in [algorithm] of name = \"fedavg\"; did you mean client?",
    ),
    "an unknown axis": (
        "alpha = [1, 2]",
        "alpha",
        "alpha is no key of an experiment, so its values must be tables with a label",
    ),
    "an unknown table": (
        "[tunes]",
        "[tunes]",
        "unknown key 'tunes' in a study; did you mean tune?",
    ),
    "a grid over an axis": (
        '[tune]\n[tune.grid]\n"participation.clients" = [1]',
        "participation",
        "two axes say participation.clients; keep one of them",
    ),
    "a validation split of its own": (
        '[experiment.data]\nvalidation = 0.1\n[tune]\n[tune.grid]\n"algorithm.client.lr" = [1]',
        "[tune]",
        "[tune] holds a validation split out itself; leave out data.validation",
    ),
    "a grid for nobody": (
        '[tune]\n[tune.grid]\n"algorithm.q" = [0.5]',
        '"algorithm.q"',
        "no method of the study has algorithm.q to tune",
    ),
    "a wrong value of the base": (
        "[experiment]\ntraining.rounds = 1.5",
        "training",
        "[training] rounds must be a whole number, not 1.5",
    ),
}


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_a_contradiction_is_one_line(name: str, tmp_path: Path) -> None:
    added, place, message = CONTRADICTIONS[name]
    text = STUDY + added + "\n"
    with pytest.raises(InputError) as refused:
        study(tmp_path, text)
    file = tmp_path / "study.toml"
    line = line_of(text, place)
    told = str(refused.value)
    assert told.startswith(f"{file}:{line}"), told
    assert message in told
    assert "\n" not in told


def test_questions_that_cannot_be_answered(tmp_path: Path) -> None:
    later = STUDY.replace('"rounds-to-target"\ntarget = 0.3', '"accuracy-after"\nrounds = 7')
    with pytest.raises(InputError, match="looks at round 7, but there are 6 rounds in runs/fedavg"):
        study(tmp_path, later)
    with pytest.raises(InputError, match=r"there is no \[question\]"):
        study(tmp_path, STUDY.replace("[question]", "[[none]]").split("[[none]]")[0])
    with pytest.raises(InputError, match="is never measured"):
        study(tmp_path, STUDY + "[experiment]\ntraining.eval_every = 0\n")
