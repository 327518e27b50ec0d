"""Studies: what they ask, how they tune, and that a kill of anything changes nothing."""

import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellwether.core.errors import InputError
from bellwether.core.records import RoundRecord
from bellwether.experiments.results import Run
from bellwether.experiments.study import questions
from bellwether.experiments.study.conduct import Conducted, conduct
from bellwether.experiments.study.plan import Study
from bellwether.experiments.study.pool import Stop
from bellwether.experiments.study.read import load
from bellwether.experiments.study.results import over
from experiment_files import EXPERIMENT, line_of, written

COMMAND = [sys.executable, "-m", "bellwether"]
PLAIN = {**os.environ, "NO_COLOR": "1", "COLUMNS": "160", "TERM": "dumb"}
STUDY = """\
title = "two methods"
base = "small.toml"

[question]
kind = "rounds-to-target"
target = 0.3

[axes]
method = ["fedavg", { name = "fedclg-c", label = "ours" }]
participation.clients = [2, 4]
seeds = 2
"""
TUNE = """
[tune]
validation = 0.2

[tune.grid]
"algorithm.client.lr" = [0.01, 0.2]
"algorithm.server.lr" = [0.05, 0.1]
"""


def study(folder: Path, text: str = STUDY, base: str = EXPERIMENT) -> Study:
    written(folder, base)
    return load(written(folder, text, "study.toml"))


def run(asked: Study, root: Path, processes: int = 2) -> Conducted:
    return conduct(asked, root, processes, lambda *_: lambda *_: None, Stop())


def found(root: Path) -> dict[str, Any]:
    """The results without what a clock measured."""
    document: dict[str, Any] = json.loads((root / "results.json").read_text())
    for row in document["rows"]:
        for measured in row["measured"]:
            del measured["seconds"]
    return document


def models(root: Path) -> dict[str, bytes]:
    files = sorted(root.rglob("model.safetensors"))
    return {str(file.relative_to(root)): file.read_bytes() for file in files}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tuned study, undisturbed."""
    folder = tmp_path_factory.mktemp("study")
    assert run(study(folder, STUDY + TUNE), folder / "out").results.complete
    return folder / "out"


def test_a_study_is_its_runs(whole: Path, tmp_path: Path) -> None:
    """Each cell is the run that its own file gives, one after the other, without a study."""
    from bellwether.experiments import perform
    from bellwether.experiments.config.config import load as load_config

    document = found(whole)
    assert document["complete"]
    assert [list(row["labels"].values()) for row in document["rows"]] == [
        ["fedavg", "2"], ["fedavg", "4"], ["ours", "2"], ["ours", "4"],
    ]  # fmt: skip
    row = document["rows"][3]
    cell = row["measured"][1]
    assert cell["folder"] == "runs/ours/participation.clients=4/seed-1"
    config = load_config(whole / cell["folder"] / "config.toml")
    assert config.tree["algorithm"]["name"] == "fedclg-c"
    assert config.tree["training"]["seed"] == 1
    assert config.tree["participation"]["clients"] == 4
    assert config.tree["algorithm"]["client"]["lr"] == row["tuned"]["algorithm.client.lr"]
    result = perform.begin(config, tmp_path / "alone")
    name = "model.safetensors"
    assert (tmp_path / "alone" / name).read_bytes() == (whole / cell["folder"] / name).read_bytes()
    reached = [r.round for r in result.history if r.metrics["accuracy"] >= 0.3]
    assert cell["answers"]["rounds-to-target"] == (reached[0] if reached else None)
    assert cell["final_accuracy"] == result.history[-1].metrics["accuracy"]


def test_the_same_study_again_does_nothing(whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole, tmp_path / "out")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("metrics.jsonl")}
    asked = study(tmp_path, STUDY + TUNE)
    began: list[str] = []

    def watch(phase: str, cells: object) -> Any:
        began.append(phase)
        return lambda *_: None

    assert conduct(asked, tmp_path / "out", 2, watch, Stop()).results.complete
    assert began == []
    assert {path: path.stat().st_mtime_ns for path in before} == before
    more = study(tmp_path, STUDY.replace("seeds = 2", "seeds = 3") + TUNE)
    assert conduct(more, tmp_path / "out", 2, watch, Stop()).results.complete
    assert began == ["running"]
    assert {path: path.stat().st_mtime_ns for path in before} == before
    other = study(tmp_path, STUDY + TUNE, EXPERIMENT.replace("alpha = 0.2", "alpha = 0.3"))
    with pytest.raises(
        InputError, match=r"was made with federation.partition.alpha = 0.2, not 0.3"
    ):
        run(other, tmp_path / "out")


def begun(folder: Path) -> "subprocess.Popen[str]":
    written(folder)
    written(folder, STUDY + TUNE, "study.toml")
    return subprocess.Popen(
        [*COMMAND, "study", "study.toml", "--out", "out", "--jobs", "2", "-q"],
        cwd=folder, env=PLAIN, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def until_rounds(root: Path, rounds: int, process: "subprocess.Popen[str]") -> None:
    deadline = time.monotonic() + 120
    while _rounds(root) < rounds and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.005)


def _rounds(root: Path) -> int:
    total = 0
    for file in root.rglob("metrics.jsonl"):
        total += file.read_text().count("\n")
    return total


def children(process: int) -> list[int]:
    """Processes that this one has begun."""
    listed = Path(f"/proc/{process}/task/{process}/children").read_text()
    return [int(number) for number in listed.split()]


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_study_is_killed_at_several_instants(whole: Path, tmp_path: Path) -> None:
    root = tmp_path / "out"
    kills = 0
    for rounds in (5, 60, 110):
        process = begun(tmp_path)
        until_rounds(root, rounds, process)
        workers = children(process.pid) if process.poll() is None else []
        process.kill()
        kills += process.wait() == -signal.SIGKILL
        process.communicate()
        deadline = time.monotonic() + 20
        while any(_alive(worker) for worker in workers):  # they end with it
            assert time.monotonic() < deadline
            time.sleep(0.01)
    assert kills >= 2
    process = begun(tmp_path)
    stdout, stderr = process.communicate(timeout=300)
    assert process.returncode == 0, stderr
    assert "ours" in stdout
    assert found(root) == found(whole)
    assert models(root) == models(whole)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_workers_are_killed(whole: Path, tmp_path: Path) -> None:
    process = begun(tmp_path)
    root = tmp_path / "out"
    killed = 0
    for rounds in (5, 30, 60):
        until_rounds(root, rounds, process)
        if process.poll() is None:
            for worker in children(process.pid)[:1]:
                os.kill(worker, signal.SIGKILL)
                killed += 1
    stdout, stderr = process.communicate(timeout=300)
    assert killed
    assert process.returncode == 0, stdout + stderr
    assert found(root) == found(whole)
    assert models(root) == models(whole)


def test_ctrl_c_and_the_same_command_goes_on(whole: Path, tmp_path: Path) -> None:
    process = begun(tmp_path)
    until_rounds(tmp_path / "out", 10, process)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=120)
    assert process.returncode == 130, stderr
    assert "Stopped by Ctrl-C; what was done is kept. The same command goes on." in stdout
    assert "Traceback" not in stderr
    assert run(study(tmp_path, STUDY + TUNE), tmp_path / "out").results.complete
    assert found(tmp_path / "out") == found(whole)


def _alive(process: int) -> bool:
    try:
        return "Z" not in re.sub(r".*\)", "", Path(f"/proc/{process}/stat").read_text())[:3]
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_run_that_fails_or_diverges_stops_no_other(tmp_path: Path) -> None:
    text = STUDY.replace("participation.clients = [2, 4]", '"algorithm.client.lr" = [0.1, 1e9]')
    ended = run(study(tmp_path, text), tmp_path / "out")
    assert ended.results.complete
    assert not ended.failed
    bad = ended.results.rows[1]
    assert [each.outcome for each in bad.measured] == ["diverged", "diverged"]
    assert bad.answers["rounds-to-target"].censored == 2
    text = STUDY.replace(
        "participation.clients = [2, 4]", "federation.partition.samples = [20, 5000]"
    )
    ended = run(study(tmp_path, text), tmp_path / "other")
    assert len(ended.failed) == 4
    assert all("5000 samples each need" in reason for reason in ended.failed.values())
    assert [row.unfinished for row in ended.results.rows] == [0, 2, 0, 2]
    assert not ended.results.complete


def test_tuning_never_looks_at_the_test_set(tmp_path: Path) -> None:
    """Other test samples, the same choice and the same figures of every point of the grid."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(500, 8)).astype("float32")
    y = (x[:, 0] > 0).astype(int) + (x[:, 1] > 0)
    accounts = []
    for labels in (y[400:], 2 - y[400:]):
        folder = tmp_path / str(len(accounts))
        folder.mkdir()
        file = folder.parent / "mine.npz"
        np.savez(file, x_train=x[:400], y_train=y[:400], x_test=x[400:], y_test=labels)
        base = EXPERIMENT.replace('name = "digits"', f"name = {json.dumps(str(file))}")
        base = base.replace("samples = 20", "samples = 15")
        text = STUDY.replace("participation.clients = [2, 4]\n", "") + TUNE
        run(study(folder, text, base), folder / "out")
        accounts.append((folder / "out" / "tuned.json").read_text())
    assert accounts[0] == accounts[1]
    points = json.loads(accounts[0])["fedavg"]["points"]
    assert list(points) == ["algorithm.client.lr=0.01", "algorithm.client.lr=0.2"]  # no server


def test_the_rule_of_tuning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The smallest mean where never is infinite; ties by accuracy; then the first."""
    from bellwether.experiments.study import conduct as room

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

        monkeypatch.setattr(room, "run_of", of)
        chosen = room.choose(asked, cells, tmp_path)
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
