"""Every network in federated rounds: small ones by every method, large ones by three."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from bellwether import SGD, Algorithm, FedBCGD, Federation, Result, models, train
from bellwether.algorithms import CATALOGUE, create
from bellwether.core.isolation import isolated
from bellwether.models.divisions import DIVISIONS

SMALL = {
    "lenet-fedbcgd": (3, 32, 32),
    "fsl-emnist-cnn": (1, 28, 28),
    "fsl-cifar-cnn": (3, 32, 32),
    "mcmahan-cnn": (3, 24, 24),
}
LARGE = {
    "mobilenet-v2": (3, 32, 32),
    "vgg-11": (3, 32, 32),
    "resnet-18": (3, 32, 32),
    "vgg-19": (3, 32, 32),
    "vit-base": (3, 224, 224),
}
CLASSES = 5
SGD_ONCE = SGD(lr=0.01, epochs=1, batch_size=2)


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    with isolated():
        yield


def federation(shape: tuple[int, ...], clients: int) -> Federation:
    draw = torch.Generator().manual_seed(0)

    def held() -> tuple[Tensor, Tensor]:
        return torch.randn(2, *shape, generator=draw), torch.arange(2)

    return Federation.from_arrays([held() for _ in range(clients)], held(), held())


def play(algorithm: Algorithm[Any], name: str, shape: tuple[int, ...], clients: int = 2) -> Result:
    """One round: it moves every layer, and the model stays finite and can be used."""
    made: list[nn.Module] = []

    def network() -> nn.Module:
        made.append(models.create(name, shape, CLASSES))
        return made[-1]

    result = train(algorithm, federation(shape, clients), network, 1)
    assert result.history[-1].metrics["loss"] < 100
    assert result.model.isfinite().all()
    assert result.buffers.isfinite().all()
    trained = result.module().named_parameters()
    for (layer, before), (_, after) in zip(made[0].named_parameters(), trained, strict=True):
        if before.ndim > 1:  # a batch-norm's scale before another batch-norm hardly has a slope
            assert not torch.equal(before, after), layer
    return result


@pytest.mark.parametrize("method", CATALOGUE)
@pytest.mark.parametrize("name", SMALL)
def test_a_round_of_every_method(name: str, method: str) -> None:
    settings: dict[str, Any] = {"client": SGD_ONCE, "server": SGD_ONCE}
    if method.startswith("FedBCGD"):
        settings |= {"blocks": 2}
    if method == "FSL":
        settings |= {"pretrain": None}
    play(create(method, **settings), name, SMALL[name])


LARGE_NAMES = [
    pytest.param(name, marks=[pytest.mark.slow] * (name in {"vit-base", "vgg-19"}))
    for name in LARGE
]


@pytest.mark.parametrize("method", ["FedAvg", "FedCLG-C"])
@pytest.mark.parametrize("name", LARGE_NAMES)
def test_a_round_of_a_large_network(name: str, method: str) -> None:
    play(create(method, client=SGD_ONCE, server=SGD_ONCE), name, LARGE[name])


@pytest.mark.parametrize(
    "name", ["lenet-fedbcgd", *(p for p in LARGE_NAMES if p.values[0] in DIVISIONS)]
)
def test_a_round_in_the_blocks_of_the_paper(name: str) -> None:
    """One client a block: all send the shared one, each block and its statistics come once."""
    blocks, shared = division = models.blocks(name)
    result = play(FedBCGD(SGD_ONCE, **division._asdict()), name, (SMALL | LARGE)[name], len(blocks))
    common = sum(
        p.numel() for n, p in result.module().named_parameters() if n.rpartition(".")[0] in shared
    )
    numbers = len(result.model) + (len(blocks) - 1) * common + len(result.buffers)
    assert 0 < result.history[0].bytes_up - 4 * numbers < 200 * len(blocks)
