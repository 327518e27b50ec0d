"""The local server: what it tells, and what nobody can get out of it."""

import http.client
import json
import socket
import threading
from contextlib import contextmanager

import pytest

from bellwether.core.records import RoundRecord
from bellwether.report.growing import Growing
from bellwether.report.watch import watching
from run_folders import append, write_run
from test_report import run

SECRET = "the-secret-of-another-folder"


@contextmanager
def served(folder):
    with watching(folder, 0) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


def get(port, target, host=None, method="GET"):
    """The status, the headers and the body; the target is sent as it is."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        name = f"127.0.0.1:{port}" if host is None else host
        connection.sendall(f"{method} {target} HTTP/1.0\r\nHost: {name}\r\n\r\n".encode())
        answer = http.client.HTTPResponse(connection, method=method)
        answer.begin()
        return answer.status, dict(answer.getheaders()), answer.read().decode()


@pytest.fixture
def folder(tmp_path):
    write_run(tmp_path / "runs" / "fedavg" / "seed-0", run("FedAvg", 0, 0.5, None, 0.6))
    (tmp_path / "secret.txt").write_text(SECRET)
    (tmp_path / "runs" / "notes.txt").write_text(SECRET)
    return tmp_path / "runs"


def test_only_new_rounds_are_told(folder):
    with served(folder) as port:
        first = json.loads(get(port, "/rounds?epoch=0&after=0")[2])
        assert first["fresh"]
        assert [told[:3] for told in first["rounds"]] == [
            ["fedavg/seed-0", 1, 0.5], ["fedavg/seed-0", 2, None], ["fedavg/seed-0", 3, 0.6],
        ]  # fmt: skip
        assert first["runs"] == [
            {"key": "fedavg/seed-0", "method": "FedAvg", "seed": 0, "finished": True}
        ]
        again = f"/rounds?epoch={first['epoch']}&after={first['next']}"
        assert json.loads(get(port, again)[2])["rounds"] == []
        metrics = folder / "fedavg" / "seed-0" / "metrics.jsonl"
        line = json.dumps(
            {"round": 4, "cohort": [], "bytes_down": 7, "bytes_up": 8, "seconds": 0.5,
             "metrics": {"loss": float("nan")}}
        )  # fmt: skip
        with metrics.open("a") as file:
            file.write(line[:20])
        assert json.loads(get(port, again)[2])["rounds"] == []  # half a line is not there yet
        with metrics.open("a") as file:
            file.write(line[20:] + "\n")
        told = json.loads(get(port, again)[2])
        assert told["rounds"] == [["fedavg/seed-0", 4, None, None, 7, 8, 0.5]]
        write_run(folder / "clg-sgd" / "seed-0", run("CLG-SGD", 0, 0.7))
        told = json.loads(get(port, f"/rounds?epoch={told['epoch']}&after={told['next']}")[2])
        assert not told["fresh"]
        assert [each[:3] for each in told["rounds"]] == [["clg-sgd/seed-0", 1, 0.7]]


def test_rounds_taken_back_by_a_resume_are_told_anew(folder):
    growing = Growing(folder)
    first = growing.since(0, 0)
    metrics = folder / "fedavg" / "seed-0" / "metrics.jsonl"
    kept = metrics.read_text().splitlines(keepends=True)[:1]
    other = metrics.with_name("other")
    other.write_text("".join(kept))
    other.replace(metrics)
    append(metrics.parent, RoundRecord(2, (), 1, 1, 0.1, {"accuracy": 0.55}))
    told = growing.since(first["epoch"], first["next"])
    assert told["fresh"]
    assert [each[1:3] for each in told["rounds"]] == [[1, 0.5], [2, 0.55]]


TARGETS = (
    "/../secret.txt",
    "/runs/../../secret.txt",
    "/%2e%2e/secret.txt",
    "/..%2fsecret.txt",
    "/%252e%252e%252fsecret.txt",
    "/..\\secret.txt",
    "/notes.txt",
    "/link/secret.txt",
    "/fedavg/seed-0/metrics.jsonl",
    "/fedavg/seed-0/environment.json",
    "//etc/passwd",
    "/rounds/../notes.txt",
    "/./",
    "file:///etc/passwd",
)


def test_no_file_can_be_read_by_its_name(folder):
    (folder / "link").symlink_to(folder.parent, target_is_directory=True)
    absolute = str(folder.parent / "secret.txt")
    with served(folder) as port:
        for target in (*TARGETS, absolute, f"/{absolute}", f"/rounds?folder={absolute}"):
            status, _, body = get(port, target)
            assert status == (200 if target.startswith("/rounds?") else 404), target
            assert SECRET not in body
            assert "root:" not in body
        for method in ("POST", "PUT", "DELETE", "HEAD", "OPTIONS"):
            assert get(port, "/rounds", method=method)[0] == 501
        assert get(port, "/rounds?epoch=x")[0] == 400


def test_links_out_of_the_folder_are_not_followed(folder, tmp_path):
    """Neither a linked run, nor a linked file of one."""
    away = write_run(tmp_path / "away" / "seed-1", run("SAFARI", 1, 0.9))
    (folder / "linked").symlink_to(away, target_is_directory=True)
    half = folder / "half" / "seed-2"
    write_run(half, run("FedDyn", 2))
    (half / "metrics.jsonl").unlink()
    (half / "metrics.jsonl").symlink_to(away / "metrics.jsonl")
    whole = folder / "whole" / "seed-3"
    whole.mkdir(parents=True)
    for name in ("environment.json", "metrics.jsonl"):
        (whole / name).symlink_to(away / name)
    told = Growing(folder).since(0, 0)
    assert {each["key"] for each in told["runs"]} == {"fedavg/seed-0", "half/seed-2"}
    assert {each[0] for each in told["rounds"]} == {"fedavg/seed-0"}


def test_other_names_for_this_machine_are_refused(folder):
    """A site that has its name point here (DNS rebinding) asks for its own name."""
    with served(folder) as port:
        for host in ("evil.example", f"evil.example:{port}", "127.0.0.1", f"127.0.0.1:{port + 1}",
                     f"localhost.evil.example:{port}", ""):  # fmt: skip
            for target in ("/", "/rounds"):
                status, _, body = get(port, target, host)
                assert status == 403
                assert "fedavg" not in body
        for host in (f"localhost:{port}", f"127.0.0.1:{port}"):
            status, headers, _ = get(port, "/", host)
            assert (status, headers["X-Frame-Options"]) == (200, "DENY")
            assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
            assert "Access-Control-Allow-Origin" not in headers


def test_only_this_machine_can_connect(folder):
    with watching(folder, 0) as server:
        assert server.server_address[0] == "127.0.0.1"


def test_a_damaged_run_is_said_and_the_server_goes_on(folder):
    with served(folder) as port:
        metrics = folder / "fedavg" / "seed-0" / "metrics.jsonl"
        whole = metrics.read_text()
        (folder / "fedavg" / "seed-0" / "environment.json").rename(folder / "kept")
        assert "holds no run" in json.loads(get(port, "/rounds")[2])["trouble"]
        (folder / "kept").rename(folder / "fedavg" / "seed-0" / "environment.json")
        assert len(json.loads(get(port, "/rounds")[2])["rounds"]) == len(whole.splitlines())
