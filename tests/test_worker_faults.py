"""Workers, parents and commands are killed for real; results stay, and nothing is left behind."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bellwether import Client, FedAvg, Sent, Upload
from bellwether.algorithms import create
from bellwether.core.errors import WorkerLost
from bellwether.engines import Local
from test_cli import COMMAND, PLAIN, RUN
from test_same_bits import CLIENT
from test_workers import REFERENCE, bits, nothing_left_behind

__all__ = ["nothing_left_behind"]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")


def once(file: Path) -> bool:
    """Whether nobody was here before, in whatever process."""
    try:
        file.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def scaffold(at: Callable[[Client], None]) -> Any:
    """SCAFFOLD whose clients do something else too."""
    method = type(create("SCAFFOLD", client=CLIENT))

    class Disturbed(method):  # type: ignore[misc, valid-type]
        def local(self, client: Client, sent: Any) -> Any:
            upload = super().local(client, sent)
            at(client)
            return upload

    return Disturbed(CLIENT)


def test_a_worker_killed_in_mid_round_changes_no_bit(tmp_path: Path) -> None:
    def die(client: Client) -> None:
        if client.position == 2 and once(tmp_path / "dead"):
            os.kill(os.getpid(), signal.SIGKILL)

    expected = bits(scaffold(lambda client: None), REFERENCE)
    assert bits(scaffold(die), Local(workers=2)) == expected
    assert (tmp_path / "dead").exists()


def test_workers_killed_between_rounds_change_no_bit(tmp_path: Path) -> None:
    here = os.getpid()

    def note(client: Client) -> None:
        (tmp_path / str(os.getpid())).touch()

    def kill(record: object) -> None:
        pids = {int(file.name) for file in tmp_path.iterdir()} - killed
        killed.update(pids)
        assert pids
        for pid in pids:
            os.kill(pid, signal.SIGKILL)

    from bellwether import participation, train
    from test_same_bits import federation
    from test_workers import network

    killed = {here}
    ends = [
        train(scaffold(note), federation(), network, 3, engine=Local(workers=n), on_round=then,
              participation=participation.Uniform(4))
        for n, then in ((1, None), (2, kill))
    ]  # fmt: skip
    assert len(killed) > 3
    assert ends[0].model.equal(ends[1].model)


class Deadly(FedAvg):
    def local(self, client: Client, sent: Sent) -> Upload:
        if client.position == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().local(client, sent)


class Crashing(FedAvg):
    def local(self, client: Client, sent: Sent) -> Upload:
        if client.position == 1:
            os._exit(7)
        return super().local(client, sent)


@pytest.mark.parametrize(
    ("method", "end"),
    [(Deadly, "were killed.*lower"), (Crashing, "ended with exit code 7")],
)
def test_a_client_that_no_worker_survives_is_named(method: Any, end: str) -> None:
    with pytest.raises(WorkerLost, match=rf"client \d, round 1: 3 worker processes in a row {end}"):
        bits(method(CLIENT), Local(workers=2))


TRAIN = """
import os, sys
sys.path.insert(0, sys.argv[1])
from bellwether import FedAvg, train
from bellwether.engines import Local
from test_same_bits import CLIENT, federation
from test_workers import network

class Talks(FedAvg):
    def local(self, client, sent):
        print(os.getpid(), flush=True)
        return super().local(client, sent)

train(Talks(CLIENT), federation(), network, 100_000, engine=Local(workers=2))
"""


@contextlib.contextmanager
def started(command: list[str], **settings: Any) -> Iterator[subprocess.Popen[str]]:
    """A process with a group of its own; nothing of the group stays."""
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True, **settings,
    )  # fmt: skip
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def wait_until(condition: Callable[[], bool]) -> None:
    """For what happens at some time; the end of patience is a failure."""
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def gone(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    return False


def test_workers_end_with_their_parent() -> None:
    """The program is no module and has no `if __name__ == "__main__"`."""
    with started([sys.executable, "-c", TRAIN, str(Path(__file__).parent)]) as process:
        assert process.stdout
        seen: set[str] = set()
        while len(seen) < 2:
            line = process.stdout.readline()
            assert line
            seen.add(line.strip())
        assert str(process.pid) not in seen
        process.kill()
        process.wait()
        wait_until(lambda: gone(process.pid))


def test_ctrl_c_ends_a_command_and_its_workers(tmp_path: Path) -> None:
    arguments = [*RUN, "--rounds", "100000", "--workers", "2", "--out", "kept"]
    metrics = tmp_path / "kept" / "fedclg-c" / "seed-0" / "metrics.jsonl"
    with started([*COMMAND, *arguments], cwd=tmp_path, env=PLAIN) as process:
        wait_until(lambda: metrics.exists() and metrics.read_text().count("\n") > 3)
        tasks = Path(f"/proc/{process.pid}/task").glob("*/children")
        assert sum(len(task.read_text().split()) for task in tasks) == 2
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all of them
        stdout, stderr = process.communicate(timeout=120)
        assert process.returncode == 130
        assert stderr == "Finishing the round; Ctrl-C again stops now.\n"
        assert "Stopped by Ctrl-C; what was done is kept." in stdout
        assert gone(process.pid)
    assert all(json.loads(line)["cohort"] for line in metrics.read_text().splitlines())
