"""Where methods come to rest on heterogeneous, strongly convex clients: 4 of 6 come, for long."""

import numpy as np
import pytest

from bellwether import (
    CLGSGD,
    SGD,
    Algorithm,
    FedAvg,
    FedAvgM,
    FedBCGD,
    FedBCGDPlus,
    FedDC,
    FedDyn,
    Safari,
    Scaffold,
    participation,
    train,
)
from quadratics import DIMENSION, Problem, Quadratic, half_squared_error, model

CLIENT = SGD(lr=0.1, steps=5)
BLOCKS = {"blocks": (slice(0, 2), slice(2, 4)), "shared": slice(4, 5)}


def well_conditioned() -> Problem:
    """Curvatures between 0.5 and 2 in directions of each client's own, minima far apart."""
    rng = np.random.default_rng(1)

    def participant() -> Quadratic:
        directions, _ = np.linalg.qr(rng.normal(size=(DIMENSION, DIMENSION)))
        rows = np.sqrt(rng.uniform(0.5, 2, DIMENSION) * DIMENSION)[:, None] * directions
        return Quadratic(rows, rows @ rng.normal(size=DIMENSION) * 3)

    return Problem([participant() for _ in range(6)], participant())


PROBLEM = well_conditioned()
FEDERATION = PROBLEM.federation


def rest(method: Algorithm, rounds: int) -> float:
    """How far from the optimum the method ends."""
    result = train(
        method,
        FEDERATION,
        model,
        rounds,
        participation=participation.Uniform(4),
        loss=half_squared_error,
    )
    return float(np.abs(result.model.numpy() - PROBLEM.optimum).max())


EXACT = {
    "SCAFFOLD, option 1": (Scaffold(CLIENT, option=1), 120),
    "SCAFFOLD, option 2": (Scaffold(CLIENT), 120),
    "FedDyn": (FedDyn(SGD(lr=0.1, steps=10), alpha=2.0), 150),
    "FedDC": (FedDC(CLIENT, alpha=0.1), 200),
    "FedBCGD+": (FedBCGDPlus(CLIENT, momentum=0.3, **BLOCKS), 350),
}


@pytest.mark.parametrize("name", EXACT)
def test_the_optimum_is_reached(name: str) -> None:
    assert rest(*EXACT[name]) < 1e-13


BIASED = {
    "FedAvg": FedAvg(CLIENT),
    "FedAvgM": FedAvgM(CLIENT, momentum=0.3),
    "FedBCGD": FedBCGD(CLIENT, momentum=0.3, **BLOCKS),
    "CLG-SGD": CLGSGD(CLIENT, CLIENT),
    "SAFARI": Safari(CLIENT, CLIENT),
}


@pytest.mark.parametrize("name", BIASED)
def test_others_stay_away_from_it(name: str) -> None:
    assert rest(BIASED[name], 150) > 1e-2


def test_where_fedavg_rests_when_all_come() -> None:
    """x = (1/N) sum ((I - (I - eta A_i)^K) b_i + (I - eta A_i)^K x): not the optimum."""
    shrink = [
        np.linalg.matrix_power(np.eye(DIMENSION) - CLIENT.lr * q.A, 5) for q in PROBLEM.clients
    ]
    left = np.eye(DIMENSION) - np.mean(shrink, axis=0)
    right = np.mean(
        [(np.eye(DIMENSION) - s) @ q.b for s, q in zip(shrink, PROBLEM.clients, strict=True)],
        axis=0,
    )
    point = np.linalg.solve(left, right)
    end = train(
        FedAvg(CLIENT), FEDERATION, model, 300,
        participation=participation.Uniform(6), loss=half_squared_error,
    ).model  # fmt: skip
    np.testing.assert_allclose(end.numpy(), point, atol=1e-12)
    assert np.abs(point - PROBLEM.optimum).max() > 1e-2
