"""The package's methods keep all promises; methods with one mistake each are caught at it."""

import random
import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from bellwether import (
    SGD,
    Algorithm,
    Client,
    Clients,
    FedAvg,
    FedBCGD,
    FedCLGC,
    Federation,
    InputError,
    Sent,
    Server,
    State,
    Upload,
    mean,
)
from bellwether.algorithms import CATALOGUE, create
from bellwether.testing import NonConformant, Report, conformance
from bellwether.testing.verdict import CHECKS

CLIENT = SGD(lr=0.05, epochs=2, batch_size=8, weight_decay=1e-3)
SERVER = SGD(lr=0.03, steps=3, batch_size=8)
BLOCKS = {"blocks": ("first", "second"), "shared": "head"}


@pytest.mark.parametrize("name", CATALOGUE)
def test_the_methods_of_the_package(name: str) -> None:
    report = conformance(create(name, client=CLIENT, server=SERVER, **BLOCKS))
    assert report.passed
    blockwise = name.startswith("FedBCGD")  # two blocks need two clients, and say so
    assert len(report.refused) == (2 if blockwise else 0)
    assert len(report.held) + len(report.refused) == len(CHECKS) + 1


@dataclass(frozen=True)
class Momentum(State):
    velocity: Tensor
    rounds: int = 0


@dataclass(frozen=True)
class Memory:
    last: Tensor


@dataclass(frozen=True)
class Right(Algorithm[Any]):
    """Momentum at the server, a memory at the clients: the wrong methods differ in one place."""

    client: SGD = SGD(lr=0.1, steps=2, batch_size=4)  # noqa: RUF009
    memory = Memory

    def start(self, model: Tensor, server: Server) -> State:
        return Momentum(model, torch.zeros_like(model))

    def round(self, state: Any, clients: Clients, server: Server) -> State:
        replies = clients.run(self.local, Sent(state.model))
        v = 0.5 * state.velocity + mean(replies).change
        return Momentum(state.model + v, v, state.rounds + 1)

    def local(self, client: Client, sent: Any) -> Any:
        change = client.descend(sent.model, self.client, 0.1 * client.memory.last).change
        client.memory = Memory(change)
        return Upload(change)


def descended(method: Right, client: Client, x: Tensor) -> Upload:
    """`Right.local` from x."""
    return Right.local(method, client, Sent(x))


class OverwritesSent(Right):
    def local(self, client: Client, sent: Any) -> Any:
        sent.model.mul_(0.99)
        return super().local(client, sent)


class OverwritesSentUnseen(Right):
    def local(self, client: Client, sent: Any) -> Any:
        sent.model.data.mul_(0.99)
        return super().local(client, sent)


class OverwritesState(Right):
    def round(self, state: Any, clients: Clients, server: Server) -> State:
        v = state.velocity.mul_(0.5).add_(mean(clients.run(self.local, Sent(state.model))).change)
        return Momentum(state.model + v, v)


class OverwritesMemory(Right):
    def local(self, client: Client, sent: Any) -> Any:
        change = client.descend(sent.model, self.client, 0.1 * client.memory.last).change
        client.memory.last.copy_(change)
        return Upload(change)


@dataclass(frozen=True)
class KeepsOnSelf(Right):
    seen: dict[int, Tensor] = field(default_factory=dict)

    def local(self, client: Client, sent: Any) -> Any:
        upload = super().local(client, sent)
        before = self.seen.get(client.position, torch.zeros_like(upload.change))
        self.seen[client.position] = upload.change
        return Upload(upload.change - 0.1 * before)


CALLS = [0]


class CountsCalls(Right):
    def local(self, client: Client, sent: Any) -> Any:
        CALLS[0] += 1
        return descended(self, client, sent.model + 1e-3 * CALLS[0])


class CountsCallsOfARound(Right):
    def round(self, state: Any, clients: Clients, server: Server) -> State:
        CALLS[0] = 0
        return super().round(state, clients, server)

    def local(self, client: Client, sent: Any) -> Any:
        CALLS[0] += 1
        return descended(self, client, sent.model + 1e-3 * CALLS[0])


class CountsRoundsOfThisProcess(Right):
    def start(self, model: Tensor, server: Server) -> State:
        CALLS[0] = 0
        return super().start(model, server)

    def round(self, state: Any, clients: Clients, server: Server) -> State:
        CALLS[0] += 1
        after: Any = super().round(state, clients, server)
        return Momentum(after.model + 1e-3 * CALLS[0], after.velocity)


class DrawsFromTorchBefore(Right):
    def local(self, client: Client, sent: Any) -> Any:
        return descended(self, client, sent.model + 1e-3 * torch.rand(1).item())


class DrawsFromTorchAfter(Right):
    """Every descent seeds torch's generator from its stream, so these draws are the same."""

    def local(self, client: Client, sent: Any) -> Any:
        change = super().local(client, sent).change
        return Upload(change + 1e-3 * torch.rand_like(change))


class DrawsFromTorchAtTheServer(Right):
    def round(self, state: Any, clients: Clients, server: Server) -> State:
        after: Any = super().round(state, clients, server)
        return Momentum(after.model + 1e-3 * torch.rand(1).item(), after.velocity)


class DrawsFromNumpy(Right):
    def local(self, client: Client, sent: Any) -> Any:
        return descended(self, client, sent.model + 1e-3 * np.random.rand())  # noqa: NPY002


class DeclaresNoMemory(Right):
    memory = None


class KeepsUndeclaredMemory(Right):
    memory = None

    def local(self, client: Client, sent: Any) -> Any:
        last = client.memory.last if client.memory else torch.zeros_like(sent.model)
        change = client.descend(sent.model, self.client, 0.1 * last).change
        client.memory = Memory(change)
        return Upload(change)


class ForgetsMemory(Right):
    def local(self, client: Client, sent: Any) -> Any:
        return Upload(client.descend(sent.model, self.client, 0.1 * client.memory.last).change)


class KeepsANumber(Right):
    def local(self, client: Client, sent: Any) -> Any:
        upload = super().local(client, sent)
        client.memory = Memory(upload.change.sum())
        return upload


@dataclass(frozen=True)
class Table:
    model: Tensor
    values: Any


class SendsADict(Right):
    def round(self, state: Any, clients: Clients, server: Server) -> State:
        v = mean(clients.run(self.local, Table(state.model, {"a": 1.0}))).change
        return Momentum(state.model + v, v)


class SendsAList(Right):
    def round(self, state: Any, clients: Clients, server: Server) -> State:
        v = mean(clients.run(self.local, Table(state.model, [0.5]))).change
        return Momentum(state.model + v, v)

    def local(self, client: Client, sent: Any) -> Any:
        return descended(self, client, sent.model * (1 if sent.values == [0.5] else 0))


class ReturnsATensor(Right):
    def local(self, client: Client, sent: Any) -> Any:
        return super().local(client, sent).change


class ReadsRepliesTwice(Right):
    def round(self, state: Any, clients: Clients, server: Server) -> State:
        replies = clients.run(self.local, Sent(state.model))
        v = mean(replies).change + 0 * mean(replies).change
        return Momentum(state.model + v, v)


class DividesByTheSpread(Right):
    def round(self, state: Any, clients: Clients, server: Server) -> State:
        changes = torch.stack([r.change for r in clients.run(self.local, Sent(state.model))])
        spread = ((changes - changes.mean(dim=0)) ** 2).sum(dim=0) / (len(changes) - 1)
        v = changes.mean(dim=0) / (1 + spread)
        return Momentum(state.model + v, v)


class CountsOnFour(Right):
    def round(self, state: Any, clients: Clients, server: Server) -> State:
        replies = list(clients.run(self.local, Sent(state.model)))
        v = mean(replies[i] for i in range(min(4, clients.population))).change
        return Momentum(state.model + v, v)


class DividesByNewcomers(Right):
    """By how many were not there the last time: none, once the same come again."""

    def round(self, state: Any, clients: Clients, server: Server) -> State:
        replies = list(clients.run(self.local, Sent(state.model)))
        new = [r for r in replies if not state.rounds >> r.client & 1]
        v = sum(r.change for r in replies) / len(replies)
        return Momentum(
            state.model + v * (len(new) / len(new)), v, sum(1 << r.client for r in replies)
        )


@dataclass(frozen=True)
class WithSet(State):
    velocity: Tensor
    clients: Any = frozenset()


class KeepsASet(Right):
    def start(self, model: Tensor, server: Server) -> State:
        return WithSet(model, torch.zeros_like(model))

    def round(self, state: Any, clients: Clients, server: Server) -> State:
        v = mean(clients.run(self.local, Sent(state.model))).change
        return WithSet(state.model + v, v, state.clients | {1})


class GrowsItsState(Right):
    def start(self, model: Tensor, server: Server) -> State:
        return WithSet(model, torch.zeros_like(model), ())

    def round(self, state: Any, clients: Clients, server: Server) -> State:
        v = mean(clients.run(self.local, Sent(state.model))).change
        past = sum(state.clients, torch.zeros_like(v))
        return WithSet(state.model + v + 0.01 * past, v, (*state.clients, v))


class ClimbsUp(Right):
    def round(self, state: Any, clients: Clients, server: Server) -> State:
        v = mean(clients.run(self.local, Sent(state.model))).change
        return Momentum(state.model - v, v)


class StandsStill(Right):
    def round(self, state: Any, clients: Clients, server: Server) -> State:
        mean(clients.run(self.local, Sent(state.model)))
        return state


class OnlyDouble(Right):
    def start(self, model: Tensor, server: Server) -> State:
        return Momentum(model, torch.zeros(len(model), dtype=torch.float64))


class OnlySingle(Right):
    def start(self, model: Tensor, server: Server) -> State:
        return Momentum(model, torch.zeros(len(model), dtype=torch.float32))

    def round(self, state: Any, clients: Clients, server: Server) -> State:
        after: Any = super().round(state, clients, server)
        return Momentum(after.model, after.velocity.float())


class AsksTheServerUnsaid(Right):
    def round(self, state: Any, clients: Clients, server: Server) -> State:
        after: Any = super().round(state, clients, server)
        return Momentum(after.model - 0.01 * server.gradient(after.model), after.velocity)


class NotFrozen(Algorithm[Any]):
    """No dataclass: its repr is its address."""

    def __init__(self) -> None:
        self.client = CLIENT

    def round(self, state: Any, clients: Clients, server: Server) -> State:
        return FedAvg(self.client).round(state, clients, server)


class TooFast(Right):
    def round(self, state: Any, clients: Clients, server: Server) -> State:
        v = mean(clients.run(self.local, Sent(state.model))).change
        return Momentum(state.model + 1e200 * v.double(), v)


WRONG: dict[type[Algorithm], dict[str, str]] = {
    OverwritesSent: {"runs": r"what was sent was changed in place.*write y = y \+ v"},
    OverwritesSentUnseen: {
        "leaves vectors alone": r"state\.model was changed in place; make a new vector",
        "runs elsewhere": "another order",
    },
    OverwritesState: {"leaves vectors alone": r"state\.velocity was changed in place"},
    OverwritesMemory: {"leaves vectors alone": r"client\.memory\.last was changed in place"},
    KeepsOnSelf: {
        "leaves itself alone": r"field seen(\.\d)? changed during a run; .* client\.memory",
        "runs elsewhere": r"no self\.x",
        "resumes": "",
    },
    CountsCalls: {
        "repeats": r"state\.model after round 1.*something outlives a run",
        "runs elsewhere": "no global variable",
        "resumes": "",
    },
    CountsCallsOfARound: {"runs elsewhere": r"in another order.*no global variable"},
    CountsRoundsOfThisProcess: {"resumes": "kept neither in State nor in client.memory"},
    DrawsFromTorchBefore: {"repeats": "", "runs elsewhere": "no torch.rand", "resumes": ""},
    DrawsFromTorchAtTheServer: {"runs elsewhere": ""},
    DrawsFromNumpy: {
        "repeats": "drawn from a global random generator; use .* server.rng",
        "runs elsewhere": "",
        "resumes": "",
    },
    DeclaresNoMemory: {"runs": r"no attribute 'last'.*declare `memory = Memory`"},
    KeepsUndeclaredMemory: {
        "keeps memory": "does not declare.*add `memory = Memory`",
        "resumes": "kept neither in State nor in client.memory",
    },
    ForgetsMemory: {"keeps memory": r"still 0 for all clients.*must assign client\.memory"},
    SendsADict: {"runs": "a message holds vectors, numbers, text and tuples.*no dict"},
    SendsAList: {"runs elsewhere": ""},
    ReturnsATensor: {"runs": "must return a dataclass such as Upload, not Tensor"},
    ReadsRepliesTwice: {"runs": r"replies are read once.*keep list\(replies\)"},
    DividesByTheSpread: {
        "takes one client a round": "with one client a round: Diverged",
        "takes one client at all": "with one client that holds everything: Diverged",
    },
    CountsOnFour: {"takes one client a round": "IndexError"},
    DividesByNewcomers: {
        "takes one client a round": "ZeroDivisionError",
        "takes visitors": "with a client that comes once: ZeroDivisionError",
        "takes one client at all": "ZeroDivisionError",
    },
    KeepsASet: {"resumes": "cannot be written down.*JSON.*State holds vectors, numbers"},
    GrowsItsState: {"resumes": "in a field whose length changes"},
    ClimbsUp: {"learns": "the loss does not fall.*wrong sign"},
    StandsStill: {"learns": "a result that is not used"},
    OnlyDouble: {"keeps precision": r"torch\.float32, state\.\w+ is torch\.float64.*zeros_like"},
    OnlySingle: {"keeps precision": r"torch\.float64, state\.velocity is torch\.float32"},
    AsksTheServerUnsaid: {
        "says whether it needs server data": "needs_server_data is False, but .*return True"
    },
    NotFrozen: {"leaves itself alone": "frozen dataclass"},
    TooFast: {"runs": "Diverged.*lower the .*learning rate"},
}  # fmt: skip


def examined(method: Algorithm, **more: Any) -> Report:
    try:
        return conformance(method, **more)
    except NonConformant as error:
        return error.report


@pytest.fixture(autouse=True)
def _fresh() -> None:
    CALLS[0] = 0


def test_the_right_method_passes() -> None:
    for method in (Right(), DrawsFromTorchAfter()):
        report = conformance(method)
        assert report.passed
        assert len(report.held) == len(CHECKS) + 1


@pytest.mark.parametrize("method", WRONG)
def test_a_mistake_is_caught_and_named(method: type[Algorithm]) -> None:
    found: dict[str, str] = {}
    for finding in examined(method()).failures:
        found.setdefault(finding.check, finding.reason)
    assert found.keys() == WRONG[method].keys()
    for check, sentence in WRONG[method].items():
        assert re.search(sentence, found[check]), found[check]


def test_every_check_catches_something() -> None:
    names = {check.__name__.replace("_", " ") for check in CHECKS} | {"runs"}
    assert {name for caught in WRONG.values() for name in caught} == names


def test_all_failures_are_listed_in_one_error() -> None:
    with pytest.raises(AssertionError) as caught:
        conformance(KeepsOnSelf())
    said = str(caught.value)
    assert said.startswith("KeepsOnSelf does not keep what a method must")
    assert said.count("FAILED") == len(WRONG[KeepsOnSelf])


def test_on_a_federation_and_a_model_of_ones_own() -> None:
    draw = torch.Generator().manual_seed(2)
    held = [(torch.randn(9, 5, generator=draw), torch.randn(9, generator=draw)) for _ in range(5)]
    model = nn.Linear(5, 1)
    before = model.weight.clone()
    federation = Federation.from_arrays(held, server=held[0])
    block = FedBCGD(CLIENT, blocks=[slice(0, 2), slice(2, 5)], shared="bias", momentum=0.1)
    assert conformance(block, federation=federation, model=model).passed
    assert torch.equal(model.weight, before)
    report = examined(OverwritesState(), federation=federation, model=model)
    assert [f.problem for f in report.failures] == ["your problem"]
    alone = Federation.from_arrays(held[:1])
    report = conformance(FedAvg(CLIENT), federation=alone, model=lambda: nn.Linear(5, 1))
    assert [f.check for f in report.refused] == ["takes visitors"]


def test_a_method_that_needs_what_the_federation_has_not_is_told_so() -> None:
    draw = torch.Generator().manual_seed(2)
    held = [(torch.randn(9, 5, generator=draw), torch.randn(9, generator=draw)) for _ in range(5)]
    federation = Federation.from_arrays(held)
    report = examined(FedCLGC(CLIENT, SERVER), federation=federation, model=nn.Linear(5, 1))
    assert [f.check for f in report.failures] == ["runs"]
    assert "needs data at the server" in report.failures[0].reason


def test_what_cannot_be_checked_is_said_in_one_line() -> None:
    with pytest.raises(InputError, match=r"a method such as FedAvg\(SGD\(...\)\), not FedAvg"):
        conformance(FedAvg)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="federation and model together"):
        conformance(FedAvg(CLIENT), model=nn.Linear(5, 1))
    with pytest.raises(InputError, match="a loss only with"):
        conformance(FedAvg(CLIENT), loss=nn.functional.mse_loss)


def test_the_callers_random_state_and_threads_are_left_alone() -> None:
    states = torch.get_rng_state(), random.getstate(), torch.get_num_threads()
    conformance(FedAvg(CLIENT))
    assert torch.equal(torch.get_rng_state(), states[0])
    assert (random.getstate(), torch.get_num_threads()) == states[1:]
