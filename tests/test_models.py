"""Networks: exact sizes, shapes in and out, mistakes, and what the digits network can learn."""

import pickle
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from bellwether import data, models
from bellwether.core.errors import InputError
from bellwether.core.isolation import isolated
from bellwether.core.streams import permutation, seed_torch
from bellwether.models.mobilenet import InvertedResidual
from bellwether.models.resnet import BasicBlock
from bellwether.models.vit import VisionTransformer

FACTORIES = [
    (models.logistic_regression, (1, 28, 28), 10, 7_850),
    (models.mlp, (1, 28, 28), 10, 199_210),
    (models.digits_cnn, (1, 8, 8), 10, 6_090),
    (models.lenet5, (1, 28, 28), 10, 61_706),
    (models.lenet5_28, (1, 28, 28), 10, 61_706),
    (models.lenet5_32, (3, 32, 32), 10, 62_006),
    (models.lenet_fedbcgd, (3, 32, 32), 10, 797_962),
    (models.fsl_emnist_cnn, (1, 28, 28), 45, 1_409_197),
    (models.fsl_cifar_cnn, (3, 32, 32), 10, 545_098),
    (models.mcmahan_cnn, (3, 24, 24), 10, 1_068_298),
    (models.mobilenet_v2, (3, 32, 32), 20, 2_249_492),
    (models.vgg11, (3, 32, 32), 100, 12_470_756),
    (models.vgg19, (3, 32, 32), 100, 21_230_500),
    (models.resnet18, (3, 32, 32), 10, 11_173_962),
    pytest.param(models.vit_base, (3, 224, 224), 200, 85_952_456, marks=pytest.mark.slow),
]


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """On busy cores, small networks are far slower on two threads than on one."""
    with isolated():
        yield


def parameters(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize(("factory", "shape", "classes", "count"), FACTORIES)
def test_factory_without_arguments(
    factory: Callable[[], nn.Module], shape: tuple[int, ...], classes: int, count: int
) -> None:
    seed_torch(0, "test")
    model = pickle.loads(pickle.dumps(factory))()
    assert parameters(model) == count
    images = torch.randn(2, *shape, requires_grad=True)
    scores = model(images)
    assert scores.shape == (2, classes)
    assert scores.isfinite().all()
    nn.functional.cross_entropy(scores, torch.arange(2)).backward()
    assert images.grad is not None
    assert images.grad.shape == images.shape
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in model.parameters())


@pytest.mark.parametrize(("classes", "count"), [(200, 85_952_456), (100, 85_875_556)])
def test_vit_base_without_its_memory(classes: int, count: int) -> None:
    with torch.device("meta"):
        model = models.vit_base(classes)
        assert parameters(model) == count
        assert model(torch.empty(2, 3, 224, 224)).shape == (2, classes)


PAGE = (Path(__file__).parents[1] / "docs" / "networks.md").read_text()
ROWS = re.findall(r"^\| `([\w-]+)` \| ([\dx]+) \| (\d+) \| ([\d,]+) \|", PAGE, re.MULTILINE)


def test_the_page_lists_every_network() -> None:
    fitted = "lenet5"  # listed with its two sizes
    assert sorted(name for name, *_ in ROWS) == sorted(models.names().keys() - {fitted})


@pytest.mark.parametrize(("name", "shape", "classes", "count"), ROWS)
def test_the_page_counts_right(name: str, shape: str, classes: str, count: str) -> None:
    with torch.device("meta"):
        model = models.create(name, tuple(map(int, shape.split("x"))), int(classes))
    assert f"{parameters(model):,}" == count


@pytest.mark.parametrize("program", re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.DOTALL))
def test_the_programs_of_the_page_run(program: str) -> None:
    exec(program, {})


def test_a_small_vision_transformer_sees_where_patches_are() -> None:
    seed_torch(0, "test")
    model = VisionTransformer(size=8, patch=4, width=16, depth=2, heads=2, classes=3)
    image = torch.randn(1, 3, 8, 8)
    turned = image.flip(2)  # the same pixels in other patches
    assert model(image).shape == (1, 3)
    assert not torch.allclose(model(image), model(turned))
    with pytest.raises(InputError, match="8 pixels cannot be cut into patches of 3"):
        VisionTransformer(size=8, patch=3, width=16, depth=1, heads=2, classes=3)


def weights(model: nn.Module, *kinds: type[nn.Module]) -> int:
    return sum(m.weight.numel() for m in model.modules() if isinstance(m, kinds))


def test_what_the_tables_of_the_papers_count() -> None:
    assert weights(models.lenet_fedbcgd(), nn.Conv2d, nn.Linear) == 797_248
    assert weights(models.vgg11(), nn.Conv2d) == 9_217_728
    assert models.vgg11().head.weight.shape == (100, 1024)
    assert weights(models.vgg19(), nn.Conv2d, nn.Linear) == 21_224_128
    resnet = models.resnet18()
    blocks = [m for m in resnet.modules() if isinstance(m, BasicBlock)]
    shortcuts = sum(weights(block.shortcut, nn.Conv2d) for block in blocks)
    assert shortcuts == 172_032
    assert weights(resnet, nn.Conv2d) - shortcuts == 10_987_200
    assert resnet.head.weight.numel() == 5_120


@pytest.mark.parametrize("factory", [models.fsl_emnist_cnn, models.fsl_cifar_cnn])
def test_fsl_networks_start_as_keras_does_and_drop_out(factory: Callable[[], nn.Module]) -> None:
    seed_torch(0, "test")
    model = factory()
    assert [m.p for m in model.modules() if isinstance(m, nn.Dropout)] == [0.25, 0.5]
    for layer in model.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            field = layer.weight[0][0].numel()  # of a kernel; 1 for a linear layer
            fans = field * (layer.weight.shape[0] + layer.weight.shape[1])
            bound = (6 / fans) ** 0.5
            assert 0.95 * bound < layer.weight.abs().max() <= bound
            assert abs(layer.weight.std() - bound / 3**0.5) < 0.1 * bound
            assert not layer.bias.any()


@pytest.mark.parametrize("factory", [models.vgg19, models.resnet18, models.mobilenet_v2])
def test_deep_networks_start_with_signals_that_neither_die_nor_explode(
    factory: Callable[[], nn.Module],
) -> None:
    """With torch's default weights the scores of VGG-19 hardly depend on the image."""
    seed_torch(0, "test")
    model, images = factory(), torch.randn(8, 3, 32, 32)
    assert 0.1 < model(images).std() < 10
    assert model(images).std(dim=0).mean() > 0.02
    for layer in model.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            layer.reset_parameters()
    if factory is models.vgg19:
        assert model(images).std(dim=0).mean() < 0.0002


def test_mobilenet_keeps_4x4_of_32x32() -> None:
    """Strides for small images, and the dropout of the authors' code."""
    model = models.mobilenet_v2()
    sizes = []
    for layer in model:
        if isinstance(layer, InvertedResidual):
            layer.register_forward_hook(lambda _m, _x, y: sizes.append(y.shape[-1]))
    model(torch.zeros(2, 3, 32, 32))
    assert sizes == [32] * 3 + [16] * 3 + [8] * 7 + [4] * 4
    assert [m.p for m in model.modules() if isinstance(m, nn.Dropout)] == [0.2]


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
        st.sampled_from([(1, 8, 8), (1, 28, 28), (3, 24, 24), (1, 32, 32), (3, 32, 32)]),
        st.lists(st.integers(1, 9), min_size=1, max_size=4).map(tuple),
    ),
    classes=st.integers(1, 47),
)
def test_created_networks_take_the_shape_or_the_error_names_one_that_does(
    name: str, shape: tuple[int, ...], classes: int
) -> None:
    with torch.device("meta"):  # shapes without numbers
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
    with pytest.raises(InputError, match="24x24 or 32x32, not 28x28"):
        models.mcmahan_cnn(size=28)


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
