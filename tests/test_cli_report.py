"""`bellwether report` and `bellwether watch` as people type them."""

import csv
import io
import signal
import socket
import subprocess
import urllib.request

import pytest

from bellwether.experiments.recorded import read_comparison
from bellwether.experiments.summary import summarise
from bellwether.report.tables import tables
from run_folders import write_comparison
from test_cli import COMMAND, PLAIN, bellwether  # noqa: F401, a fixture
from test_report import example


@pytest.fixture
def folder(tmp_path):
    return write_comparison(tmp_path / "runs", example().runs)


def test_a_page_and_a_table(bellwether, folder):  # noqa: F811
    ran = bellwether("report", "runs", "--target", "0.85")
    assert ran.returncode == 0, ran.stderr
    assert "rounds to 85 %" in ran.stdout
    assert f"The page: {folder / 'report.html'}\n" in ran.stdout
    assert "In multiples of FedAvg" in (folder / "report.html").read_text()
    ran = bellwether("report", "runs/fedavg", "runs/clg-sgd", "--baseline", "clg-sgd")
    assert "In multiples of CLG-SGD" in (folder.parent / "report.html").read_text()


def test_formats_print_the_tables_and_leave_no_page(bellwether, folder):  # noqa: F811
    before = sorted(folder.parent.rglob("*"))
    comparison = read_comparison([folder], 0.85)
    found = tables(comparison, summarise(comparison))
    ran = bellwether("report", "runs", "--target", "0.85", "--format", "csv")
    printed = [list(csv.reader(io.StringIO(part))) for part in ran.stdout.split("\n\n")]
    assert [[row[0] for row in part[1:]] for part in printed] == [
        [row.algorithm for row in table.rows] for table in found
    ]
    one = bellwether("report", "runs", "--format", "latex", "--table", "ratios").stdout
    assert one.count("\\begin{table}") == 1
    assert "In multiples of FedAvg" in one
    assert bellwether("report", "runs", "--format", "markdown").stdout.count("|---|") == 4
    assert sorted(folder.parent.rglob("*")) == before


MISTAKES = {
    "nothing there": (["report", "nowhere"], "nowhere is no folder"),
    "no run there": (["report", "."], ". holds no run"),
    "an unknown baseline": (["report", "runs", "--baseline", "fedag"], "did you mean FedAvg"),
    "an unknown table": (["report", "runs", "--format", "csv", "--table", "x"], "unknown table"),
    "a table without a format": (["report", "runs", "--table", "ratios"], "add --format csv"),
    "a target that is none": (["report", "runs", "--target", "nan"], "must be a finite number"),
    "a target in percent": (["report", "runs", "--target", "97"], "--target 0.97, not 97?"),
    "a page that cannot be": (["report", "runs", "--out", "file/x.html"], "cannot write"),
    "nothing to watch": (["watch", "nowhere"], "nowhere is no folder"),
    "no run to watch": (["watch", "."], "holds no run"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_line_and_writes_nothing(name, bellwether, tmp_path):  # noqa: F811
    arguments, message = MISTAKES[name]
    if "runs" in arguments:
        write_comparison(tmp_path / "runs", example().runs[:6])
    (tmp_path / "file").write_text("in the way")
    before = sorted(tmp_path.rglob("*"))
    ran = bellwether(*arguments)
    assert ran.returncode == 2
    assert ran.stderr.startswith("error: ")
    assert ran.stderr.count("\n") == 1
    assert message in ran.stderr
    assert sorted(tmp_path.rglob("*")) == before


def test_a_taken_port_is_one_line(bellwether, folder):  # noqa: F811
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ran = bellwether("watch", "runs", "--port", str(port))
    assert ran.returncode == 2
    assert ran.stderr == (
        f"error: port {port} is taken; give another --port, or --port 0 for any free one\n"
    )


def test_watching_until_ctrl_c(folder):
    command = [*COMMAND, "watch", str(folder), "--port", "0"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=PLAIN
    ) as process:
        line = process.stdout.readline()
        address = line.split()[-1]
        assert line == f"Watching {folder}: {address}\n"
        with urllib.request.urlopen(address, timeout=30) as answer:
            assert b"Bellwether" in answer.read()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (0, "", "")
