"""Runs of files: replayed, killed, gone on with, refused; real processes, real signals."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from bellwether.cli import main
from bellwether.core.errors import InputError
from bellwether.core.records import RoundRecord
from bellwether.experiments import perform
from bellwether.experiments.config.config import load
from bellwether.experiments.lock import Lock
from experiment_files import EXPERIMENT, written

COMMAND = [sys.executable, "-m", "bellwether"]
PLAIN = {**os.environ, "NO_COLOR": "1", "COLUMNS": "100", "TERM": "dumb"}


def done(folder: Path) -> tuple[bytes, list[object]]:
    """The bits of the model, and what was measured in each round."""
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    metrics = [(line["round"], line["metrics"], line["cohort"]) for line in lines]
    return (folder / "model.safetensors").read_bytes(), metrics


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    perform.begin(load(written(folder)), folder / "run")
    return folder / "run"


@pytest.fixture
def bellwether(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["bellwether", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        return int(end.value.code or 0), *capsys.readouterr()

    return run


def test_the_folders_file_gives_the_same_bits(undisturbed: Path, tmp_path: Path) -> None:
    kept = load(undisturbed / "config.toml")
    assert kept == load(written(tmp_path))
    perform.begin(kept, tmp_path / "again")
    assert done(tmp_path / "again") == done(undisturbed)
    assert (tmp_path / "again" / "config.toml").read_text() == kept.text


def test_the_commands(
    bellwether: Callable[..., tuple[int, str, str]], undisturbed: Path, tmp_path: Path
) -> None:
    file = str(written(tmp_path))
    code, stdout, stderr = bellwether(
        "run", file, "--out", "here", "-q", "--set", "training.rounds=3"
    )
    assert code == 0, stderr
    assert " FedCLG-C " in stdout
    assert (tmp_path / "here" / "report.html").exists()
    code, _, stderr = bellwether("report", "here", "--out", "page.html")
    assert code == 0, stderr
    assert "hidden = [16]" in (tmp_path / "page.html").read_text()
    assert (tmp_path / "here" / "manifest-seed-0.json").exists()
    code, _, stderr = bellwether("resume", "here", "--rounds", "6", "-q")
    assert code == 0, stderr
    assert done(tmp_path / "here") == done(undisturbed)
    code, stdout, _ = bellwether("config", "show", file)
    assert code == 0
    assert stdout == (undisturbed / "config.toml").read_text()
    assert "global_lr" in bellwether("config", "explain", "algorithm.fedclg-c")[1]
    for arguments, message in {
        ("resume", "here", "--rounds", "2"): "here is a run of 6 rounds; --rounds can only be more",
        ("resume", "nowhere"): "there is no run in nowhere",
        ("resume", "."): ". holds no config.toml; go on by the command that began it",
        (
            "run",
            file,
            "--out",
            "here",
        ): "here is not empty; go on with its run by: bellwether resume",
        (
            "run",
            file,
            "--rounds",
            "3",
        ): "--rounds is for runs without a file; change the file's key",
        ("run", "--set", "a=1", "-a", "fedavg"): "--set changes a key of a file",
        (
            "run",
            file,
            "--set",
            "algorithm.client.lrr=1",
        ): "--set algorithm.client.lrr=1: unknown key",
    }.items():
        code, _, stderr = bellwether(*arguments)
        assert code == 2, arguments
        assert stderr.startswith(f"error: {message}")
        assert stderr.count("\n") == 1


def test_a_run_that_cannot_begin_leaves_nothing(tmp_path: Path) -> None:
    for change in ("model.name=lenet5", "federation.partition.samples=5000"):
        with pytest.raises(InputError):
            perform.begin(load(written(tmp_path), [change, "model.hidden="]), tmp_path / "a" / "b")
        assert os.listdir(tmp_path) == ["small.toml"]


def started(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*COMMAND, *arguments], cwd=folder, env=PLAIN, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def until(folder: Path, rounds: int, process: "subprocess.Popen[str]") -> None:
    """Wait until so many rounds are written down."""
    metrics = folder / "metrics.jsonl"
    deadline = time.monotonic() + 120
    while not (metrics.exists() and metrics.read_text().count("\n") >= rounds):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)


LONG = EXPERIMENT.replace("rounds = 6", "rounds = 5000")


def test_killed_and_resumed_in_the_same_bits(tmp_path: Path) -> None:
    file = written(tmp_path, EXPERIMENT.replace("rounds = 6", "rounds = 120"))
    folder = tmp_path / "killed"
    process = started(tmp_path, "run", str(file), "--out", "killed", "-q")
    for rounds in (7, 40):
        until(folder, rounds, process)
        process.kill()
        assert process.wait() == -signal.SIGKILL
        process.communicate()
        process = started(tmp_path, "resume", "killed", "-q")
    _, stderr = process.communicate()
    assert process.returncode == 0, stderr
    perform.begin(load(file), tmp_path / "whole")
    assert done(folder) == done(tmp_path / "whole")


def test_killed_before_the_run_had_begun(undisturbed: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "config.toml").write_text((undisturbed / "config.toml").read_text())
    (folder / "environment.jsonx1.tmp").write_text("{")
    perform.resume(perform.kept(folder), folder)
    assert done(folder) == done(undisturbed)


@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c_once_and_twice(times: int, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    process = started(tmp_path, "run", str(written(tmp_path, LONG)), "--out", "run", "-q")
    until(folder, 3, process)
    for _ in range(times):
        process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "Traceback" not in stderr
    assert "go on with: bellwether resume run" in " ".join(stdout.split())
    rounds = (folder / "metrics.jsonl").read_text().count("\n")
    config = perform.kept(folder)
    seen: list[int] = []

    def stop(record: object) -> None:
        seen.append(record.round)  # type: ignore[attr-defined]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        perform.resume(config, folder, stop)
    assert seen == [rounds + 1]  # nothing that was done was lost


@pytest.fixture
def own_data(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    file = tmp_path / "mine.npz"
    arrays = {}
    for part, count in (("train", 400), ("test", 50)):
        arrays[f"x_{part}"] = rng.normal(size=(count, 8)).astype("float32")
        arrays[f"y_{part}"] = rng.integers(3, size=count)
    np.savez(file, **arrays)
    return file


def test_changed_data_and_another_version_are_refused(own_data: Path, tmp_path: Path) -> None:
    text = EXPERIMENT.replace('name = "digits"', f"name = {json.dumps(str(own_data))}")
    folder = tmp_path / "run"
    perform.begin(load(written(tmp_path, text.replace("rounds = 6", "rounds = 2"))), folder)
    config = perform.longer(perform.kept(folder), folder, 4)
    with np.load(own_data) as stored:
        arrays = dict(stored)
    original = own_data.read_bytes()
    arrays["x_train"][3, 3] += 1
    np.savez(own_data, **arrays)
    with pytest.raises(
        InputError, match=r"was made with other data: their fingerprint was \w{12},"
    ):
        perform.resume(perform.kept(folder), folder)
    own_data.write_bytes(original)
    environment = folder / "environment.json"
    sound = environment.read_text()
    document = json.loads(sound)
    document["versions"]["bellwether"] = "0.0.7"
    environment.write_text(json.dumps(document))
    with pytest.raises(InputError, match=r"was made by Bellwether 0\.0\.7, this is"):
        perform.resume(config, folder)
    document = json.loads(sound)
    document["versions"]["torch"] = "1.0"
    environment.write_text(json.dumps(document))
    with pytest.warns(UserWarning, match=r"was begun with torch 1\.0"):
        perform.resume(config, folder)
    assert len(done(folder)[1]) == 4


def test_two_processes_on_one_folder(tmp_path: Path) -> None:
    process = started(tmp_path, "run", str(written(tmp_path, LONG)), "--out", "run", "-q")
    try:
        until(tmp_path / "run", 2, process)
        second = subprocess.run(
            [*COMMAND, "resume", "run"],
            cwd=tmp_path, env=PLAIN, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert second.returncode == 2
        assert second.stderr == (
            "error: run is in use by another process; wait for its end, or choose another folder\n"
        )
    finally:
        process.kill()
        process.communicate()
    with Lock(tmp_path / "run"):  # the killed process holds it no longer
        pass


OPTIONS = {
    "defaults": [],
    "labels": ["--partition", "labels", "--labels", "2", "--server-fraction", "0.1"],
    "by class": ["--partition", "by-class", "--server", "shifted", "--cosine", "0.9", "--overlap"],
    "other": ["--partition", "iid", "--server", "other", "--server-data", "digits"],
    "contributors": [
        "--server",
        "from-clients",
        "--server-clients",
        "3,5",
        "--server-samples",
        "2",
    ],
    "fixed": ["--participation", "fixed", "--schedule", "0,1;2,3"],
    "incomplete": ["--participation", "incomplete", "--absent", "2", "--cohort", "3"],
}


@pytest.mark.parametrize("name", OPTIONS)
def test_a_run_by_options_keeps_its_file_too(
    name: str, bellwether: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    """Gone on with by that file it ends in the bits that more rounds by options give."""
    command = ("run", "-a", "fedclg-c", "--clients", "12", "--epochs", "1", "-q", *OPTIONS[name])
    code, _, stderr = bellwether(*command, "--rounds", "2", "--out", "here")
    assert code == 0, stderr
    assert bellwether("resume", "here/fedclg-c/seed-0", "--rounds", "3", "-q")[0] == 0
    assert bellwether(*command, "--rounds", "3", "--out", "there")[0] == 0
    here, there = (tmp_path / name / "fedclg-c/seed-0" for name in ("here", "there"))
    assert done(here) == done(there)
    assert load(here / "config.toml") == load(there / "config.toml")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_one_line_and_the_run_goes_on(undisturbed: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    metrics = folder / "metrics.jsonl"

    def fill(record: RoundRecord) -> None:
        if record.round == 3:
            metrics.rename(tmp_path / "kept")
            metrics.symlink_to("/dev/full")

    with pytest.raises(InputError, match=r"cannot write .*metrics\.jsonl: No space left on device"):
        perform.begin(load(written(tmp_path)), folder, fill)
    metrics.unlink()
    (tmp_path / "kept").rename(metrics)
    perform.resume(perform.kept(folder), folder)
    assert done(folder) == done(undisturbed)
