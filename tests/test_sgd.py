"""The one local loop: mini-batches, steps, rates, corrections, gradients in chunks."""

import math
from collections.abc import Iterator

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from bellwether.core import workspace
from bellwether.core.dataset import Samples
from bellwether.core.errors import InputError
from bellwether.core.isolation import isolated
from bellwether.core.sgd import SGD, Batch, Descent, batches, descend
from bellwether.core.streams import seed_torch
from bellwether.core.vector import Vector
from bellwether.core.workspace import Workspace, squared_error

STREAM = 2**100 + 12345


def walk(space, data, sgd, rate, correction=None):
    return descend(space, batches(data, sgd, STREAM), sgd, rate, correction)


@pytest.fixture(autouse=True)
def _leave_torch_as_it_was() -> Iterator[None]:
    with isolated():
        yield


class Spy(nn.Module):
    """Passes its input on and writes down how many samples it saw."""

    def __init__(self, seen: list[int]) -> None:
        super().__init__()
        self.seen = seen

    def forward(self, x: Tensor) -> Tensor:
        self.seen.append(len(x))
        return x


def numbered(count: int) -> Samples:
    return Samples(torch.arange(float(count))[:, None], torch.arange(count))


def rows(count: int = 11) -> Samples:
    draw = torch.Generator().manual_seed(3)
    inputs = torch.randn(count, 3, generator=draw, dtype=torch.float64)
    return Samples(inputs, torch.randn(count, 2, generator=draw, dtype=torch.float64))


def network(*layers: nn.Module) -> nn.Module:
    torch.default_generator.manual_seed(1)
    return nn.Sequential(nn.Linear(3, 5), *layers, nn.Tanh(), nn.Linear(5, 2)).double()


def noisy() -> Workspace:
    return Workspace(network(nn.BatchNorm1d(5), nn.Dropout(0.5)), squared_error)


def slope() -> Workspace:
    """f(y) = mean (y a - b)^2 over (a, b) = (1, 0), (2, 0): g(y) = 5 y, from y = 1."""
    module = nn.Linear(1, 1, bias=False).double()
    module.weight.data.fill_(1.0)
    return Workspace(module, squared_error)


LINE = Samples(torch.tensor([[1.0], [2.0]], dtype=torch.float64), torch.zeros(2).double())


@pytest.mark.parametrize(
    ("sgd", "correction", "end"),
    [
        (SGD(0.1, steps=1), None, 1 - 0.1 * 5),
        (SGD(0.1, steps=2), None, 0.5 - 0.1 * 2.5),
        (SGD(0.1, epochs=2, batch_size=9), None, 0.25),
        (SGD(0.1, steps=1, weight_decay=1.0), None, 1 - 0.1 * (5 + 1)),
        (SGD(0.1, steps=2), torch.tensor([2.0]).double(), 0.3 - 0.1 * (1.5 + 2)),
        (SGD(0.1, steps=2), lambda y, _: 3 * (y - 1), 0.5 - 0.1 * (2.5 + 3 * -0.5)),
        (SGD(0.1, steps=0), torch.tensor([2.0]).double(), 1.0),
    ],
)
def test_steps_by_hand(sgd, correction, end):
    space = slope()
    steps = walk(space, LINE, sgd, 0.1, correction)
    assert space.parameters.item() == pytest.approx(end, abs=1e-15)
    assert steps == sgd.local_steps(2)


@pytest.mark.parametrize("weight_decay", [0.0, 0.03])
@pytest.mark.parametrize("amount", [{"epochs": 3}, {"steps": 7}])
def test_agrees_with_torchs_own_optimizer(weight_decay, amount):
    sgd = SGD(0.2, batch_size=4, weight_decay=weight_decay, **amount)
    module, data = network(nn.BatchNorm1d(5)), rows()
    space = Workspace(module, squared_error)
    steps = walk(space, data, sgd, 0.2)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.2, weight_decay=weight_decay)
    module.train()
    taken = 0
    for batch in batches(data, sgd, STREAM):
        optimizer.zero_grad()
        squared_error(module(batch.inputs), batch.targets).backward()
        optimizer.step()
        taken += 1
    expected = torch.cat([p.detach().flatten() for p in module.parameters()])
    stats = torch.cat([module[1].running_mean, module[1].running_var])
    assert steps == taken
    assert (space.parameters - expected).abs().max() < 2e-15
    assert (space.read_buffers() - stats).abs().max() < 2e-15


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 40), st.integers(1, 45), st.integers(0, 4), st.integers(0, 2**128 - 1))
def test_an_epoch_takes_every_sample_once(count, size, epochs, stream):
    sgd = SGD(0.1, epochs=epochs, batch_size=size)
    taken = list(batches(numbered(count), sgd, stream))
    per_epoch = math.ceil(count / size)
    assert len(taken) == sgd.local_steps(count) == epochs * per_epoch
    for first in range(0, len(taken), per_epoch):
        epoch = taken[first : first + per_epoch]
        assert [b.size for b in epoch[:-1]] == [size] * (per_epoch - 1)
        assert sorted(torch.cat([b.targets for b in epoch]).tolist()) == list(range(count))
    assert all(b.inputs[:, 0].tolist() == b.targets.tolist() for b in taken)  # pairs stay pairs


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 30), st.integers(1, 35), st.integers(0, 50))
def test_steps_go_on_into_further_epochs(count, size, steps):
    by_steps = list(batches(numbered(count), SGD(0.1, steps=steps, batch_size=size), STREAM))
    by_epochs = list(batches(numbered(count), SGD(0.1, epochs=50, batch_size=size), STREAM))
    assert len(by_steps) == SGD(0.1, steps=steps, batch_size=size).local_steps(count) == steps
    for mine, other in zip(by_steps, by_epochs, strict=False):
        assert mine.targets.tolist() == other.targets.tolist()


def test_every_epoch_and_every_stream_has_its_own_order():
    sgd = SGD(0.1, epochs=3, batch_size=25)
    taken = [tuple(b.targets.tolist()) for s in (1, 2) for b in batches(numbered(50), sgd, s)]
    assert len(taken) == len(set(taken)) == 12


@pytest.mark.parametrize("size", [11, 12, 10**9])
def test_a_batch_size_of_all_samples_or_more_is_full_batch(size):
    ends = []
    for batch_size in (None, size):
        space = noisy()
        seed_torch(0, "noise")
        walk(space, rows(), SGD(0.1, epochs=4, batch_size=batch_size), 0.1)
        ends.append(torch.cat([space.parameters, space.read_buffers()]))
    assert torch.equal(*ends)


@given(st.floats(0, 10), st.floats(1e-3, 1), st.floats(0, 10), st.integers(1, 5000))
def test_the_rate_decays_to_its_minimum(lr, decay, min_lr, round):
    rate = SGD(lr, epochs=1, decay=decay, min_lr=min_lr).rate(round)
    assert rate == min(lr, max(lr * decay ** (round - 1), min_lr))
    assert rate <= lr


def test_rates_of_a_paper():
    sgd = SGD(0.25, epochs=1, decay=0.99, min_lr=0.001)
    assert [sgd.rate(1), sgd.rate(2)] == [0.25, 0.2475]
    assert sgd.rate(550) > 0.001
    assert sgd.rate(551) == 0.001
    assert SGD(0.1, epochs=1, min_lr=0.2).rate(9) == 0.1
    assert sgd.rate(0) == 0.25  # before the first round


def test_a_descent_knows_its_change_and_its_travel():
    descent = Descent(torch.tensor([1.0, 2.0]), torch.tensor([0.5, 4.0]), steps=6, lr=0.5)
    assert descent.change.tolist() == [-0.5, 2.0]
    assert descent.travel == 3.0


def test_a_batch_gives_the_gradient_that_the_step_uses():
    """Dropout's masks included: g(y) - g(y) moves nothing, not by one bit."""
    space = noisy()
    start = space.parameters.clone()
    seed_torch(0, "noise")
    walk(space, rows(), SGD(0.5, epochs=2, batch_size=4), 0.5, lambda y, b: -b.gradient(y))
    assert torch.equal(space.parameters, start)


def test_variance_reduction_takes_one_mask_for_both_points():
    """FedBCGD+'s direction g(y; z) - g(x; z) + v: exactly v where y = x."""
    space = noisy()
    x = space.parameters.clone()
    v = torch.linspace(-1, 1, space.size, dtype=torch.float64)
    differences: list[Vector] = []

    def correction(y: Vector, batch: Batch) -> Vector:
        differences.append(batch.gradient(y) - batch.gradient(x))
        return v - batch.gradient(x)

    seed_torch(0, "noise")
    walk(space, rows(), SGD(0.5, steps=1, batch_size=4), 0.5, correction)
    assert (space.parameters - (x - 0.5 * v)).abs().max() < 1e-15
    walk(space, rows(), SGD(0.5, steps=1, batch_size=4), 0.5, correction)
    assert differences[0].count_nonzero() == 0
    assert differences[1].count_nonzero() > 0  # y has left x


def test_asking_a_batch_for_gradients_leaves_no_trace():
    """Neither in dropout's masks nor in batch norm's statistics nor in y."""
    ends = []

    def nothing(y: Vector, batch: Batch) -> Vector:
        zero = 0 * (batch.gradient(y) + batch.gradient(torch.ones_like(y)))
        y.fill_(9.0)  # the correction's own copy
        return zero

    for correction in (None, nothing):
        space = noisy()
        seed_torch(0, "noise")
        walk(space, rows(), SGD(0.1, epochs=2, batch_size=4), 0.1, correction)
        ends.append(torch.cat([space.parameters, space.read_buffers()]))
        ends.append(torch.rand(3).double())  # the masks of what comes next
        assert space.module[1].num_batches_tracked == 6
    assert torch.equal(ends[0], ends[2])
    assert torch.equal(ends[1], ends[3])


def test_a_proximal_correction_follows_the_closed_form():
    """y - x contracts to the minimum of f + (alpha/2)|y - x|^2 by 1 - rate (5 + alpha)."""
    space = slope()
    walk(space, LINE, SGD(0.05, steps=8), 0.05, lambda y, _: 2.0 * (y - 1.0))
    minimum = 2.0 / 7.0
    assert space.parameters.item() == pytest.approx(minimum + 0.65**8 * (1 - minimum), abs=1e-14)


@pytest.mark.parametrize("chunk", [1, 4, 10, 11, 12, None])
def test_a_gradient_in_chunks_is_the_full_gradient(chunk):
    seen: list[int] = []
    module, data = network(), rows()
    squared_error(module(data.inputs), data.targets).backward()
    full = torch.cat([p.grad.flatten() for p in module.parameters()])
    space = Workspace(module, squared_error)
    space.module.insert(0, Spy(seen))
    assert (space.mean_gradient(data, chunk) - full).abs().max() < 1e-14
    assert max(seen) == min(chunk or 11, 11)  # memory is one chunk's
    assert sum(seen) == 11


def test_a_step_over_many_samples_goes_through_the_model_in_pieces():
    count = 2 * workspace.CHUNK + 3
    data = Samples(torch.linspace(0, 1, count).double()[:, None], torch.ones(count).double())
    seen: list[int] = []
    module = nn.Sequential(Spy(seen), nn.Linear(1, 1)).double()
    squared_error(module(data.inputs), data.targets).backward()
    full = torch.cat([p.grad.flatten() for p in module.parameters()])
    space = Workspace(module, squared_error)
    space.module[0].seen = seen
    seen.clear()
    space.backward(data)
    assert (space.gradient - full).abs().max() < 1e-14
    assert seen == [workspace.CHUNK, workspace.CHUNK, 3]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"lr": -0.1, "epochs": 1}, r"SGD\(lr=-0.1\): must be a finite number, 0 or more"),
        ({"lr": math.nan, "epochs": 1}, "lr=nan"),
        ({"lr": math.inf, "epochs": 1}, "lr=inf"),
        ({"lr": 0.1, "epochs": 1, "min_lr": -1.0}, "min_lr=-1.0"),
        ({"lr": 0.1, "epochs": 1, "weight_decay": math.nan}, "weight_decay=nan"),
        ({"lr": 0.1, "epochs": 1, "decay": 0.0}, "decay=0.0.*above 0 and at most 1"),
        ({"lr": 0.1, "epochs": 1, "decay": 1.01}, "decay=1.01"),
        ({"lr": 0.1, "epochs": 1, "decay": math.nan}, "decay=nan"),
        ({"lr": 0.1}, "exactly one of epochs and steps, got neither"),
        ({"lr": 0.1, "epochs": 1, "steps": 1}, "exactly one of epochs and steps, got both"),
        ({"lr": 0.1, "epochs": -1}, "epochs=-1.*whole number, at least 0"),
        ({"lr": 0.1, "epochs": 1.0}, "epochs=1.0"),
        ({"lr": 0.1, "steps": True}, "steps=True"),
        ({"lr": 0.1, "steps": 1, "batch_size": 0}, "batch_size=0.*at least 1"),
        ({"lr": 0.1, "steps": 1, "batch_size": 2.5}, "batch_size=2.5"),
    ],
)
def test_settings_that_cannot_work(settings, message):
    with pytest.raises(InputError, match=message):
        SGD(**settings)


@pytest.mark.parametrize("name", ["lr", "decay", "min_lr", "weight_decay"])
def test_settings_that_are_no_numbers(name):
    with pytest.raises(InputError, match=name):
        SGD(**{"lr": 0.1, "epochs": 1, name: "0.1"})
