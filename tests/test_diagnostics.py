"""What is measured while training: closed forms, and no bit of the training that it changes."""

import itertools
import json
import re
from dataclasses import dataclass
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from bellwether import (
    SGD,
    Algorithm,
    Clients,
    FedAvg,
    FedCLGC,
    Federation,
    InputError,
    Safari,
    Sent,
    Server,
    State,
    Upload,
    compression,
    mean,
    participation,
    train,
)
from bellwether.algorithms import CATALOGUE, create
from bellwether.core.participants import Client
from bellwether.engines.local import Local
from bellwether.experiments.diagnostics import Moments, Schedule
from bellwether.experiments.run import Result
from quadratics import DIMENSION, Problem, Quadratic, half_squared_error, model, problem
from test_same_bits import CLIENT, SERVER, federation
from test_workers import network

ETA, K = 0.05, 4
SCHEDULE = [[4, 1, 3], [0, 5], [2], [5, 4, 3, 2, 1, 0]]
OF_SERVER, OF_COHORT = (
    {"server_gap", "server_cosine"},
    {"participation_error", "client_drift", "mean_change"},
)
OF_ALL = {"gradient_norm", "dissimilarity"}


def run(method: Algorithm, federation: Federation, rounds: int, **more: Any) -> Result:
    settings = {"loss": half_squared_error, "diagnose_every": 1} | more
    return train(method, federation, model, rounds, **settings)


def models(method: Algorithm, p: Problem, cohorts: list[list[int]]) -> list[np.ndarray]:
    """The models that the rounds start from."""
    x = [model().weight.detach().numpy().ravel().copy()]
    coming = participation.Fixed(cohorts)
    run(method, p.federation, len(cohorts), participation=coming, diagnose_every=0,
        on_round=lambda r: x.append(r.model.numpy().copy()))  # fmt: skip
    return x


def square(v: np.ndarray) -> float:
    return float(v @ v)


@pytest.mark.parametrize("weights", ["uniform", "samples"])
@pytest.mark.parametrize("kind", [FedAvg, FedCLGC])
def test_closed_forms(kind: type[Algorithm], weights: str) -> None:
    p, sgd = problem(), SGD(lr=ETA, steps=K)
    method = FedAvg(sgd, weights=weights) if kind is FedAvg else FedCLGC(sgd, sgd, weights=weights)
    coming = participation.Fixed(SCHEDULE)
    history = run(method, p.federation, len(SCHEDULE), participation=coming).history
    n = np.array([len(q.rows) if weights == "samples" else 1.0 for q in p.clients])
    for x, record in zip(models(method, p, SCHEDULE), history, strict=False):
        g = np.array([q.gradient(x) for q in p.clients])
        F, guide, cohort = n @ g / n.sum(), p.server.gradient(x), list(record.cohort)
        v = 0 * g if kind is FedAvg else guide - g
        ends = [p.clients[i].descend(x, ETA, K, v[i]) - x for i in cohort]
        share = n[cohort] / n[cohort].sum()
        assert record.metrics == pytest.approx(
            {
                "gradient_norm": np.linalg.norm(F),
                "dissimilarity": n @ ((g - F) ** 2).sum(1) / n.sum(),
                "server_gap": square(guide - F),
                "server_cosine": guide @ F / np.linalg.norm(guide) / np.linalg.norm(F),
                "participation_error": square(share @ g[cohort] - F),
                "client_drift": share @ [square(end) for end in ends],
                "mean_change": np.linalg.norm(share @ ends),
            },
            rel=1e-9,
        )


@pytest.mark.parametrize("clients", [1, 2, 3, 5])
def test_the_mean_error_over_all_cohorts(clients: int) -> None:
    """(N - M) / (M (N - 1)) G^2, uniformly without replacement; rate 0 stays at one x."""
    p, N = problem(5), 5
    cohorts = [list(c) for c in itertools.combinations(range(N), clients)]
    coming = participation.Fixed(cohorts)
    method = FedAvg(SGD(lr=0.0, steps=1))
    history = run(method, p.federation, comb(N, clients), participation=coming).history
    assert len({r.metrics["dissimilarity"] for r in history}) == 1
    errors = [r.metrics["participation_error"] for r in history]
    factor = (N - clients) / (clients * (N - 1))
    expected = factor * history[0].metrics["dissimilarity"]
    assert np.mean(errors) == pytest.approx(expected, rel=1e-12, abs=1e-20)


def test_an_exact_server_has_no_gap() -> None:
    history = run(FedAvg(SGD(lr=ETA, steps=K)), problem().with_exact_server().federation, 3).history
    for record in history:
        assert record.metrics["server_gap"] < 1e-25
        assert record.metrics["server_cosine"] == pytest.approx(1)
        assert record.metrics["participation_error"] < 1e-25  # by default all six come


def test_clients_without_a_descent_do_not_drift_and_a_zero_gradient_points_nowhere() -> None:
    at_rest = Quadratic(np.eye(DIMENSION), np.linspace(-1, 1, DIMENSION))
    still = run(FedAvg(SGD(lr=ETA, steps=K)), Problem([at_rest] * 3, at_rest).federation, 1)
    assert still.history[0].metrics == {
        **dict.fromkeys(OF_ALL | OF_COHORT, 0.0),
        "server_gap": 0.0,
    }


def test_when_and_what() -> None:
    """In the first round and each that `diagnose_every` divides; what there is nobody for, not."""
    p = problem()
    alone = Federation.from_arrays([(q.rows, q.values) for q in p.clients])
    history = run(FedAvg(SGD(lr=ETA, steps=K)), alone, 7, diagnose_every=3).history
    assert [set(r.metrics) for r in history] == [
        OF_ALL | OF_COHORT if r.round in (1, 3, 6) else set() for r in history
    ]
    server_round = Safari(SGD(lr=ETA, steps=K), SGD(lr=ETA, steps=1), q=0.0)
    (record,) = run(server_round, p.federation, 1).history
    assert set(record.metrics) == OF_ALL | OF_SERVER


@dataclass(frozen=True)
class Visits:
    count: Tensor


@dataclass(frozen=True)
class InPlace(Algorithm):
    """What it should not do: it changes what a client keeps where it lies."""

    client: SGD
    memory = Visits

    def round(self, state: State, clients: Clients, server: Server) -> State:
        x = state.model
        return State(x + mean(clients.run(self.local, Sent(x))).change)

    def local(self, client: Client, sent: Sent) -> Upload:
        client.memory.count.add_(1)
        push = 0.01 * client.memory.count
        return Upload(client.descend(sent.model, self.client, push).change)


CASES: dict[str, tuple[Algorithm, dict[str, Any]]] = {
    **{
        name: (create(name, client=CLIENT, server=SERVER), {"participation": coming})
        for name in CATALOGUE
        for coming in [participation.Uniform(4)]
    },
    "in place": (InPlace(CLIENT), {}),
    "compressed": (
        FedCLGC(CLIENT, SERVER),
        {
            "compress_up": compression.TopK(fraction=0.1),
            "compress_down": compression.Quantise(bits=4),
        },
    ),
    "local statistics": (FedCLGC(CLIENT, SERVER), {"statistics": "local"}),
}


@pytest.mark.parametrize("case", CASES)
def test_no_bit_of_the_training_changes(case: str) -> None:
    """With dropout, batch-norm, memories, messages that depend on those before."""
    method, settings = CASES[case]

    def bits(**more: Any) -> tuple[list[bytes], bytes, list[dict[str, float]]]:
        seen: list[bytes] = []
        result = train(method, federation(), network, 4, seed=3, **settings, **more,
                       on_round=lambda r: seen.append(r.model.numpy().tobytes()))  # fmt: skip
        metrics = [r.metrics for r in result.history]
        return seen, result.buffers.numpy().tobytes(), metrics

    plain, watched = bits(), bits(diagnose_every=1)
    assert watched[:2] == plain[:2]
    scores = [{k: m[k] for k in ("loss", "accuracy")} for m in watched[2]]
    assert scores == plain[2]
    assert all(set(m) > OF_ALL for m in watched[2])


def test_the_same_numbers_in_workers_and_one_by_one() -> None:
    method = create("scaffold", client=CLIENT)

    def metrics(engine: Local) -> list[dict[str, float]]:
        result = train(method, federation(), network, 3, seed=3, engine=engine, diagnose_every=2)
        return [r.metrics for r in result.history]

    assert metrics(Local(workers=2)) == metrics(Local())


def loaded(client: int) -> tuple[np.ndarray, np.ndarray]:
    q = problem().clients[client % 6]
    return q.rows, q.values


def test_a_lazy_federation_is_measured_on_a_sample() -> None:
    lazy = Federation.lazy(10_000, loaded)
    method = FedAvg(SGD(lr=0.0, steps=1))
    with pytest.raises(InputError, match=r"all 10,000 clients .* diagnose_clients=100"):
        run(method, lazy, 1)
    history = run(method, lazy, 2, diagnose_clients=300).history
    whole = run(method, problem().federation, 1).history[0].metrics
    for record in history:
        assert record.metrics["dissimilarity"] == pytest.approx(whole["dissimilarity"], rel=0.5)
    assert history[0].metrics["dissimilarity"] != history[1].metrics["dissimilarity"]
    assert set(history[0].metrics) == OF_ALL | OF_COHORT


def test_the_sample_is_a_set_from_a_stream_of_its_own() -> None:
    schedule = Schedule(1, 5)
    drawn = [tuple(schedule.drawn(1_000_000, 0, round)) for round in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert all(len(set(d)) == 5 and min(d) >= 0 and max(d) < 1_000_000 for d in drawn)
    assert tuple(schedule.drawn(4, 0, 1)) == (0, 1, 2, 3)


def test_what_a_sample_of_clients_overstates(monkeypatch: pytest.MonkeyPatch) -> None:
    """As docs/diagnostics.md says; the mean over all samples of 2 of 5 clients."""
    samples = list(itertools.combinations(range(5), 2))
    p, method = problem(5), FedAvg(SGD(lr=0.0, steps=1))
    truth = run(method, p.federation, 1).history[0].metrics
    monkeypatch.setattr(Schedule, "drawn", lambda self, population, seed, r: samples[r - 1])
    history = run(method, p.federation, len(samples)).history
    found = {name: np.mean([r.metrics[name] for r in history]) for name in truth}
    error = (5 - 2) / (2 * (5 - 1)) * truth["dissimilarity"]
    assert found["server_gap"] == pytest.approx(truth["server_gap"] + error)
    assert found["dissimilarity"] == pytest.approx(truth["dissimilarity"] - error)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"diagnose_every": -1}, "diagnose_every"),
        ({"diagnose_every": 0, "diagnose_clients": 5}, "diagnose_clients needs diagnose_every"),
        ({"diagnose_clients": 0}, "diagnose_clients"),
    ],
)
def test_mistakes(more: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        run(FedAvg(SGD(lr=ETA, steps=K)), problem().federation, 1, **more)


def test_written_down_and_the_same_after_resuming(tmp_path: Path) -> None:
    method, where = FedAvg(SGD(lr=ETA, steps=K)), problem().federation

    def lines(folder: Path) -> list[dict[str, float]]:
        text = (folder / "metrics.jsonl").read_text()
        return [json.loads(line)["metrics"] for line in text.splitlines()]

    run(method, where, 6, run_dir=tmp_path / "whole", diagnose_every=2)
    run(method, where, 3, run_dir=tmp_path / "parts", diagnose_every=2)
    run(method, where, 6, run_dir=tmp_path / "parts", diagnose_every=2, resume=True)
    assert lines(tmp_path / "parts") == lines(tmp_path / "whole")
    assert set(lines(tmp_path / "whole")[3]) == OF_ALL | OF_SERVER | OF_COHORT


def test_the_document_names_every_metric_and_its_example_runs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = (Path(__file__).parents[1] / "docs" / "diagnostics.md").read_text()
    named = re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)
    assert set(named) == OF_ALL | OF_SERVER | OF_COHORT
    (program,) = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    exec(compile(program.replace("rounds=60", "rounds=2"), "diagnostics.md", "exec"), {})
    round, gap, dissimilarity = capsys.readouterr().out.split()
    assert round == "1"
    assert 0 < float(gap) < float(dissimilarity)


vectors = st.lists(
    st.tuples(st.lists(st.floats(-10, 10), min_size=3, max_size=3), st.floats(0.1, 9)), min_size=1
)


@given(vectors, st.sampled_from([0.0, 1e8]))
def test_moments_do_not_cancel(drawn: list[tuple[list[float], float]], offset: float) -> None:
    values = np.array([v for v, _ in drawn]) + offset
    weights = np.array([w for _, w in drawn])
    moments = Moments()
    for value, weight in zip(values, weights, strict=True):
        moments.add(torch.from_numpy(value), weight)
    centre = np.average(values, axis=0, weights=weights)
    spread = np.average(((values - centre) ** 2).sum(1), weights=weights)
    assert moments.mean is not None
    np.testing.assert_allclose(moments.mean, centre, rtol=1e-14, atol=1e-13)
    assert moments.spread == pytest.approx(spread, rel=1e-6, abs=1e-13 + 1e-15 * offset)
