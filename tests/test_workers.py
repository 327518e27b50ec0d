"""Worker processes: the same bits as in this process, whatever their number and the messages."""

import gc
import hashlib
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from bellwether import (
    SGD,
    Algorithm,
    ClientFailed,
    Clients,
    FedAvg,
    Federation,
    InputError,
    Sent,
    Server,
    State,
    Upload,
    compression,
    engines,
    mean,
    participation,
    train,
)
from bellwether.algorithms import CATALOGUE, create
from bellwether.core.errors import WorkerLost
from bellwether.core.participants import Client
from bellwether.core.workspace import Regularised
from bellwether.engines import local as engine
from bellwether.engines.local import Local, cores
from bellwether.engines.pool import Pool
from bellwether.experiments.training import Interrupted
from test_same_bits import CLIENT, SERVER, federation

REFERENCE = Local(workers=1)


def network() -> nn.Module:
    return nn.Sequential(
        nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 3)
    )


def half_cross_entropy(outputs: Tensor, targets: Tensor) -> Tensor:
    return nn.functional.cross_entropy(outputs, targets) / 2


def bits(method: Algorithm[Any], where: Local, rounds: int = 3, **settings: Any) -> str:
    """The bits of every round's model, metrics and byte counts, and of the final buffers."""
    digest = hashlib.sha256()
    settings = {"federation": federation(), "participation": participation.Uniform(4)} | settings

    def note(record: Any) -> None:
        counts = record.metrics, record.bytes_down, record.bytes_up
        digest.update(record.model.numpy().tobytes() + repr(counts).encode())

    result = train(method, settings.pop("federation"), network, rounds, seed=3, engine=where,
                   on_round=note, **settings)  # fmt: skip
    digest.update(result.buffers.numpy().tobytes())
    return digest.hexdigest()


def children() -> set[str]:
    tasks = Path("/proc/self/task").glob("*/children")
    return {child for task in tasks for child in task.read_text().split()}


def left_behind() -> tuple[set[str], int, int]:
    """Child processes, open files and shared mappings."""
    gc.collect()  # of earlier tests
    maps = Path("/proc/self/maps").read_text().count("memfd")
    return children(), len(os.listdir("/proc/self/fd")), maps


@pytest.fixture(autouse=True)
def nothing_left_behind() -> Iterator[None]:
    if not Path("/proc/self/maps").exists():
        yield
        return
    before = left_behind()
    yield
    after = left_behind()
    assert after[0] <= before[0]
    assert after[1:] == before[1:]


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_method_on_any_number_of_workers(name: str) -> None:
    method = create(name, client=CLIENT, server=SERVER)
    expected = bits(method, REFERENCE)
    assert {n: bits(method, Local(workers=n)) for n in (2, 3, 5)} == dict.fromkeys(
        (2, 3, 5), expected
    )


@pytest.mark.parametrize(
    ("up", "down"),
    [
        (compression.TopK(0.3), compression.Quantise(bits=8)),
        (compression.RandomK(0.5), compression.TopK(0.5)),
    ],
)
def test_compressed_messages(up: Any, down: Any) -> None:
    method = create("SCAFFOLD", client=CLIENT)
    setting = {
        "compress_up": up,
        "compress_down": down,
        "participation": participation.Uniform(7),
    }
    assert bits(method, Local(workers=3), **setting) == bits(method, REFERENCE, **setting)


def load(client: int) -> Any:
    return federation().client(client)


def test_new_interpreters_where_a_fork_is_not_sound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "start_method", lambda: "spawn")
    method = create("FedDC", client=CLIENT)
    setting: dict[str, Any] = {
        "federation": Federation.lazy(7, load),
        "loss": half_cross_entropy,
        "compress_up": compression.TopK(0.5),
    }
    assert bits(method, Local(workers=2), **setting) == bits(method, REFERENCE, **setting)


def test_what_new_interpreters_cannot_load_is_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "start_method", lambda: "spawn")
    expected = bits(FedAvg(CLIENT), REFERENCE)
    unnamed = {"loss": lambda y, t: nn.functional.cross_entropy(y, t)}
    with pytest.warns(UserWarning, match="clients run in this process, not in workers:.*lambda"):
        assert bits(FedAvg(CLIENT), Local(workers=2), **unnamed) == expected


@dataclass(frozen=True)
class Ten:
    vectors: tuple[Tensor, ...]


class SendsMuch(FedAvg):
    """Answers far larger than the model, and the larger the later in the cohort."""

    def round(self, state: State, clients: Clients, server: Server) -> State:
        x = state.model
        for reply in clients.run(self.local, Sent(model=x)):
            x = x + 0.1 * sum(reply.vectors)
        return State(x)

    def local(self, client: Client, sent: Sent) -> Any:
        change = client.descend(sent.model, self.client).change
        return Ten(tuple(change / k for k in range(1, 6 + 10 * client.position)))


class AsksTwice(FedAvg):
    """Two exchanges under way at once, read in the other order."""

    def round(self, state: State, clients: Clients, server: Server) -> State:
        first = clients.run(self.local, Sent(model=state.model))
        second = clients.run(self.local, Sent(model=0.5 * state.model))
        late = mean(second).change
        return State(state.model + mean(first).change + late)


class Unheard(FedAvg):
    """Replies that nobody reads, or not all of them."""

    def round(self, state: State, clients: Clients, server: Server) -> State:
        clients.run(self.local, Sent(model=state.model))
        reply = next(iter(clients.run(self.local, Sent(model=state.model))))
        return State(state.model + reply.change)


@pytest.mark.parametrize("method", [SendsMuch, AsksTwice, Unheard])
@pytest.mark.parametrize("room", [10**9, 1])
def test_unusual_exchanges(method: Any, room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bellwether.engines.pool.WAITING", room)
    everybody = {"participation": participation.Uniform(7)}
    assert bits(method(CLIENT), Local(workers=2), **everybody) == bits(
        method(CLIENT), REFERENCE, **everybody
    )


def test_a_message_that_cannot_travel_is_said_once() -> None:
    @dataclass(frozen=True)
    class Nameless:
        change: Tensor

    class SendsNameless(FedAvg):
        def local(self, client: Client, sent: Sent) -> Any:
            return Nameless(super().local(client, sent).change)

    with pytest.warns(UserWarning, match="cannot be pickled") as said:
        got = bits(SendsNameless(CLIENT), Local(workers=2))
    assert len(said) == 1
    assert got == bits(FedAvg(CLIENT), REFERENCE)


def test_auto_takes_workers_once_they_pay(monkeypatch: pytest.MonkeyPatch) -> None:
    pools: list[Pool] = []
    submit = Pool.submit
    monkeypatch.setattr(Pool, "submit", lambda *given: pools.append(given[0]) or submit(*given))
    monkeypatch.setattr(engine, "cores", lambda: 2)
    expected = bits(FedAvg(CLIENT), REFERENCE)
    for worthwhile, works in ((1e9, 0), (1e-9, 4)):  # clients and an evaluation, twice
        monkeypatch.setattr(engine, "WORTHWHILE", worthwhile)
        assert bits(FedAvg(CLIENT), Local(workers="auto")) == expected
        assert len(pools) == works  # the first round is measured


def test_an_evaluation_in_pieces() -> None:
    draw = torch.Generator().manual_seed(3)
    x, y = torch.randn(1300, 6, generator=draw), torch.randint(3, (1300,), generator=draw)
    held = Federation.from_arrays([(x[:9], y[:9]), (x[9:30], y[9:30])], test=(x, y))
    loss = Regularised(functional.cross_entropy, 0.1)
    found = [
        train(FedAvg(CLIENT), held, lambda: nn.Linear(6, 3), 3, loss=loss, engine=Local(n)).history
        for n in (1, 2, 3)
    ]
    metrics = [[record.metrics for record in history] for history in found]
    assert metrics[0] == metrics[1] == metrics[2]
    assert all(0 < record["accuracy"] < 1 for record in metrics[0])


def test_in_a_thread() -> None:
    found: list[str] = []
    method = create("FedCLG-S", client=CLIENT, server=SERVER)
    thread = threading.Thread(target=lambda: found.append(bits(method, Local(workers=2))))
    thread.start()
    thread.join()
    assert found == [bits(method, REFERENCE)]


class Fails(FedAvg):
    def local(self, client: Client, sent: Sent) -> Upload:
        if client.position in (1, 3):
            raise ValueError(f"a bad sensor at {client.position}")
        return super().local(client, sent)


class Exhausts(FedAvg):
    def local(self, client: Client, sent: Sent) -> Upload:
        torch.empty(2**50)
        return super().local(client, sent)


def test_a_client_that_raises_is_named_as_in_this_process() -> None:
    said = []
    for workers in (1, 2, 3):
        with pytest.raises(
            ClientFailed, match=r"ValueError: a bad sensor at 1 \(.*:\d+\)"
        ) as error:
            bits(Fails(CLIENT), Local(workers=workers))
        said.append(str(error.value))
        assert "a bad sensor at 1" in str(error.value.__cause__)
    assert len(set(said)) == 1


def test_a_worker_without_memory_says_what_to_lower() -> None:
    with pytest.raises(WorkerLost, match=r"client \d, round 1: .*allocate.*; lower workers"):
        bits(Exhausts(CLIENT), Local(workers=2))


@pytest.mark.parametrize("workers", [0, -1, True, 2.0, "many", None, 8 * cores() + 1])
def test_a_number_that_makes_no_sense(workers: Any) -> None:
    with pytest.raises(InputError, match="workers") as error:
        engines.Local(workers=workers)
    assert "\n" not in str(error.value)


def test_more_workers_than_clients_are_not_started(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[int] = []

    def count(_: object) -> None:
        started.append(len(children()))

    train(FedAvg(SGD(0.1, steps=1)), federation(), network, 2, engine=Local(workers=5),
          participation=participation.Uniform(2), on_round=count)  # fmt: skip
    assert started == [len(children()) + 2] * 2


@pytest.mark.parametrize("workers", [1, 2])
def test_evaluations_overlap_the_next_round(workers: int, tmp_path: Path) -> None:
    """The same records in the same order, also of a run that is stopped and goes on."""

    def records(rounds: int = 6, **settings: Any) -> list[Any]:
        told: list[int] = []
        result = train(
            FedAvg(CLIENT), federation(), network, rounds, participation=participation.Uniform(4),
            on_round=lambda record: told.append(record.round), checkpoint_every=4, **settings,
        )  # fmt: skip
        assert told == list(range(rounds - len(told) + 1, rounds + 1))
        return [(r.round, r.cohort, r.metrics) for r in result.history]

    expected = records()
    beside: dict[str, Any] = {"overlap_evaluation": True, "engine": Local(workers)}
    assert records(**beside) == expected
    records(3, run_dir=tmp_path, **beside)
    assert records(run_dir=tmp_path, resume=True, **beside) == expected


def test_an_evaluation_that_is_interrupted_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes, calls = Pool.outcomes, []

    def interrupted(pool: Pool, task: Any) -> Any:
        calls.append(task)
        if len(calls) == 4:  # clients and an evaluation in each round: that of the second
            raise KeyboardInterrupt
        return outcomes(pool, task)

    monkeypatch.setattr(Pool, "outcomes", interrupted)
    with pytest.raises(Interrupted) as stopped:
        train(FedAvg(CLIENT), federation(), network, 5, engine=Local(2))
    history = stopped.value.result.history
    expected = train(FedAvg(CLIENT), federation(), network, 2).history
    assert [r.metrics for r in history] == [r.metrics for r in expected]
