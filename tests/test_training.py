"""`train` as a user meets it: what it returns, and one clear line for each mistake."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from bellwether import (
    FSL,
    SGD,
    Algorithm,
    ClientFailed,
    Clients,
    Diverged,
    FedAvg,
    FedCLGC,
    FedCLGS,
    FedDyn,
    Federation,
    InputError,
    RoundRecord,
    Safari,
    Scaffold,
    Sent,
    Server,
    ServerOnly,
    State,
    Upload,
    federate,
    mean,
    models,
    participation,
    partition,
    server_data,
    train,
)
from bellwether.core.participants import Client
from test_same_bits import CLIENT, METHODS, SERVER, batch_norm_network, dropout_network, federation

FEDAVG = FedAvg(CLIENT)


def test_the_records_tell_what_happened() -> None:
    seen: list[RoundRecord] = []
    result = train(
        FEDAVG,
        federation(),
        dropout_network,
        5,
        participation=participation.Uniform(3),
        eval_every=2,
        on_round=seen.append,
    )
    assert [r.round for r in seen] == [1, 2, 3, 4, 5]
    assert [bool(r.metrics) for r in seen] == [False, True, False, True, True]
    assert all(len(set(r.cohort)) == 3 for r in seen)
    assert all(r.seconds > 0 for r in seen)
    assert torch.equal(seen[-1].model, result.model)  # type: ignore[arg-type]
    assert not torch.equal(seen[0].model, seen[1].model)  # type: ignore[arg-type]
    assert result.history == seen
    d = result.model.numel()
    assert d == sum(p.numel() for p in dropout_network().parameters())
    for record in seen:  # an envelope and one vector a client, each way
        assert 4 * d < record.bytes_down / 3 < 4 * d + 64
        assert record.bytes_up == record.bytes_down


@pytest.mark.parametrize(
    ("method", "down", "up"), [("CLGSGD", 1, 1), ("FedCLGC", 2, 1), ("FedCLGS", 1, 2)]
)
def test_section_iv_b_what_goes_each_way(method: str, down: int, up: int) -> None:
    """FedCLG-C pays downwards, FedCLG-S upwards (Bian et al. 2024, Section IV-B)."""
    cohort = participation.Uniform(3)
    result = train(METHODS[method], federation(), dropout_network, 1, participation=cohort)
    vector = 3 * 4 * result.model.numel()
    (record,) = result.history
    assert down * vector < record.bytes_down < down * vector + 3 * 96
    assert up * vector < record.bytes_up < up * vector + 3 * 96


def test_a_server_round_asks_nobody_and_costs_nothing() -> None:
    (record,) = train(METHODS["ServerOnly"], federation(), dropout_network, 1).history
    assert record.cohort == ()
    assert record.bytes_down == record.bytes_up == 0


def test_batch_norm_statistics_travel_and_cost_bytes() -> None:
    result = train(FEDAVG, federation(), batch_norm_network, 1, eval_every=0)
    (record,) = result.history
    vectors = 4 * (result.model.numel() + result.buffers.numel())
    assert result.buffers.numel() == 32
    assert vectors < record.bytes_up / len(record.cohort) < vectors + 96
    assert not torch.equal(result.buffers[:16], torch.zeros(16))


def test_the_result_is_a_module_that_predicts() -> None:
    held = federation()
    result = train(FedAvg(CLIENT), held, batch_norm_network, 4)
    module = result.module()
    assert held.test is not None
    with torch.no_grad():
        right = (module(held.test.inputs).argmax(1) == held.test.targets).float().mean().item()
    assert right == pytest.approx(result.history[-1].metrics["accuracy"])
    assert module(held.test.inputs[:1]).shape == (1, 3)


def test_a_given_module_is_where_it_starts_and_stays_as_it_is() -> None:
    module = dropout_network()
    before = [p.detach().clone() for p in module.parameters()]
    result = train(FedAvg(SGD(lr=0.0, epochs=1)), federation(), module, 2)
    assert torch.equal(result.model, torch.cat([p.reshape(-1) for p in before]))
    train(FEDAVG, federation(), module, 2)
    assert all(torch.equal(a, b) for a, b in zip(before, module.parameters(), strict=True))


def test_no_rounds_no_test_samples_no_evaluation() -> None:
    held = Federation.from_arrays([(np.ones((4, 2)), np.zeros(4, int))])
    result = train(FEDAVG, held, lambda: nn.Linear(2, 2), 2)
    assert [r.metrics for r in result.history] == [{}, {}]
    assert train(FEDAVG, held, lambda: nn.Linear(2, 2), 0).history == []


def test_regression_on_the_users_own_arrays() -> None:
    rng = np.random.default_rng(0)
    truth = rng.normal(size=3)

    def holder(n: int) -> tuple[np.ndarray, np.ndarray]:
        x = rng.normal(size=(n, 3))
        return x, x @ truth

    held = Federation.from_arrays([holder(20) for _ in range(8)], test=holder(50))
    result = train(FedAvg(SGD(lr=0.1, epochs=3, batch_size=5)), held, nn.Linear(3, 1), 40)
    assert result.history[-1].metrics["loss"] < 1e-6
    assert set(result.history[-1].metrics) == {"loss"}
    np.testing.assert_allclose(result.module().weight.detach().numpy()[0], truth, atol=1e-3)  # type: ignore[union-attr]


def test_lazy_clients_are_loaded_only_when_they_come() -> None:
    loaded: list[int] = []

    def load(client: int) -> tuple[np.ndarray, np.ndarray]:
        loaded.append(client)
        rng = np.random.default_rng(client)
        return rng.normal(size=(10, 4)).astype("f"), rng.integers(0, 2, 10)

    held = Federation.lazy(1_000_000, load, test=load(0))
    loaded.clear()
    cohort = participation.Uniform(5)
    result = train(FEDAVG, held, lambda: nn.Linear(4, 2), 3, participation=cohort)
    assert loaded == [client for record in result.history for client in record.cohort]


# --- mistakes ---------------------------------------------------------------------------------

NAN = float("nan")


def linear() -> nn.Module:
    return nn.Linear(6, 3)


def arrays(**change: Any) -> Callable[[], Federation]:
    def make() -> Federation:
        x, y = np.zeros((5, 6), "f"), np.array([0, 1, 2, 0, 1])
        pairs: dict[str, Any] = {"clients": [(x, y), (x, y)], "server": (x, y), "test": (x, y)}
        return Federation.from_arrays(**{**pairs, **change})

    return make


X, Y = np.zeros((5, 6), "f"), np.array([0, 1, 2, 0, 1])
MISTAKES: dict[str, tuple[Callable[[], object], str]] = {
    "more clients than samples": (
        lambda: federate((X, Y), clients=6),
        "6",
    ),
    "a cohort larger than the population": (
        lambda: train(FEDAVG, arrays()(), linear, 1, participation=participation.Uniform(3)),
        "3.*2",
    ),
    "alpha 0": (lambda: partition.Dirichlet(0), "alpha"),
    "alpha NaN": (lambda: partition.Dirichlet(NAN), "alpha"),
    "a negative rate": (lambda: SGD(lr=-0.1, epochs=1), "lr=-0.1"),
    "a rate of NaN": (lambda: SGD(lr=NAN, epochs=1), "lr=nan"),
    "both epochs and steps": (lambda: SGD(lr=0.1, epochs=1, steps=1), "exactly one"),
    "no server data": (
        lambda: train(FedCLGC(CLIENT, SERVER), arrays(server=None)(), linear, 1),
        "FedCLGC needs data at the server",
    ),
    "an empty client": (arrays(clients=[(X, Y), (X[:0], Y[:0])]), "client 1"),
    "labels outside the model's classes": (
        lambda: train(FEDAVG, arrays()(), nn.Linear(6, 2), 1),
        "labels go up to 2 but the model has 2 outputs; give it 3",
    ),
    "labels outside them, of a client that comes later": (
        lambda: train(FEDAVG, Federation.lazy(9, lambda i: (X, Y + i)), linear, 1),
        "client [1-8], round 1: labels go up to [0-9]+ but the model has 3 outputs; give it",
    ),
    "labels outside them, of a server beside lazy clients": (
        lambda: train(
            ServerOnly(SERVER), Federation.lazy(9, lambda i: (X, Y), server=(X, Y + 1)), linear, 1
        ),
        "the server: labels go up to 3 but the model has 3 outputs; give it 4",
    ),
    "x and y of different lengths": (arrays(clients=[(X, Y[:4])]), "5 inputs but 4 targets"),
    "inputs that do not fit": (
        lambda: train(FEDAVG, arrays()(), nn.Linear(7, 3), 1),
        r"cannot take inputs of shape \(6,\)",
    ),
    "outputs that do not fit": (
        lambda: train(FEDAVG, arrays()(), nn.Sequential(nn.Linear(6, 3), nn.Flatten(0)), 1),
        "the loss cannot compare outputs of shape",
    ),
    "a loss that is no number": (
        lambda: train(FEDAVG, arrays()(), linear, 1, loss=lambda o, t: o),
        "must be one number",
    ),
    "half precision": (
        lambda: train(FEDAVG, arrays()(), lambda: linear().half(), 1),
        "float32 or all float64",
    ),
    "a class instead of a method": (
        lambda: train(FedAvg, arrays()(), linear, 1),  # type: ignore[arg-type]
        "a method such as",
    ),
    "no module": (
        lambda: train(FEDAVG, arrays()(), lambda: 3, 1),  # type: ignore[arg-type,return-value]
        "torch.nn.Module",
    ),
    "rounds that are no number": (
        lambda: train(FEDAVG, arrays()(), linear, 2.5),  # type: ignore[arg-type]
        "rounds must be a whole number",
    ),
    "an unknown device": (
        lambda: train(FEDAVG, arrays()(), linear, 1, device="abacus"),
        "device 'abacus'",
    ),
    "a choice that is none": (
        lambda: train(Scaffold(CLIENT, option=3), arrays()(), linear, 1),  # type: ignore[arg-type]
        r"Scaffold\(option=3\): must be 1 or 2",
    ),
    "clients that must move": (lambda: Scaffold(SGD(lr=0.1, epochs=0)), "must move"),
    "alpha of FedDyn": (lambda: FedDyn(CLIENT, alpha=0.0), "alpha must be a finite number above 0"),
    "q of SAFARI": (lambda: Safari(CLIENT, SERVER, q=1.5), "probability"),
    "FSL without epochs": (lambda: FSL(SGD(lr=0.1, steps=3)), "epochs follow the clients'"),
    "a server set larger than what is left": (
        lambda: federate((X, Y), clients=2, server=server_data.Sample(samples=9)),
        "9",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_clear_line(name: str) -> None:
    make, message = MISTAKES[name]
    with pytest.raises(InputError, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


EXPLOSIVE = SGD(lr=1e20, epochs=3)


def test_divergence_stops_with_round_client_and_hint() -> None:
    with pytest.raises(
        Diverged, match=r"round \d+, client \d: change is not finite; lower .*1e\+20"
    ):
        train(FedAvg(EXPLOSIVE), federation(), dropout_network, 30)
    with pytest.raises(Diverged, match=r"round \d+, server: .*lower the server's"):
        train(ServerOnly(EXPLOSIVE), federation(), dropout_network, 30)
    result = train(
        FedCLGS(EXPLOSIVE, SERVER), federation(), dropout_network, 6, stop_on_divergence=False
    )
    assert not result.model.isfinite().all()
    assert len(result.history) == 6


@dataclass(frozen=True)
class Careless(Algorithm):
    """A method whose author slips in one of several ways."""

    slip: str

    def round(self, state: State, clients: Clients, server: Server) -> State:
        replies = clients.run(self.local, Sent(state.model))
        if self.slip == "read twice":
            list(replies)
        change = mean(replies).change
        return state.model + change if self.slip == "no state" else State(state.model + change)  # type: ignore[no-any-return]

    def local(self, client: Client, sent: Sent) -> Upload:
        if self.slip == "raise":
            raise KeyError("age")
        if self.slip == "in place":
            sent.model.add_(1)
        if self.slip == "a dict":
            return {"change": sent.model}  # type: ignore[return-value]
        return Upload(sent.model * 0)


@pytest.mark.parametrize(
    ("slip", "error", "message"),
    [
        ("raise", ClientFailed, r"client \d, round 1: KeyError: 'age' \(.*test_training.py:\d+\)"),
        ("in place", InputError, "changed in place"),
        ("a dict", InputError, "must return a dataclass"),
        ("no state", InputError, "Careless.round must return a State"),
        ("read twice", InputError, "read once"),
    ],
)
def test_a_careless_method_is_told_what_is_wrong(
    slip: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        train(Careless(slip), federation(), dropout_network, 1)


def test_replies_that_nobody_reads_still_count() -> None:
    @dataclass(frozen=True)
    class Deaf(Algorithm):
        client: SGD

        def round(self, state: State, clients: Clients, server: Server) -> State:
            clients.run(self.local, Sent(state.model))
            return state

        def local(self, client: Client, sent: Sent) -> Upload:
            return Upload(client.descend(sent.model, self.client).change)

    deaf = train(Deaf(CLIENT), federation(), batch_norm_network, 2)
    heard = train(FedAvg(CLIENT, global_lr=0.0), federation(), batch_norm_network, 2)
    assert [r.bytes_up for r in deaf.history] == [r.bytes_up for r in heard.history]
    assert torch.equal(deaf.buffers, heard.buffers)


def test_every_factory_works_without_arguments() -> None:
    others = {"blocks", "create", "default_for", "losses", "names"}
    with torch.device("meta"):  # the largest would take seconds
        for name in set(models.__all__) - others:
            assert isinstance(getattr(models, name)(), nn.Module), name
