"""Several nodes, actors and commands are killed for real; results stay, and nothing is left."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from torch import nn

from bellwether import Client, FedAvg, Sent, Upload, compression, engines, participation, train
from bellwether.algorithms import CATALOGUE, create
from bellwether.core.errors import WorkerLost
from test_same_bits import CLIENT, NETWORKS, SERVER, federation

pytest.importorskip("ray", reason="needs the extra ray")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="needs /proc"),
]

ENGINES = (Path(__file__).resolve().parents[1] / "docs" / "engines.md").read_text()
NODE = {"num_cpus": 1, "object_store_memory": 100 * 2**20}


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A head that computes nothing, and two nodes with a core each."""
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    with TemporaryDirectory(prefix="ray-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        head = {**NODE, "num_cpus": 0, "include_dashboard": False, "temp_dir": folder}
        nodes = Cluster(initialize_head=True, head_node_args=head)
        try:
            nodes.add_node(**NODE)
            nodes.add_node(**NODE)
            yield nodes
        finally:
            nodes.shutdown()


def scaffold(at: Callable[[Client], None]) -> Any:
    """SCAFFOLD whose clients do something else too."""
    method = type(create("SCAFFOLD", client=CLIENT))

    class Disturbed(method):  # type: ignore[misc, valid-type]
        def local(self, client: Client, sent: Any) -> Any:
            at(client)
            return super().local(client, sent)

    return Disturbed(CLIENT)


def model(method: Any, engine: Any, network: str = "batch-norm", **settings: Any) -> bytes:
    """The bits of the final model and its buffers."""
    make = {**NETWORKS, "linear": lambda: nn.Linear(6, 3)}[network]
    settings = {"participation": participation.Uniform(7)} | settings
    result = train(method, federation(), make, 4, engine=engine, seed=3, eval_every=0, **settings)
    return result.model.numpy().tobytes() + result.buffers.numpy().tobytes()


def wait_until(condition: Callable[[], bool]) -> None:
    """For what happens at some time; the end of patience is a failure."""
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_node_killed_in_mid_round_changes_no_bit(cluster: Any, tmp_path: Path) -> None:
    """The clients of both nodes wait for each other's node; then one of the nodes dies."""

    def note(client: Client) -> None:
        import ray

        if (tmp_path / "killed").exists():
            return
        (tmp_path / ray.get_runtime_context().get_node_id()).touch()
        while not (tmp_path / "killed").exists():
            time.sleep(0.01)

    def kill() -> None:
        wait_until(lambda: len(list(tmp_path.iterdir())) == 2)
        cluster.remove_node(next(iter(cluster.worker_nodes)), allow_graceful=False)
        (tmp_path / "killed").touch()

    killer = threading.Thread(target=kill)
    killer.start()
    found = model(scaffold(note), engines.Ray(cluster.address))
    killer.join()
    assert found == model(scaffold(lambda client: None), engines.Local())


class Deadly(FedAvg):
    def local(self, client: Client, sent: Sent) -> Upload:
        if client.position == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().local(client, sent)


def test_actors_that_die(cluster: Any, tmp_path: Path) -> None:
    def die(client: Client) -> None:
        with contextlib.suppress(FileExistsError):
            (tmp_path / str(client.position)).touch(exist_ok=False)
            os.kill(os.getpid(), signal.SIGKILL)

    with engines.Ray(cluster.address) as engine:
        expected = model(scaffold(lambda client: None), engines.Local(), "dropout")
        assert model(scaffold(die), engine, "dropout") == expected
        assert len(list(tmp_path.iterdir())) == 7
        with pytest.raises(
            WorkerLost, match=r"client \d, round 1: 3 Ray workers in a row were los"
        ):
            model(Deadly(CLIENT), engine)


def test_groups_and_compressed_messages(cluster: Any) -> None:
    methods = {name: create(name, client=CLIENT, server=SERVER) for name in CATALOGUE}
    with engines.Ray(cluster.address, batch_clients=2) as there:
        for name, method in methods.items():
            if method.batched:
                here = engines.Local(batch_clients=2)
                assert model(method, there, "linear") == model(method, here, "linear"), name
        up, down = compression.TopK(0.3), compression.Quantise(bits=8)
        setting: Any = {"compress_up": up, "compress_down": down}
        method = methods["SCAFFOLD"]
        alone = model(method, engines.Local(batch_clients=2), "linear", **setting)
        assert model(method, there, "linear", **setting) == alone


def test_a_ray_that_runs_already_is_left_alone(cluster: Any) -> None:
    import ray

    ray.init(cluster.address, log_to_driver=False)
    try:
        expected = model(FedAvg(CLIENT), engines.Local())
        assert model(FedAvg(CLIENT), engines.Ray()) == expected
        assert model(FedAvg(CLIENT), engines.Ray(cluster.address)) == expected
        assert ray.is_initialized()
        wait_until(lambda: ray.available_resources().get("CPU") == 2)  # no actor is left
        (program,) = re.findall(r"^```python\n(.*?)^```$", ENGINES, re.MULTILINE | re.DOTALL)
        exec(compile(program, "docs/engines.md", "exec"), {})
        assert ray.is_initialized()
    finally:
        ray.shutdown()


TRAIN = """
import os, sys
sys.path.insert(0, sys.argv[1])
from bellwether import FedAvg, engines, train
from test_same_bits import CLIENT, NETWORKS, federation

folder = sys.argv[2]

class Talks(FedAvg):  # in no module that an actor could import
    def local(self, client, sent):
        open(os.path.join(folder, str(os.getpid())), "w").close()
        return super().local(client, sent)

train(Talks(CLIENT), federation(), NETWORKS["dropout"], 100_000, engine=engines.Ray(workers=2))
"""


def of_session(number: int) -> list[str]:
    """The processes of a session, whatever their group."""
    found = []
    for file in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = file.read_text().rpartition(")")[2].split()
            if fields[3] == str(number):
                found.append(file.parent.name)
    return found


def test_ctrl_c_leaves_nothing_behind(tmp_path: Path) -> None:
    """The program is no module, and starts a Ray of its own."""
    before = set(Path("/tmp").glob("ray-*"))
    command = [sys.executable, "-c", TRAIN, str(Path(__file__).parent), str(tmp_path)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        wait_until(lambda: process.poll() is not None or any(tmp_path.iterdir()))
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all of them
        stdout, stderr = process.communicate(timeout=120)
        assert "Interrupted: interrupted after round" in stderr.strip().splitlines()[-1]
        assert stdout == ""
        assert "(raylet)" not in stderr
        wait_until(lambda: not of_session(process.pid))
        assert set(Path("/tmp").glob("ray-*")) <= before
    finally:
        for left in of_session(process.pid):
            os.kill(int(left), signal.SIGKILL)
        process.wait()
