"""A module as one vector: what is in it, that the views hold, that nothing leaks."""

import copy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from bellwether.core import evaluation
from bellwether.core.dataset import Samples
from bellwether.core.errors import InputError
from bellwether.core.sgd import SGD, batches, descend
from bellwether.core.vector import FlatModule
from bellwether.core.workspace import Workspace, squared_error


class Mixture(nn.Module):
    """Channels-last, tied, frozen and 0-dimensional parameters, and a batch norm."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 2).to(memory_format=torch.channels_last)
        self.norm = nn.BatchNorm2d(4)
        self.encode = nn.Linear(16, 5, bias=False)
        self.frozen = nn.Linear(5, 5).requires_grad_(False)
        self.scale = nn.Parameter(torch.tensor(1.5))
        self.decode = nn.Linear(5, 16, bias=False)
        self.again = nn.Linear(16, 5, bias=False)
        self.again.weight = self.encode.weight

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.norm(self.conv(x)).flatten(1)
        hidden = self.frozen(self.encode(hidden)) * self.scale
        return self.again(self.decode(hidden).tanh())


class Follows(nn.Module):
    """Keeps a running mean by hand: in a rebound buffer or in place, beside a constant."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 2)
        self.register_buffer("gain", torch.tensor([2.0, 3.0]))
        self.register_buffer("mean", torch.zeros(2))
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))
        self.how = how

    def forward(self, x: Tensor) -> Tensor:
        out = self.linear(x) * self.gain
        if self.how == "in place":
            self.mean.mul_(0.5).add_(0.5 * out.detach().mean(0))
        elif self.how == "rebound":
            self.mean = 0.5 * self.mean + 0.5 * out.detach().mean(0)
        else:  # "rebound with its graph", which plain PyTorch allows as well
            self.mean = 0.5 * self.mean.detach() + 0.5 * out.mean(0)
        self.calls = self.calls + 1
        return out


def images(count: int = 6) -> Samples:
    draw = torch.Generator().manual_seed(5)
    return Samples(
        torch.randn(count, 3, 3, 3, generator=draw), torch.randn(count, 5, generator=draw)
    )


def rows(count: int = 6) -> Samples:
    draw = torch.Generator().manual_seed(6)
    return Samples(torch.randn(count, 3, generator=draw), torch.randn(count, 2, generator=draw))


def trainable(module: nn.Module) -> list[nn.Parameter]:
    return [p for p in module.parameters() if p.requires_grad]


def row_major(tensor: Tensor) -> list[float]:
    """Element by element in index order, whatever the strides are."""
    if tensor.ndim == 0:
        return [tensor.item()]
    return [value for part in tensor for value in row_major(part)]


def test_order_is_that_of_parameters_and_elements_are_row_major():
    model = Mixture()
    assert not model.conv.weight.is_contiguous()  # channels last
    expected = [value for p in trainable(model) for value in row_major(p.detach())]
    flat = FlatModule(model)
    assert flat.parameters.tolist() == expected
    # conv 4x3x2x2 + 4, norm 4 + 4, encode 80 once, scale 1, decode 80; nothing frozen
    assert flat.size == len(expected) == 52 + 8 + 80 + 1 + 80
    assert torch.allclose(flat.module(images().inputs), model(images().inputs), atol=1e-6)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**31), st.sampled_from([torch.float32, torch.float64]))
def test_what_is_loaded_is_read(seed, dtype):
    flat = FlatModule(nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)).to(dtype))
    draw = torch.Generator().manual_seed(seed)
    x = torch.randn(flat.size, generator=draw, dtype=dtype)
    buffers = torch.randn(len(flat.buffers), generator=draw, dtype=dtype)
    flat.load(x, buffers)
    held = [value for p in flat.module.parameters() for value in row_major(p.detach())]
    stats = flat.module[1].running_mean.tolist() + flat.module[1].running_var.tolist()
    assert flat.dtype == dtype
    assert flat.parameters.tolist() == held == x.tolist()
    assert flat.read_buffers().tolist() == stats == buffers.tolist()
    flat.read_buffers().zero_()  # a copy, not the buffers themselves
    assert flat.read_buffers().tolist() == buffers.tolist()


def test_views_stay_bound_through_training():
    space = Workspace(Mixture(), squared_error)
    sgd = SGD(0.1, steps=3, batch_size=2, weight_decay=0.01)
    descend(space, batches(images(), sgd, 1), sgd, 0.1)
    step = space.parameters.element_size()
    offset = 0
    for parameter in trainable(space.module):
        assert parameter.data_ptr() == space.parameters.data_ptr() + offset * step
        assert parameter.grad.data_ptr() == space.gradient.data_ptr() + offset * step
        offset += parameter.numel()
    assert offset == space.size
    space.backward(images())
    slopes = [value for p in trainable(space.module) for value in row_major(p.grad)]
    assert space.gradient.tolist() == slopes
    assert space.gradient.count_nonzero() > space.size / 2


def test_tied_weights_stay_tied_and_frozen_ones_stay_put():
    model = Mixture()
    space = Workspace(model, squared_error)
    reference = copy.deepcopy(model)
    data = images()
    for _ in range(3):
        reference.zero_grad()
        squared_error(reference(data.inputs), data.targets).backward()
        for parameter in trainable(reference):
            parameter.data -= 0.1 * parameter.grad
    sgd = SGD(0.1, steps=3)
    descend(space, batches(data, sgd, 1), sgd, 0.1)
    assert space.module.again.weight is space.module.encode.weight
    assert not torch.equal(space.module.encode.weight, model.encode.weight)
    assert torch.equal(space.module.frozen.weight, model.frozen.weight)
    expected = [value for p in trainable(reference) for value in row_major(p.detach())]
    assert space.parameters.tolist() == pytest.approx(expected, abs=1e-6)


def test_integer_buffers_start_fresh_and_floating_ones_are_vectors():
    model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    model(rows().inputs)  # a model that was trained before: its count is 1
    space = Workspace(model, squared_error)
    assert len(space.buffers) == 4
    x, buffers = space.parameters.clone(), space.read_buffers()
    for _ in range(3):
        space.backward(rows())
    assert space.module[1].num_batches_tracked == 4
    assert not torch.equal(space.read_buffers(), buffers)
    space.load(x, buffers)
    assert space.module[1].num_batches_tracked == 1
    assert torch.equal(space.read_buffers(), buffers)


@pytest.mark.parametrize("how", ["in place", "rebound", "rebound with its graph"])
def test_buffers_that_a_module_updates_by_hand(how):
    model = Follows(how)
    space = Workspace(model, squared_error)
    x, before = space.parameters.clone(), space.read_buffers()
    space.backward(rows())
    plain = copy.deepcopy(model)
    plain(rows().inputs)
    assert space.read_buffers().tolist() == [2.0, 3.0, *plain.mean.tolist()]
    space.load(x, before)
    assert space.module.mean.tolist() == [0.0, 0.0]
    space.backward(rows())
    assert space.read_buffers().tolist() == [2.0, 3.0, *plain.mean.tolist()]


def test_integer_buffers_start_fresh_even_when_rebound():
    space = Workspace(Follows("rebound"), squared_error)
    space.backward(rows())
    assert space.module.calls == 1
    with space.uncommitted():
        space.backward(rows())
    assert space.module.calls == 1
    space.load(space.parameters.clone(), space.read_buffers())
    assert space.module.calls == 0


def test_shared_buffers_stay_shared():
    model = nn.Sequential(nn.BatchNorm1d(2), nn.Linear(2, 2), nn.BatchNorm1d(2))
    model[2].running_mean = model[0].running_mean
    flat = FlatModule(model)
    assert len(flat.buffers) == 6  # one mean, two variances
    flat.load(flat.parameters.clone(), torch.arange(6.0))
    assert flat.module[0].running_mean.tolist() == [0.0, 1.0]
    assert flat.module[2].running_mean.tolist() == [0.0, 1.0]


def test_uncommitted_leaves_no_trace():
    space = Workspace(nn.Sequential(Follows("rebound"), nn.BatchNorm1d(2)), squared_error)
    space.backward(rows())
    x, buffers = space.parameters.clone(), space.read_buffers()
    with space.uncommitted():
        space.parameters.mul_(2)
        space.backward(rows())
        assert not torch.equal(space.read_buffers(), buffers)
    assert torch.equal(space.parameters, x)
    assert torch.equal(space.read_buffers(), buffers)
    assert space.module[1].num_batches_tracked == 1
    space.backward(rows())  # the module goes on from what was restored
    assert not torch.equal(space.read_buffers(), buffers)


def test_the_users_module_is_untouched():
    model = Mixture().eval()
    before = copy.deepcopy(model.state_dict())
    space = Workspace(model, squared_error)
    sgd = SGD(0.1, steps=2)
    descend(space, batches(images(), sgd, 1), sgd, 0.1)
    space.load(torch.zeros(space.size), torch.zeros(len(space.buffers)))
    after = model.state_dict()
    assert all(torch.equal(after[name], value) for name, value in before.items())
    assert not any(module.training for module in model.modules())
    assert all(p.grad is None for p in model.parameters())


def test_training_mode_does_not_depend_on_an_evaluation_before():
    model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    model[1].eval()
    space = Workspace(model, squared_error)
    x, buffers = space.parameters.clone(), space.read_buffers()

    def modes() -> list[bool]:
        space.load(x, buffers)
        return [module.training for module in space.module.modules()]

    before = modes()
    evaluation.evaluate(space, rows(), x, buffers)
    assert modes() == before


def test_a_model_without_parameters():
    space = Workspace(nn.Flatten(), squared_error)
    assert space.size == 0
    sgd = SGD(0.1, epochs=2, batch_size=4)
    assert descend(space, batches(rows(), sgd, 1), sgd, 0.1) == 4
    space.load(torch.zeros(0), torch.zeros(0))
    assert space.mean_gradient(rows(), 2).shape == (0,)


@pytest.mark.parametrize(
    ("model", "found"),
    [
        (nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2).double()), "float32, float64"),
        (nn.Sequential(nn.Linear(2, 2).double(), nn.BatchNorm1d(2)), "float32, float64"),
        (nn.Linear(2, 2).half(), "float16"),
    ],
)
def test_one_precision(model, found):
    with pytest.raises(InputError, match=f"found {found}; call model.float\\(\\)"):
        FlatModule(model)


@pytest.mark.filterwarnings("ignore:Lazy modules")
def test_a_model_whose_shapes_are_not_known_yet():
    with pytest.raises(InputError, match="batch"):
        FlatModule(nn.LazyLinear(2))
