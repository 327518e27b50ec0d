"""What must hold between methods by construction."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

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
from quadratics import Problem, Quadratic, half_squared_error, model, problem

BATCHED = SGD(lr=0.04, epochs=2, batch_size=5)
FULL = SGD(lr=0.04, steps=3)
NOTHING = SGD(lr=0.03, epochs=0)
SCHEDULE = participation.Fixed([[4, 1], [0, 5, 2], [3]])


def run(algorithm: Algorithm, federation: Federation, rounds: int = 5) -> Tensor:
    return train(
        algorithm,
        federation,
        model,
        rounds,
        participation=SCHEDULE,
        loss=half_squared_error,
    ).model


@pytest.fixture(scope="module")
def federation() -> Federation:
    return problem().federation


def test_clg_sgd_without_server_steps_is_fedavg(federation: Federation) -> None:
    assert torch.equal(
        run(CLGSGD(BATCHED, NOTHING, global_lr=0.6), federation),
        run(FedAvg(BATCHED, global_lr=0.6), federation),
    )


def test_clg_sgd_with_a_client_that_stands_still_is_server_only(federation: Federation) -> None:
    still = SGD(lr=0.0, epochs=1, batch_size=5)
    assert torch.equal(
        run(CLGSGD(still, BATCHED), federation), run(ServerOnly(BATCHED), federation)
    )


def test_fedclg_c_and_s_agree_after_one_full_gradient_step(federation: Federation) -> None:
    one = SGD(lr=0.04, steps=1)
    c = run(FedCLGC(one, FULL, global_lr=0.6), federation)
    s = run(FedCLGS(one, FULL, global_lr=0.6), federation)
    torch.testing.assert_close(c, s, rtol=1e-13, atol=1e-13)


def test_with_one_step_both_are_one_server_step_of_rate_eta_times_global(
    federation: Federation,
) -> None:
    one = SGD(lr=0.05, steps=1)
    c = run(FedCLGC(one, NOTHING, global_lr=0.6), federation)
    expected = run(ServerOnly(SGD(lr=0.03, steps=1)), federation)
    torch.testing.assert_close(c, expected, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("method", [FedCLGC, FedCLGS])
def test_correction_vanishes_when_all_hold_the_same(method: type[Algorithm]) -> None:
    """g_s = g_i: FedCLG is then CLG-SGD."""
    q = problem().server
    same = Problem([q] * 6, q).federation
    torch.testing.assert_close(
        run(method(FULL, FULL), same), run(CLGSGD(FULL, FULL), same), rtol=1e-13, atol=1e-13
    )


def test_a_single_client_is_centralised_sgd() -> None:
    q = problem().server
    alone = Federation.from_arrays(clients=[(q.rows, q.values)], server=(q.rows, q.values))

    def one(algorithm: Algorithm) -> Tensor:
        everyone = participation.Uniform(1)
        return train(
            algorithm, alone, model, 7, participation=everyone, loss=half_squared_error
        ).model

    module = model()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.04)
    x, y = torch.from_numpy(q.rows), torch.from_numpy(q.values)
    for _ in range(7 * FULL.steps):
        optimizer.zero_grad()
        half_squared_error(module(x), y).backward()
        optimizer.step()
    central = module.weight.detach().reshape(-1)
    torch.testing.assert_close(one(FedAvg(FULL)), central, rtol=1e-13, atol=1e-13)
    torch.testing.assert_close(one(FedCLGC(FULL, NOTHING)), central, rtol=1e-13, atol=1e-13)
    assert torch.equal(one(ServerOnly(FULL)), central)


@pytest.mark.parametrize("method", [FedCLGC, FedCLGS])
def test_with_exact_server_data_the_optimum_is_a_fixed_point(method: type[Algorithm]) -> None:
    """f_s = f: cohorts of different clients no longer move x*, though FedAvg's do."""
    p = problem().with_exact_server()
    federation = p.federation
    np.testing.assert_allclose(p.server.gradient(p.optimum), 0, atol=1e-12)

    def drift(algorithm: Algorithm, x: np.ndarray, rounds: int) -> float:
        def at_x() -> nn.Module:
            module = model()
            with torch.no_grad():
                module.weight.copy_(torch.from_numpy(x))
            return module

        end = train(
            algorithm, federation, at_x, rounds, participation=SCHEDULE, loss=half_squared_error
        ).model
        return float(np.linalg.norm(end.numpy() - p.optimum))

    # The correction of FedCLG-S is to first order: exact for one step, small for several.
    one = SGD(lr=0.05, steps=1)
    assert drift(method(one, FULL), p.optimum, 9) < 1e-12
    assert drift(method(one, FULL), p.optimum + 1, 3000) < 1e-12
    assert drift(FedAvg(one), p.optimum, 9) > 1e-2
    if method is FedCLGC:
        assert drift(FedCLGC(SGD(lr=0.05, steps=7), FULL), p.optimum, 9) < 1e-12


def test_server_data_outside_the_population_bias_the_fixed_point() -> None:
    """With f_s unlike f, FedCLG rests at the server's optimum, not at the population's."""
    p = problem()
    end = run(FedCLGC(SGD(lr=0.05, steps=1), NOTHING), p.federation, rounds=3000).numpy()
    np.testing.assert_allclose(end, p.server.b, atol=1e-10)
    assert np.linalg.norm(end - p.optimum) > 0.1


def test_quadratics_themselves() -> None:
    """The closed form of the test's own transcription, step by step."""
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(9, 5))
    q = Quadratic(rows, rng.normal(size=9))
    x = y = rng.normal(size=5)
    v = rng.normal(size=5)
    for _ in range(6):
        y = y - 0.1 * (rows.T @ (rows @ y - q.values) / 9 + v)
    np.testing.assert_allclose(q.descend(x, 0.1, 6, v), y, rtol=1e-12)
