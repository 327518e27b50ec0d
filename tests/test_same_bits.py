"""The same bits: twice, in another process, in any order of execution, beside other work."""

import hashlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import nn

from bellwether import (
    CLGSGD,
    SGD,
    Algorithm,
    FedAvg,
    FedCLGC,
    FedCLGS,
    Federation,
    ServerOnly,
    participation,
    train,
)
from bellwether.core.tasks import Exchange, Outcome, Workplace, perform

CLIENT = SGD(lr=0.1, epochs=2, batch_size=8, decay=0.95, weight_decay=1e-3)
SERVER = SGD(lr=0.05, steps=3, batch_size=8)
METHODS: dict[str, Algorithm] = {
    "FedAvg": FedAvg(CLIENT),
    "ServerOnly": ServerOnly(SERVER),
    "CLGSGD": CLGSGD(CLIENT, SERVER),
    "FedCLGC": FedCLGC(CLIENT, SERVER),
    "FedCLGS": FedCLGS(CLIENT, SERVER),
}


def dropout_network() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 3))


def batch_norm_network() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16, momentum=None), nn.Linear(16, 3))


NETWORKS = {"dropout": dropout_network, "batch-norm": batch_norm_network}


def federation() -> Federation:
    draw = torch.Generator().manual_seed(7)

    def holder(n: int) -> tuple[torch.Tensor, torch.Tensor]:
        x = torch.randn(n, 6, generator=draw)
        return x, (x[:, :3].argmax(1) + torch.randint(2, (n,), generator=draw)) % 3

    return Federation.from_arrays([holder(10 + 4 * i) for i in range(7)], holder(20), holder(30))


def digest(algorithm: Algorithm, network: str, engine: object = None) -> str:
    """The bits of every round's model, metrics and of the final batch-norm buffers."""
    bits = hashlib.sha256()
    result = train(
        algorithm,
        federation(),
        NETWORKS[network],
        4,
        participation=participation.Uniform(4),
        seed=3,
        engine=engine,  # type: ignore[arg-type]
        on_round=lambda r: bits.update(r.model.numpy().tobytes() + repr(r.metrics).encode()),
    )
    bits.update(result.buffers.numpy().tobytes())
    return bits.hexdigest()


class AnyOrder:
    """Runs the tasks of an exchange at once, in an order of its own, each in a fresh place."""

    def __init__(self, seed: int) -> None:
        self.draw = torch.Generator().manual_seed(seed)
        self.orders: set[tuple[int, ...]] = set()

    def start(self, workplace: Workplace) -> None:
        self.workplace = workplace

    def run(self, exchange: Exchange) -> Iterator[Outcome]:
        order = torch.randperm(len(exchange.cohort), generator=self.draw).tolist()
        self.orders.add(tuple(order))
        done = {}
        for position in order:
            space = self.workplace.workspace()
            done[position] = perform(space, self.workplace, exchange, position)
        return iter([done[position] for position in range(len(order))])

    def stop(self) -> None: ...


CASES = [(method, network) for method in METHODS for network in NETWORKS]


@pytest.mark.parametrize(("method", "network"), CASES)
def test_twice_and_in_any_order(method: str, network: str) -> None:
    first = digest(METHODS[method], network)
    torch.rand(3)  # the caller's own draws change nothing
    assert digest(METHODS[method], network) == first
    shuffled = AnyOrder(11)
    assert digest(METHODS[method], network, shuffled) == first
    assert method == "ServerOnly" or len(shuffled.orders) > 1


def test_in_a_new_process_with_another_number_of_threads() -> None:
    code = (
        "import sys, torch; torch.set_num_threads(2); sys.path.insert(0, sys.argv[1]);"
        "from test_same_bits import CASES, METHODS, digest;"
        "print('\\n'.join(digest(METHODS[m], n) for m, n in CASES))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, str(Path(__file__).parent)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.split() == [digest(METHODS[m], n) for m, n in CASES]


def test_the_seed_matters_and_methods_differ() -> None:
    bits = {digest(METHODS[m], n) for m, n in CASES}
    assert len(bits) == len(CASES)


def test_the_callers_random_state_and_threads_are_left_alone() -> None:
    threads, state = torch.get_num_threads(), torch.get_rng_state()
    digest(METHODS["FedCLGC"], "dropout")
    assert torch.get_num_threads() == threads
    assert torch.equal(torch.get_rng_state(), state)


def test_methods_share_their_streams() -> None:
    """Two methods with the same first step meet the same cohorts, batches and dropout masks."""
    nothing = SGD(lr=0.1, epochs=0)
    assert digest(CLGSGD(CLIENT, nothing), "dropout") == digest(FedAvg(CLIENT), "dropout")
