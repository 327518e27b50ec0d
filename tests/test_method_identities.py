"""What must hold between the methods by construction, on mini-batches; and their invariants."""

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from bellwether import (
    CLGSGD,
    FSL,
    FSLP,
    SGD,
    Algorithm,
    DataSharing,
    FedAvg,
    FedAvgM,
    FedBCGD,
    FedBCGDPlus,
    FedDC,
    FedDyn,
    Federation,
    FLTrust,
    InputError,
    Safari,
    Scaffold,
    ScaffoldPlus,
    ServerOnly,
    participation,
    train,
)
from bellwether.core import rounds
from bellwether.core.isolation import isolated
from bellwether.core.tasks import Workplace
from bellwether.engines import Local
from quadratics import DIMENSION, half_squared_error, model, problem

CLIENT = SGD(lr=0.04, epochs=2, batch_size=5)
SERVER = SGD(lr=0.03, epochs=2, batch_size=4)
FULL = SGD(lr=0.04, steps=3)
NOTHING = SGD(lr=0.03, epochs=0)
SCHEDULE = [[4, 1], [0, 5, 2], [3], [2, 1, 4]]
WHOLE = {"blocks": (slice(0, DIMENSION),), "momentum": 0.0}
FEDERATION = problem().federation
ALONE = Federation.from_arrays([(q.rows, q.values) for q in problem().clients])


def run(algorithm: Algorithm[Any], federation: Federation = FEDERATION, count: int = 6) -> Tensor:
    return train(
        algorithm,
        federation,
        model,
        count,
        participation=participation.Fixed(SCHEDULE),
        loss=half_squared_error,
    ).model


SAME_BITS = {
    "FSL of weight 0": (FSL(CLIENT, weight=0.0, global_lr=0.7), FedAvg(CLIENT, global_lr=0.7)),
    "FSL at a rate of its own": (
        FSL(CLIENT, SERVER, weight=0.5, global_lr=0.7, derive_rate=False),
        CLGSGD(CLIENT, SGD(lr=0.015, epochs=2, batch_size=4), global_lr=0.7),
    ),
    "SCAFFOLD+ with a server at rest": (ScaffoldPlus(CLIENT, NOTHING), Scaffold(CLIENT)),
    "FedAvgM without momentum": (
        FedAvgM(CLIENT, momentum=0.0, global_lr=0.7),
        FedAvg(CLIENT, global_lr=0.7),
    ),
    "SAFARI without clients": (Safari(CLIENT, SERVER, q=0.0), ServerOnly(SERVER)),
    "SAFARI without server": (Safari(CLIENT, SERVER, q=1.0), FedAvg(CLIENT)),
    "FedBCGD of one block": (FedBCGD(CLIENT, **WHOLE), FedAvg(CLIENT)),
    "FedBCGD with all shared": (
        FedBCGD(CLIENT, blocks=((),), shared=slice(0, DIMENSION), momentum=0.0),
        FedAvg(CLIENT),
    ),
}


@pytest.mark.parametrize("name", SAME_BITS)
def test_one_method_is_another(name: str) -> None:
    left, right = SAME_BITS[name]
    torch.testing.assert_close(run(left), run(right), rtol=1e-13, atol=1e-13)


def test_sharing_nothing_is_fedavg() -> None:
    assert torch.equal(run(DataSharing(CLIENT), ALONE), run(FedAvg(CLIENT), ALONE))
    assert not torch.equal(run(DataSharing(CLIENT)), run(FedAvg(CLIENT)))


def test_fsl_derives_its_rate() -> None:
    """gamma eta_0 K_0 = gamma K eta_g eta with eta_g = sqrt(M), eq. 11."""
    steps = SGD(lr=0.04, steps=6, batch_size=5)
    fsl = run(FSL(steps, SGD(lr=9.9, steps=4), weight=0.5), count=1)
    rate = 0.5 * 6 * 2**0.5 * 0.04 / 4
    same = run(CLGSGD(steps, SGD(lr=rate, steps=4), global_lr=2**0.5), count=1)
    torch.testing.assert_close(fsl, same, rtol=1e-13, atol=1e-13)


def test_the_first_round_of_scaffold_is_fedavg() -> None:
    assert torch.equal(run(Scaffold(CLIENT), count=1), run(FedAvg(CLIENT), count=1))
    assert not torch.equal(run(Scaffold(CLIENT)), run(FedAvg(CLIENT)))


def test_fedbcgd_plus_of_one_block_is_scaffold_of_option_1() -> None:
    left, right = run(FedBCGDPlus(FULL, **WHOLE)), run(Scaffold(FULL, option=1))
    torch.testing.assert_close(left, right, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("method", [FedAvg, Scaffold, FedBCGD, FedBCGDPlus])
def test_one_client_with_everything_is_centralised(method: type[Algorithm[Any]]) -> None:
    q = problem().server
    alone = Federation.from_arrays([(q.rows, q.values)], server=(q.rows, q.values))
    own = WHOLE if method in (FedBCGD, FedBCGDPlus) else {}

    def central(algorithm: Algorithm[Any]) -> Tensor:
        return train(algorithm, alone, model, 5, loss=half_squared_error).model

    torch.testing.assert_close(
        central(method(FULL, **own)), central(ServerOnly(FULL)), rtol=1e-12, atol=1e-12
    )


def advance(algorithm: Algorithm[Any], count: int) -> list[rounds.Progress]:
    """What a run carries from round to round, client memories included."""
    with isolated():
        place = Workplace(model(), half_squared_error, FEDERATION, 0, torch.device("cpu"))
        engine, space = Local(), place.workspace()
        engine.start(place)
        setting = rounds.Setting(
            algorithm.laid_out(space.layers), FEDERATION, participation.Uniform(4), engine, space, 0
        )
        progress = [rounds.begin(setting)]
        for _ in range(count):
            progress.append(rounds.play(setting, progress[-1])[0])
    return progress


TWO = {"blocks": (slice(0, 2), slice(2, 4)), "shared": slice(4, 5)}
INVARIANTS = {
    "SCAFFOLD": (Scaffold(CLIENT), "control", "control"),
    "SCAFFOLD, option 1": (Scaffold(CLIENT, option=1), "control", "control"),
    "FedBCGD+": (FedBCGDPlus(CLIENT, **TWO), "control", "control"),
    "FedDC's s": (FedDC(CLIENT), "control", "control"),
    "FedDC's H": (FedDC(CLIENT), "drift", "drift"),
    "FedDyn": (FedDyn(CLIENT, alpha=0.3), "h", "linear"),
}


@pytest.mark.parametrize("name", INVARIANTS)
def test_the_servers_vector_is_the_mean_of_all_clients_own(name: str) -> None:
    method, at_server, at_client = INVARIANTS[name]
    for progress in advance(method, 7)[1:]:
        own = [getattr(memory, at_client) for memory in progress.memories.values()]
        mean = torch.stack(own).sum(0) / FEDERATION.population  # who never came holds zero
        torch.testing.assert_close(getattr(progress.state, at_server), mean, rtol=0, atol=1e-12)
        assert mean.abs().max() > 1e-3


def test_the_heavy_ball_of_fedbcgd() -> None:
    """z_{r+1} - z_r = (mean - x) / (1 - b) with z = x + b / (1 - b) (x_r - x_{r-1})."""
    b = 0.6
    states = [p.state for p in advance(FedBCGD(CLIENT, momentum=b, **TWO), 6)]
    x = [s.model for s in states]
    v = [s.velocity for s in states]
    z = [x[0], *(x[r] + b / (1 - b) * (x[r] - x[r - 1]) for r in range(1, 7))]
    for r in range(6):
        step = v[r + 1] - b * v[r]  # mean - x
        torch.testing.assert_close(z[r + 1] - z[r], step / (1 - b), rtol=1e-11, atol=1e-12)


def test_blocks_must_cover_the_model_and_have_a_client_each() -> None:
    with pytest.raises(
        InputError, match="FedBCGD with these settings needs a cohort of 3 clients or more, not"
    ):
        run(FedBCGD(CLIENT, blocks=3))
    with pytest.raises(InputError, match="weight lies in no block"):
        run(FedBCGD(CLIENT, blocks=(slice(0, 2),)))
    with pytest.raises(InputError, match="unknown layer 'conv1'"):
        run(FedBCGD(CLIENT, blocks=("conv1",)))


def test_fltrust_ignores_those_who_pull_the_other_way() -> None:
    """Clients whose minimum lies opposite to the server's get no trust."""
    x = torch.linspace(-1, 1, DIMENSION, dtype=torch.float64)
    rows = torch.eye(DIMENSION, dtype=torch.float64) * DIMENSION**0.5
    there, away = (rows, rows @ (x + 1)), (rows, rows @ (x - 1))
    split = Federation.from_arrays([there, away, away], server=there)
    everyone = participation.Uniform(3)

    def end(algorithm: Algorithm[Any]) -> Tensor:
        return train(
            algorithm, split, model, 1, participation=everyone, loss=half_squared_error
        ).model

    torch.testing.assert_close(end(FLTrust(FULL, FULL)), end(ServerOnly(FULL)))
    nobody = Federation.from_arrays([away, away, away], server=there)
    still = train(FLTrust(FULL, FULL), nobody, model, 3, loss=half_squared_error).model
    assert torch.equal(still, x.to(still.dtype))


class OnceNobody(participation.Uniform):
    """In the second round nobody is there, as may happen with `Bernoulli`."""

    def cohort(self, population: int, seed: int, round: int, exchange: int) -> Sequence[int]:
        return [] if round == 2 else super().cohort(population, seed, round, exchange)


STAY: list[Algorithm[Any]] = [
    FedAvg(CLIENT), Scaffold(CLIENT), FedDyn(CLIENT), FedDC(CLIENT),
    FSL(CLIENT, SERVER), FSL(CLIENT, SERVER, global_lr=1.0), FSLP(CLIENT),
]  # fmt: skip


@pytest.mark.parametrize("method", STAY, ids=lambda method: type(method).__name__)
def test_a_round_without_clients_leaves_the_model(method: Algorithm[Any]) -> None:
    seen: list[Tensor] = []
    train(
        method,
        FEDERATION,
        model,
        3,
        participation=OnceNobody(2),
        loss=half_squared_error,
        on_round=lambda record: seen.append(record.model.clone()),  # type: ignore[union-attr]
    )
    assert torch.equal(seen[1], seen[0])
    assert not torch.equal(seen[2], seen[1])
