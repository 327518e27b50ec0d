"""Ray: the same bits as in this process, whatever travels and whoever is lost."""

import socket
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from bellwether import Client, ClientFailed, FedAvg, Federation, InputError, Sent, Upload, engines
from bellwether.algorithms import CATALOGUE, create
from bellwether.core.errors import WorkerLost
from test_same_bits import CLIENT, NETWORKS, SERVER, digest, federation


@pytest.fixture(scope="module")
def here() -> Iterator[engines.Ray]:
    pytest.importorskip("ray", reason="needs the extra ray")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bellwether.engines.ray_connection.cores", lambda: 2)
        with engines.Ray() as engine:
            yield engine


class Fails(FedAvg):
    def local(self, client: Client, sent: Sent) -> Upload:
        if client.position in (1, 3):
            raise ValueError(f"a bad sensor at {client.position}")
        return super().local(client, sent)


def test_every_method_gives_the_same_bits(here: engines.Ray) -> None:
    for name in CATALOGUE:
        method = create(name, client=CLIENT, server=SERVER)
        for network in NETWORKS:
            assert digest(method, network, here) == digest(method, network), (name, network)


def test_a_client_that_raises_is_named_as_in_this_process(here: engines.Ray) -> None:
    said = []
    for engine in (None, here):
        with pytest.raises(ClientFailed, match=r"client \d, round 1: ValueError: a bad sensor at 1"
                           r" \(.*test_ray.py:\d+\)") as error:  # fmt: skip
            digest(Fails(CLIENT), "dropout", engine)
        said.append(str(error.value))
    assert "a bad sensor at 1" in str(error.value.__cause__)
    assert len(set(said)) == 1
    assert digest(FedAvg(CLIENT), "dropout", here) == digest(FedAvg(CLIENT), "dropout")


def test_what_no_module_holds_travels_too(here: engines.Ray) -> None:
    class Halves(FedAvg):
        def local(self, client: Client, sent: Sent) -> Upload:
            return Upload(client.descend(sent.model, self.client).change / 2)

    assert digest(Halves(CLIENT), "batch-norm", here) == digest(Halves(CLIENT), "batch-norm")


def test_what_cannot_travel_is_said_in_one_line(here: engines.Ray) -> None:
    from bellwether import train

    lock = threading.Lock()

    def load(client: int) -> Any:
        with lock:
            return federation().client(client)

    with pytest.raises(InputError, match=r"the data cannot travel to Ray's workers: .*lock") as e:
        train(FedAvg(CLIENT), Federation.lazy(7, load), NETWORKS["dropout"], 1, engine=here)
    assert "\n" not in str(e.value)


def test_another_version_of_torch_is_refused(
    here: engines.Ray, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bellwether.engines.ray_crew.version", lambda: "1.0")
    with pytest.raises(InputError, match=r"torch is \S+ on a node but 1\.0 here"):
        digest(FedAvg(CLIENT), "dropout", here)


def test_where_no_core_is_free(here: engines.Ray, monkeypatch: pytest.MonkeyPatch) -> None:
    """One Ray serves both engines; the first keeps its actors."""
    digest(FedAvg(CLIENT), "dropout", here)
    monkeypatch.setattr("bellwether.engines.ray_crew.PATIENCE", 0.1)
    with pytest.raises(WorkerLost, match=r"no worker could start .* of its \d+ CPUs 0 are free"):
        digest(FedAvg(CLIENT), "dropout", engines.Ray())
    monkeypatch.undo()
    assert digest(FedAvg(CLIENT), "dropout", here) == digest(FedAvg(CLIENT), "dropout")


def test_another_cluster_than_that_of_this_process_is_refused(here: engines.Ray) -> None:
    with pytest.raises(InputError, match=r"uses the Ray at \S+ already.*leave out the address"):
        digest(FedAvg(CLIENT), "dropout", engines.Ray("127.0.0.1:6379"))


def listener(answer: bytes | None) -> Iterator[str]:
    """The address of something that is no cluster; None: it accepts and keeps silent."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                while answer is None and connection.recv(100):
                    pass
                if answer is not None:
                    connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        thread.join()


@pytest.mark.parametrize(
    ("answer", "reason"),
    [(None, "timed out"), (b"HTTP/1.1 400 Bad Request\r\n\r\n", "something else listens there")],
)
def test_an_address_where_something_else_listens(
    answer: bytes | None, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = pytest.importorskip("bellwether.engines.ray_connection", exc_type=ImportError)
    monkeypatch.setattr(connection, "PATIENCE", 0.2)
    server = listener(answer)
    address = next(server)
    with pytest.raises(InputError, match=f"no Ray cluster answers at {address} .{reason}") as error:
        connection.check_answer(address)
    assert "\n" not in str(error.value)
    assert list(server) == []


def test_an_address_where_nothing_listens() -> None:
    connection = pytest.importorskip("bellwether.engines.ray_connection", exc_type=ImportError)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
    with pytest.raises(
        InputError, match=f"no Ray cluster answers at {address} .*refused.*ray start"
    ):
        connection.check_answer(address)


@pytest.mark.parametrize(
    "address", ["", "cluster", ":6379", "host:", "host:0", "ray://host:1", 6379]
)
def test_an_address_that_is_none(address: Any) -> None:
    with pytest.raises(InputError, match="address must be None, 'auto' or 'host:port'"):
        engines.Ray(address)


@pytest.mark.parametrize("setting", [{"workers": 0}, {"workers": "many"}, {"batch_clients": 0}])
def test_a_number_that_makes_no_sense(setting: Any) -> None:
    with pytest.raises(InputError, match="must be 'auto' or a number from 1"):
        engines.Ray(**setting)


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    for module in [name for name in sys.modules if name.startswith("bellwether.engines.ray_")]:
        monkeypatch.delitem(sys.modules, module)
    with pytest.raises(InputError, match=r"pip install 'bellwether-fl\[ray\]'"):
        digest(FedAvg(CLIENT), "dropout", engines.Ray())
