"""Networks: exact sizes, shapes in and out, mistakes, and what the digits network can learn."""

import pickle
from collections.abc import Callable, Iterator

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from bellwether import data, models
from bellwether.core.errors import InputError
from bellwether.core.isolation import isolated
from bellwether.core.streams import permutation, seed_torch

FACTORIES = [
    (models.logistic_regression, (1, 28, 28), 7_850),
    (models.mlp, (1, 28, 28), 199_210),
    (models.digits_cnn, (1, 8, 8), 6_090),
    (models.lenet5, (1, 28, 28), 61_706),
    (models.lenet5_28, (1, 28, 28), 61_706),
    (models.lenet5_32, (3, 32, 32), 62_006),
]


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """On busy cores, small networks are far slower on two threads than on one."""
    with isolated():
        yield


def parameters(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize(("factory", "shape", "count"), FACTORIES)
def test_factory_without_arguments(
    factory: Callable[[], nn.Module], shape: tuple[int, ...], count: int
) -> None:
    seed_torch(0, "test")
    model = pickle.loads(pickle.dumps(factory))()
    assert parameters(model) == count
    scores = model(torch.randn(5, *shape))
    assert scores.shape == (5, 10)
    nn.functional.cross_entropy(scores, torch.arange(5)).backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in model.parameters())


def test_flat_inputs_give_the_same_scores_as_images() -> None:
    images = torch.randn(4, 1, 28, 28)
    for factory in (models.logistic_regression, models.mlp):
        model = factory()
        assert torch.equal(model(images), model(images.flatten(1)))


def test_lenet5_28_is_lenet5_32_on_padded_images() -> None:
    small, large = models.lenet5(1, 28), models.lenet5(1, 32)
    large.load_state_dict(small.state_dict())
    images = torch.randn(3, 1, 28, 28)
    padded = nn.functional.pad(images, (2, 2, 2, 2))
    torch.testing.assert_close(small(images), large(padded))


def test_weights_come_from_the_default_generator() -> None:
    seed_torch(7, "test")
    first = models.lenet5()
    seed_torch(7, "test")
    again = models.lenet5()
    other = models.lenet5()
    pairs = list(zip(first.parameters(), again.parameters(), strict=True))
    assert all(torch.equal(a, b) for a, b in pairs)
    assert not torch.equal(next(first.parameters()), next(other.parameters()))


@settings(deadline=None, max_examples=50)
@given(
    name=st.sampled_from(sorted(models.names())),
    shape=st.one_of(
        st.sampled_from([(1, 8, 8), (1, 28, 28), (3, 28, 28), (1, 32, 32), (3, 32, 32)]),
        st.lists(st.integers(1, 9), min_size=1, max_size=4).map(tuple),
    ),
    classes=st.integers(1, 47),
)
def test_created_networks_take_the_shape_or_the_error_names_one_that_does(
    name: str, shape: tuple[int, ...], classes: int
) -> None:
    try:
        model = models.create(name, shape, classes)
    except InputError as error:
        message = str(error)
        assert "\n" not in message
        assert "x".join(map(str, shape)) in message
        assert message.endswith(f"use {models.default_for(shape)}")
        model = models.create(models.default_for(shape), shape, classes)
    assert model(torch.zeros(2, *shape)).shape == (2, classes)


@pytest.mark.parametrize(
    ("name", "shape", "says"),
    [
        ("lenet5", (1, 8, 8), "takes inputs of anyx28x28 or anyx32x32, not 1x8x8; use digits-cnn"),
        ("lenet5-28", (3, 32, 32), "takes inputs of 1x28x28, not 3x32x32; use lenet5"),
        ("lenet5-32", (1, 28, 28), "takes inputs of 3x32x32, not 1x28x28; use lenet5"),
        ("digits-cnn", (1, 28, 28), "takes inputs of 1x8x8, not 1x28x28; use lenet5"),
        ("digits-cnn", (64,), "takes inputs of 1x8x8, not 64; use mlp"),
        ("mlp", (), "positive sizes"),
        ("mlp", (0, 3), "positive sizes"),
        ("lenet-5", (1, 28, 28), "unknown model 'lenet-5'; did you mean lenet5"),
    ],
)
def test_mistakes(name: str, shape: tuple[int, ...], says: str) -> None:
    with pytest.raises(InputError) as raised:
        models.create(name, shape, 10)
    assert says in str(raised.value)


def test_mistakes_in_numbers() -> None:
    with pytest.raises(InputError, match="at least one class, got 0"):
        models.create("mlp", (4,), 0)
    with pytest.raises(InputError, match="28x28 or 32x32, not 8x8"):
        models.lenet5(size=8)


def test_defaults_for_the_known_data_sets() -> None:
    shapes = [(1, 8, 8), (1, 28, 28), (3, 32, 32), (1, 16, 16), (20,)]
    defaults = ["digits-cnn", "lenet5", "lenet5", "mlp", "mlp"]
    assert [models.default_for(shape) for shape in shapes] == defaults


def test_digits_cnn_learns_the_digits() -> None:
    """More than 95 % of unseen digits after a few seconds of plain SGD."""
    digits = data.load("digits")
    seed_torch(0, "test")
    model = models.digits_cnn()
    for epoch in range(15):
        for batch in permutation(0, epoch, digits.train.size).split(32):
            inputs, targets = digits.train.take(batch)
            model.zero_grad()
            nn.functional.cross_entropy(model(inputs), targets).backward()
            with torch.no_grad():
                for parameter in model.parameters():
                    assert parameter.grad is not None
                    parameter.sub_(0.1 * parameter.grad)
    with torch.no_grad():
        correct = model(digits.test.inputs).argmax(1) == digits.test.targets
    assert correct.float().mean() > 0.95
