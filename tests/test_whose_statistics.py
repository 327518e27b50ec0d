"""What becomes of batch-norm statistics: closed forms, bytes, resumed runs, mistakes."""

import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from bellwether import (
    CLGSGD,
    SGD,
    Algorithm,
    FedAvg,
    Federation,
    compression,
    models,
    participation,
    train,
)
from bellwether.core import wire
from bellwether.core.errors import InputError
from bellwether.experiments.run import Result
from test_run_directory import same
from test_same_bits import AnyOrder

KINDS = ["average", "server", "local"]
CLIENT, SERVER = SGD(lr=0.1, steps=3), SGD(lr=0.1, steps=2)
COHORTS = [(0, 1, 2), (0, 2, 3), (2, 0, 1), (1, 0, 3)]
STAY = 0.9
"""What batch-norm keeps of a running mean in one step."""


def first_layer_norm() -> nn.Module:
    """Its statistics depend on the data alone, and each step moves them by a tenth."""
    return nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 2)).double()


def samples(seed: int, n: int = 12) -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 3, generator=draw, dtype=torch.float64) + seed
    return x, torch.randint(2, (n,), generator=draw)


FEDERATION = Federation.from_arrays([samples(i) for i in range(4)], samples(5), samples(6))
MEANS = [samples(i)[0].mean(0) for i in range(4)]
SERVER_MEAN = samples(5)[0].mean(0)


def run(algorithm: Algorithm, kind: str, rounds: int = 4, **more: object) -> Result:
    cohorts = participation.Fixed(COHORTS)
    return train(
        algorithm,
        FEDERATION,
        first_layer_norm,
        rounds,
        participation=cohorts,
        statistics=kind,  # type: ignore[arg-type]
        **more,  # type: ignore[arg-type]
    )


def after(mean: Tensor, target: Tensor, steps: int) -> Tensor:
    """A running mean that was pulled so many times."""
    return STAY**steps * mean + (1 - STAY**steps) * target


@pytest.mark.parametrize("kind", KINDS)
def test_closed_forms(kind: str) -> None:
    """The server trains after each aggregation."""
    model, own = torch.zeros(3, dtype=torch.float64), {}
    for cohort in COHORTS:
        ends = {i: after(own.get(i, model), MEANS[i], CLIENT.steps) for i in cohort}
        if kind == "average":
            model = torch.stack(list(ends.values())).mean(0)
        if kind == "local":
            own |= ends
        model = after(model, SERVER_MEAN, SERVER.steps)
    result = run(CLGSGD(CLIENT, SERVER), kind)
    torch.testing.assert_close(result.module()[0].running_mean, model)
    for client, mean in own.items():
        torch.testing.assert_close(result.module(client)[0].running_mean, mean)
        assert torch.equal(result.module(client)[1].weight, result.module()[1].weight)


def test_what_is_kept_does_not_change_how_models_train() -> None:
    """In training, batch-norm reads the batch; statistics matter where the model is used."""
    average, server, local = (run(CLGSGD(CLIENT, SERVER), kind) for kind in KINDS)
    assert torch.equal(average.model, server.model)
    assert torch.equal(average.model, local.model)
    assert average.history[-1].metrics != server.history[-1].metrics
    assert server.history[-1].metrics == local.history[-1].metrics  # clients' stay at clients


def test_bytes_are_what_travels() -> None:
    """Averaged: down and up. The server's: down. Local: down, to a client that comes at first."""
    algorithm, cohorts = CLGSGD(CLIENT, SERVER), participation.Fixed(COHORTS)
    frozen = first_layer_norm()  # the same vector, statistics apart
    frozen[0] = Affine()
    plain = train(algorithm, FEDERATION, frozen, 4, participation=cohorts).history
    size = wire.tensor_size(run(algorithm, "average").buffers)
    added = {"average": ([3, 3, 3, 3], 3), "server": ([3, 3, 3, 3], 0), "local": ([3, 1, 0, 0], 0)}
    for kind, (down, up) in added.items():
        pairs = list(zip(run(algorithm, kind).history, plain, strict=True))
        assert [r.bytes_down - p.bytes_down for r, p in pairs] == [n * size for n in down]
        assert {r.bytes_up - p.bytes_up for r, p in pairs} == {up * size}


class Affine(nn.BatchNorm1d):
    """Batch-norm without statistics."""

    def __init__(self) -> None:
        super().__init__(3, track_running_stats=False, dtype=torch.float64)


def small_resnet() -> nn.Module:
    return models.resnet18(classes=3, width=2)


def images(seed: int, n: int = 6) -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(seed)
    return torch.randn(n, 3, 8, 8, generator=draw), torch.randint(3, (n,), generator=draw)


def resnet_run(kind: str, folder: Path | None = None, rounds: int = 8, **more: object) -> Result:
    sgd = SGD(lr=0.05, epochs=1, batch_size=4)
    return train(
        CLGSGD(sgd, sgd),
        Federation.from_arrays([images(i) for i in range(5)], images(5), images(6)),
        small_resnet,
        rounds,
        participation=participation.Uniform(2),
        statistics=kind,  # type: ignore[arg-type]
        run_dir=folder,
        checkpoint_every=2,
        **more,  # type: ignore[arg-type]
    )


def same_at_clients(a: Result, b: Result) -> bool:
    def states(result: Result) -> list[dict[str, Tensor]]:
        seen = sorted({c for record in result.history for c in record.cohort})
        return [result.module(client).state_dict() for client in seen]

    pairs = zip(states(a), states(b), strict=True)
    return all(torch.equal(x[name], y[name]) for x, y in pairs for name in x)


@pytest.mark.parametrize("kind", KINDS)
def test_a_resnet_resumed_has_the_same_bits(kind: str, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    resnet_run(kind, folder, rounds=5)
    resumed, whole = resnet_run(kind, folder, resume=True), resnet_run(kind)
    assert same(resumed, whole)
    assert kind != "local" or same_at_clients(resumed, whole)
    with pytest.raises(InputError, match=f"was made with statistics = {kind}, not"):
        resnet_run("local" if kind != "local" else "server", folder, resume=True)


def test_a_resnet_killed_for_real(tmp_path: Path) -> None:
    """kill -9 twice, resumed each time: model and every client's statistics, to the bit."""
    folder = tmp_path / "run"
    code = (
        "import sys, time; from pathlib import Path; sys.path.insert(0, sys.argv[1]);"
        "from test_whose_statistics import resnet_run; folder = Path(sys.argv[2]);"
        "resnet_run('local', folder, resume=folder.exists(),"
        "on_round=lambda r: (print(r.round, flush=True), time.sleep(0.02)))"
    )
    for lines in (3, 2):
        process = subprocess.Popen(
            [sys.executable, "-c", code, str(Path(__file__).parent), str(folder)],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout
        assert all(process.stdout.readline() for _ in range(lines))
        time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        process.stdout.close()
    resumed, whole = resnet_run("local", folder, resume=True), resnet_run("local")
    assert same(resumed, whole)
    assert same_at_clients(resumed, whole)


def test_local_statistics_beside_what_compression_leaves_out_in_any_order() -> None:
    compressed = partial(resnet_run, "local", compress_up=compression.TopK(0.1))
    first, again = compressed(), compressed(engine=AnyOrder(3))
    assert same(first, again)
    assert same_at_clients(first, again)
    assert not torch.equal(first.model, resnet_run("local").model)


def test_a_client_may_keep_statistics_where_nothing_is_tested() -> None:
    result = run(FedAvg(CLIENT), "local", eval_every=0)
    assert torch.equal(result.module()[0].running_mean, torch.zeros(3, dtype=torch.float64))
    torch.testing.assert_close(result.module(0)[0].running_mean, after(0 * MEANS[0], MEANS[0], 12))
    plain = train(FedAvg(CLIENT), FEDERATION, lambda: nn.Linear(3, 2), 1, statistics="local")
    assert plain.history[-1].metrics  # without batch-norm there is nothing to keep


def test_the_example_of_the_page_runs() -> None:
    text = (Path(__file__).parents[1] / "docs" / "batch-norm.md").read_text()
    namespace: dict[str, object] = {}
    exec(text.split("```python\n")[1].split("```")[0], namespace)
    everywhere, here = namespace["everywhere"], namespace["at_client_3"]
    assert torch.equal(everywhere.norm.weight, here.norm.weight)  # type: ignore[attr-defined]
    different = everywhere.norm.running_mean != here.norm.running_mean  # type: ignore[attr-defined]
    assert different.any()


def test_mistakes() -> None:
    with pytest.raises(InputError, match="must be 'average' or 'server' or 'local'"):
        run(FedAvg(CLIENT), "mean")
    with pytest.raises(InputError, match=r"the server of FedAvg does not train.* use a method"):
        run(FedAvg(CLIENT), "server", eval_every=0)
    with pytest.raises(InputError, match=r"or eval_every=0 and result.module\(client=...\)$"):
        run(FedAvg(CLIENT), "local")
    with pytest.raises(InputError, match="client 3 has no batch-norm statistics of its own"):
        run(CLGSGD(CLIENT, SERVER), "local", rounds=1).module(3)
    with pytest.raises(InputError, match="or the training was without statistics='local'"):
        run(FedAvg(CLIENT), "average").module(0)
