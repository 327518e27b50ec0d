"""On a GPU: the numbers of the CPU, and the same bits each time."""

import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

from bellwether import SGD, Federation, algorithms, participation, train
from bellwether.core.algorithm import Algorithm
from bellwether.core.errors import Diverged
from bellwether.engines import Local

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="this machine has no GPU")

CLIENT = SGD(lr=0.1, epochs=3, batch_size=8, decay=0.95, weight_decay=1e-3)
SERVER = SGD(lr=0.05, steps=6, batch_size=8)


def perceptron() -> nn.Module:
    return nn.Sequential(nn.Linear(12, 9), nn.ReLU(), nn.Linear(9, 3))


def convolution() -> nn.Module:
    return nn.Sequential(
        nn.Unflatten(1, (1, 2, 6)), nn.Conv2d(1, 4, (1, 3), padding=(0, 1)), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(12, 3),
    )  # fmt: skip


def normalised() -> nn.Module:
    return nn.Sequential(nn.Linear(12, 9), nn.BatchNorm1d(9), nn.ReLU(), nn.Linear(9, 3))


def noisy() -> nn.Module:
    return nn.Sequential(nn.Linear(12, 9), nn.Dropout(0.3), nn.ReLU(), nn.Linear(9, 3))


def federation() -> Federation:
    draw = torch.Generator().manual_seed(7)

    def holder(n: int) -> tuple[torch.Tensor, torch.Tensor]:
        x = torch.randn(n, 12, generator=draw, dtype=torch.float64)
        return x, (x[:, :3].argmax(1) + torch.randint(2, (n,), generator=draw)) % 3

    sizes = [10, 14, 18, 6, 26, 30, 12, 16]
    return Federation.from_arrays([holder(n) for n in sizes], holder(20), holder(30))


def trained(
    algorithm: Algorithm, model: Callable[[], nn.Module], device: str, batch_clients: int = 1,
    rounds: int = 5, folder: Path | None = None, resume: bool = False,
) -> tuple[torch.Tensor, torch.Tensor, dict[str, float]]:  # fmt: skip
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*one by one")
        result = train(
            algorithm, federation(), model().double(), rounds, device=device,
            participation=participation.Uniform(7), engine=Local(batch_clients=batch_clients),
            run_dir=folder, resume=resume, checkpoint_every=1,
        )  # fmt: skip
    return result.model.cpu(), result.buffers.cpu(), result.history[-1].metrics


@pytest.mark.parametrize("model", [perceptron, convolution, normalised])
@pytest.mark.parametrize("batch_clients", [1, 3])
@pytest.mark.parametrize("name", algorithms.CATALOGUE)
def test_every_method_gives_the_numbers_of_the_cpu(
    name: str, batch_clients: int, model: Callable[[], nn.Module]
) -> None:
    method = algorithms.create(name, client=CLIENT, server=SERVER)
    here = trained(method, model, "cpu")
    there = trained(method, model, "cuda", batch_clients)
    for one, other in zip(here[:2], there[:2], strict=True):
        assert torch.allclose(one, other, rtol=1e-9, atol=1e-11)
    assert here[2]["loss"] == pytest.approx(there[2]["loss"], rel=1e-9)


@pytest.mark.parametrize("model", [perceptron, convolution, normalised, noisy])
@pytest.mark.parametrize("name", ["FedCLG-C", "FedDyn", "FedBCGD+"])
def test_the_same_bits_twice_and_after_a_resume(
    name: str, model: Callable[[], nn.Module], tmp_path: Path
) -> None:
    """Kernels that are recorded and replayed draw the same dropout masks as those that are not."""
    method = algorithms.create(name, client=CLIENT, server=SERVER)
    whole = trained(method, model, "cuda")
    trained(method, model, "cuda", rounds=2, folder=tmp_path)
    gone_on = trained(method, model, "cuda", folder=tmp_path, resume=True)
    for other in (trained(method, model, "cuda"), gone_on):
        assert torch.equal(whole[0], other[0])
        assert torch.equal(whole[1], other[1])


def test_divergence_is_noticed_at_the_end_of_the_round() -> None:
    wild = algorithms.create("FedAvg", client=SGD(lr=1e200, epochs=3))
    with pytest.raises(Diverged, match=r"round 1, client .*change is not finite"):
        trained(wild, perceptron, "cuda")
