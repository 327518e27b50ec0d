"""Studies: what they ask, how they tune, and that a kill of anything changes nothing."""

import json
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

from bellwether.core.errors import InputError
from bellwether.experiments.study.conduct import Conducted, conduct
from bellwether.experiments.study.plan import Study
from bellwether.experiments.study.pool import Stop
from bellwether.experiments.study.read import load
from experiment_files import EXPERIMENT, STUDY, written

COMMAND = [sys.executable, "-m", "bellwether"]
PLAIN = {**os.environ, "NO_COLOR": "1", "COLUMNS": "160", "TERM": "dumb"}
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


def test_keys_that_vary_together_and_several_questions(tmp_path: Path) -> None:
    """Rounds that were diagnosed but not measured answer nothing, and break nothing."""
    text = """
        base = "small.toml"
        [[question]]
        kind = "rise-time"
        window = 1
        [[question]]
        kind = "best-accuracy"
        [axes]
        size = [
            { label = "small", federation.clients = 10, participation.clients = 2 },
            { label = "large", federation.clients = 15 },
        ]
        [tune.grid]
        rates = [
            { label = "slow", algorithm.client.lr = 0.001, algorithm.server.lr = 0.001 },
            { label = "fast", algorithm.client.lr = 0.1, algorithm.server.lr = 0.1 },
        ]
        [experiment.training]
        eval_every = 4
        diagnose_every = 1
    """
    asked = study(tmp_path, text)
    ended = run(asked, tmp_path / "out")
    assert ended.results.complete
    assert [row.labels for row in ended.results.rows] == [{"size": "small"}, {"size": "large"}]
    for row in ended.results.rows:
        assert set(row.answers) == {"rise-time", "best-accuracy"}
        assert row.answers["rise-time"].mean in (4, 6)  # the rounds that were measured
        assert row.tuned["algorithm.client.lr"] == row.tuned["algorithm.server.lr"]
    sizes = [cell.config.tree["federation"]["clients"] for cell in asked.cells()]
    assert sizes == [10, 15]


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
