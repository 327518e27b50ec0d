"""The real data sets: their counts, their normalisation, and what a LeNet-5 learns of them."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional

from bellwether import data, models
from bellwether.data import catalogue, parquet


def counts(labels: torch.Tensor) -> tuple[int, int, int]:
    """Classes, and the samples of the rarest and of the commonest."""
    found = labels.bincount()
    return len(found), int(found.min()), int(found.max())


@pytest.mark.parametrize(
    ("name", "train", "test"),
    [
        ("mnist", (10, 5_421, 6_742), (10, 892, 1_135)),
        ("fashion-mnist", (10, 6_000, 6_000), (10, 1_000, 1_000)),
        ("emnist-bymerge", (47, 372, 5_740), (47, 43, 660)),
    ],
)
def test_real_idx_files(
    shared_data: Path, name: str, train: tuple[int, ...], test: tuple[int, ...]
) -> None:
    found = data.load(name, shared_data)
    sizes = {"emnist-bymerge": (104_323, 12_000)}.get(name, (60_000, 10_000))
    assert found.train.inputs.shape == (sizes[0], 1, 28, 28)
    assert found.test.inputs.shape == (sizes[1], 1, 28, 28)
    assert counts(found.train.targets) == train
    assert counts(found.test.targets) == test
    assert len(found.classes) == train[0]
    deviation, mean = torch.std_mean(found.train.inputs)
    assert abs(mean) < 1e-3
    assert abs(deviation - 1) < 1e-3


def test_real_cifar_test_file(shared_data: Path) -> None:
    entry = catalogue.CATALOGUE["cifar10"]
    file = shared_data / "cifar10" / "plain_text" / "test-00000-of-00001.parquet"
    part = parquet.read_part((file,), entry)
    assert part.images.shape == (10_000, 32, 32, 3)
    assert np.bincount(part.labels).tolist() == [1_000] * 10


@pytest.mark.slow
def test_real_cifar(shared_data: Path) -> None:
    cifar = data.load("cifar10", shared_data)
    assert cifar.train.inputs.shape == (50_000, 3, 32, 32)
    assert counts(cifar.train.targets) == (10, 5_000, 5_000)
    assert counts(cifar.test.targets) == (10, 1_000, 1_000)
    deviation, mean = torch.std_mean(cifar.train.inputs, dim=(0, 2, 3))
    assert mean.abs().max() < 1e-3
    assert (deviation - 1).abs().max() < 1e-2  # the files are JPEG, not the release's pixels


def accuracy(name: str, root: Path, epochs: int) -> float:
    """Of a LeNet-5 after a few epochs of SGD, on 5,000 test samples."""
    found = data.load(name, root)
    torch.manual_seed(1)
    shape, classes = tuple(found.train.inputs.shape[1:]), len(found.classes)
    model = models.create("lenet5", shape, classes)
    samples = found.train.size
    steps = epochs * -(-samples // 64)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, max_lr=0.05, total_steps=steps)
    for _ in range(epochs):
        for batch in torch.randperm(samples).split(64):
            x, y = found.train.take(batch)
            optimiser.zero_grad()
            functional.cross_entropy(model(x), y).backward()
            optimiser.step()
            schedule.step()
    model.eval()
    with torch.no_grad():
        right = model(found.test.inputs[:5000]).argmax(1) == found.test.targets[:5000]
    return float(right.float().mean())


@pytest.fixture
def one_thread() -> Iterator[None]:
    """On a busy machine the threads of such small layers wait for each other most of the time."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.slow
@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize(
    ("name", "epochs", "least"),
    [
        ("mnist", 1, 0.97),  # 98.3 %, 87.9 %, 86.9 % and 60.2 % were seen
        ("fashion-mnist", 1, 0.85),
        ("emnist-bymerge", 1, 0.84),
        ("cifar10", 3, 0.56),
    ],
)
def test_a_lenet5_learns(shared_data: Path, name: str, epochs: int, least: float) -> None:
    assert accuracy(name, shared_data, epochs) > least
