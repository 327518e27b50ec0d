"""The command as people type it: its output, its exit codes, and Ctrl-C."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from bellwether import __version__
from bellwether.cli import main
from bellwether.engines.parcels import Unfit

COMMAND = [sys.executable, "-c", "from bellwether.cli import main; main()"]
PLAIN = {**os.environ, "NO_COLOR": "1", "COLUMNS": "100", "TERM": "dumb"}


class Ran(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


Command = Callable[..., Ran]


@pytest.fixture
def bellwether(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    """The command, run in this process in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    for name in ("NO_COLOR", "COLUMNS", "TERM"):
        monkeypatch.setenv(name, PLAIN[name])

    def run(*arguments: str) -> Ran:
        monkeypatch.setattr(sys, "argv", ["bellwether", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        return Ran(int(end.value.code or 0), *capsys.readouterr())

    return run


def test_the_installed_command() -> None:
    command = Path(sys.executable).with_name("bellwether")
    run = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)
    assert run.stdout == f"bellwether {__version__}\n"


def test_python_runs_the_package() -> None:
    module = [sys.executable, "-m", "bellwether", "--version"]
    run = subprocess.run(module, capture_output=True, text=True, check=True)
    assert run.stdout == f"bellwether {__version__}\n"


def test_help_and_lists(bellwether: Command) -> None:
    assert "bellwether demo" in bellwether("--help").stdout
    assert "fedclg-c" in bellwether("list", "algorithms").stdout
    assert "mnist" in bellwether("list", "data").stdout
    assert "lenet5" in bellwether("list", "models").stdout


def test_demo_ends_with_a_table_and_a_page(bellwether: Command, tmp_path: Path) -> None:
    run = bellwether("demo", "--rounds", "3", "--seeds", "2")
    assert run.returncode == 0, run.stderr
    for method in ("FedAvg", "Server only", "CLG-SGD", "FedCLG-C", "FedCLG-S"):
        assert re.search(rf"^ {method} +\d", run.stdout, re.MULTILINE)
    page = re.search(r"The curves: (.*)", run.stdout)
    assert page
    assert Path(page[1]) == tmp_path / "runs" / "demo" / "report.html"
    assert Path(page[1]).stat().st_size > 100_000
    again = bellwether("demo", "--rounds", "3", "--seeds", "2", "--quiet")
    assert again.returncode == 0
    assert again.stdout.count("\n") < run.stdout.count("\n")


RUN = ["run", "-a", "fedclg-c", "-a", "fedavg", "--clients", "20", "--quiet", "--epochs", "1"]


def test_run_writes_everything_down_and_goes_on(bellwether: Command, tmp_path: Path) -> None:
    first = bellwether(*RUN, "--rounds", "2", "--out", "here")
    assert first.returncode == 0, first.stderr
    refused = bellwether(*RUN, "--rounds", "4", "--out", "here")
    assert refused.returncode == 2
    assert refused.stderr == (
        "error: here is not empty; add --resume to go on, or give another --out\n"
    )
    more = bellwether(*RUN, "--rounds", "4", "--out", "here", "--resume")
    assert more.returncode == 0, more.stderr
    whole = bellwether(*RUN, "--rounds", "4", "--out", "there")
    assert whole.returncode == 0, whole.stderr

    def metrics(folder: str) -> list[object]:
        lines = (tmp_path / folder / "fedclg-c/seed-0/metrics.jsonl").read_text().splitlines()
        return [(r["round"], r["metrics"], r["cohort"]) for r in map(json.loads, lines)]

    assert len(metrics("here")) == 4
    assert metrics("here") == metrics("there")
    model = "fedclg-c/seed-0/model.safetensors"
    assert (tmp_path / "here" / model).read_bytes() == (tmp_path / "there" / model).read_bytes()


def test_run_says_where_the_time_went(bellwether: Command) -> None:
    timed = bellwether(*RUN, "--rounds", "2", "--workers", "1", "--profile", "--out", "here")
    assert timed.returncode == 0, timed.stderr
    for name in ("FedCLG-C", "FedAvg"):
        assert f"{name}: where a round's time went (mean of 2)" in timed.stdout
    assert re.search(r"^ clients' gradients +0\.\d{5} +\d+\.\d%", timed.stdout, re.MULTILINE)
    silent = bellwether(*RUN, "--rounds", "2", "--out", "there")
    assert "where a round's time went" not in silent.stdout


MISTAKES = {
    "an unknown method": (["run", "-a", "fedclgc"], "did you mean fedclg-c"),
    "an unknown data set": (["run", "-a", "fedavg", "--data", "minst"], "did you mean mnist"),
    "a name that looks like markup": (["run", "-a", "[/red]"], "unknown algorithm '[/red]'"),
    "an unknown network": (["run", "-a", "fedavg", "--model", "lenet"], "did you mean lenet5"),
    "a network that does not fit": (
        ["run", "-a", "fedavg", "--model", "lenet5"],
        "lenet5 takes inputs of",
    ),
    "a cohort above the population": (
        ["run", "-a", "fedavg", "--clients", "5", "--cohort", "9"],
        "9",
    ),
    "more clients than samples": (["run", "-a", "fedavg", "--clients", "5000"], "5000"),
    "alpha 0": (["run", "-a", "fedavg", "--alpha", "0"], "alpha"),
    "a negative rate": (["run", "-a", "fedavg", "--lr", "-1"], "lr=-1"),
    "a method without its server data": (
        ["run", "-a", "fedclg-s", "--server-samples", "0"],
        "needs data at the server",
    ),
    "a second method without its server data": (
        ["run", "-a", "fedavg", "-a", "fedclg-c", "--server-samples", "0"],
        "FedCLGC needs data at the server",
    ),
    "a global rate of NaN": (["run", "-a", "fedavg", "--global-lr", "nan"], "global_lr=nan"),
    "a target of NaN": (["run", "-a", "fedavg", "--target", "nan"], "target"),
    "a file for a folder": (["run", "-a", "fedavg", "--out", "file"], "file is no folder"),
    "a server's rate that explodes": (
        ["run", "-a", "clg-sgd", "--server-lr", "1e9", "--quiet"],
        "lower the client's learning rate (lr is 0.05) or the server's learning rate (lr is 1e+09)",
    ),
    "a rate that explodes": (
        ["run", "-a", "fedavg", "--lr", "1e9", "--quiet"],
        "is not finite; lower the client's learning rate",
    ),
    "no command": (["rnu"], "No such command 'rnu'"),
    "an unknown option": (
        ["run", "-a", "fedavg", "--round", "3"],
        "Possible options: --out, --rounds",
    ),
    "an option without a value": (["run", "-a"], "requires an argument"),
    "no method": (["run"], "give the file of an experiment, or a method"),
    "rounds in words": (["run", "-a", "fedavg", "--rounds", "many"], "'--rounds': Input should be"),
    "no rounds": (["run", "-a", "fedavg", "--rounds", "0"], "greater than or equal to 1; see"),
    "a way to share that there is not": (
        ["run", "-a", "fedavg", "--partition", "fair"],
        "unknown partition 'fair'; known: by-class, dirichlet, iid, labels",
    ),
    "a cohort too small for the blocks": (
        ["run", "-a", "fedavg", "-a", "fedbcgd", "--cohort", "3", "--out", "a/b", "--rounds", "1"],
        "FedBCGD with these settings needs a cohort of 4 clients or more, not 3",
    ),
    "resume what is not there": (
        ["run", "-a", "fedavg", "--resume", "--out", "nowhere"],
        "there is no run in nowhere; start one without --resume",
    ),
    "resume without a folder": (["run", "-a", "fedavg", "--resume"], "--resume needs --out"),
    "workers in words": (["demo", "--workers", "many"], "workers must be 'auto' or a number"),
    "no Ray": (
        ["run", "-a", "fedavg", "--engine", "ray", "--ray-address", "127.0.0.1:1"],
        "no Ray cluster answers at 127.0.0.1:1",
    ),
    "no engine for an address": (["run", "-a", "fedavg", "--ray-address", "auto"], "--engine ray"),
    "too many workers": (["run", "-a", "fedavg", "--workers", "9999"], "are too many for the"),
    "an unwritable folder": (["demo", "--out", "file/sub"], "cannot write"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_line_and_exit_code_2(
    name: str, bellwether: Command, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("in the way")
    arguments, message = MISTAKES[name]
    run = bellwether(*arguments)
    assert run.returncode == 2
    assert run.stderr.startswith("error: ")
    assert run.stderr.count("\n") == 1
    assert message in run.stderr
    left = [p for p in tmp_path.rglob("*") if p.name != "file"]
    assert not left or name.endswith("explodes")  # what ran until then is kept


@pytest.mark.filterwarnings("default")
def test_a_note_is_one_line(bellwether: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def unfit() -> str:
        raise Unfit("they have [no] room")

    monkeypatch.setattr("bellwether.engines.local.start_method", unfit)
    run = bellwether(*RUN, "--rounds", "1", "--workers", "2")
    assert run.returncode == 0
    assert run.stderr == (
        "note: clients run in this process, not in workers: they have [no] room\n"
    )


def test_a_folder_may_look_like_markup(bellwether: Command, tmp_path: Path) -> None:
    run = bellwether(*RUN, "--rounds", "1", "--out", "a[/b]")
    assert run.returncode == 0, run.stderr
    assert str(tmp_path / "a[" / "b]" / "report.html") in run.stdout


def test_a_run_may_go_on_when_it_diverges(bellwether: Command) -> None:
    explosive = ["run", "-a", "fedavg", "--lr", "1e9", "--rounds", "3", "--quiet"]
    run = bellwether(*explosive, "--no-stop-on-divergence")
    assert run.returncode == 0, run.stderr
    assert "FedAvg diverged with seed 0" in run.stdout


def test_missing_data_says_where_it_looked(
    bellwether: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BELLWETHER_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    run = bellwether("run", "-a", "fedavg", "--data", "mnist")
    assert run.returncode == 2
    assert str(tmp_path) in run.stderr
    assert "BELLWETHER_DATA" in run.stderr
    assert "Traceback" not in run.stderr


@pytest.mark.parametrize("command", ["run", "demo"])
def test_ctrl_c_stops_cleanly_and_keeps_what_is_done(
    command: str, bellwether: Command, tmp_path: Path
) -> None:
    arguments = [*RUN, "--rounds", "5000"] if command == "run" else ["demo", "--rounds", "300"]
    arguments += ["--out", "kept"]
    process = subprocess.Popen(
        [*COMMAND, *arguments], cwd=tmp_path, env=PLAIN,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    metrics = tmp_path / "kept" / "fedclg-c" / "seed-0" / "metrics.jsonl"
    deadline = time.monotonic() + 60
    if command == "run":
        while not (metrics.exists() and metrics.read_text().count("\n") > 5):
            assert time.monotonic() < deadline
            time.sleep(0.05)
    else:
        assert process.stdout
        process.stdout.readline()  # the first line of progress comes after some rounds
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in stderr
    assert "Stopped by Ctrl-C; what was done is kept." in stdout
    assert (tmp_path / "kept" / "report.html").exists()
    if command == "run":
        done = metrics.read_text().count("\n")
        rounds = [*RUN, "--rounds", str(done + 2), "--out", "kept", "--resume"]
        assert bellwether(*rounds).returncode == 0
        assert metrics.read_text().count("\n") == done + 2
