"""The quick max-pooling: torch's own to the bit, ties and signs included."""

import copy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional

from bellwether.core.pooling import QuickMaxPool2d, quicken


def both(x: Tensor) -> tuple[list[Tensor], list[Tensor]]:
    """(outputs, slope) of torch's pooling and of ours."""
    pairs = []
    for pool in (nn.MaxPool2d(2), QuickMaxPool2d(2)):
        leaf = x.clone().requires_grad_()
        outputs = pool(leaf)
        weights = torch.arange(1.0, outputs.numel() + 1, dtype=x.dtype).reshape(outputs.shape)
        (outputs * weights).sum().backward()
        assert leaf.grad is not None
        pairs.append([outputs.detach(), leaf.grad])
    return pairs[0], pairs[1]


@settings(deadline=None)
@given(st.lists(st.integers(-2, 2), min_size=48, max_size=48), st.booleans())
def test_ties_go_where_torch_sends_them(values, double):
    dtype = torch.float64 if double else torch.float32
    theirs, ours = both(torch.tensor(values, dtype=dtype).reshape(1, 2, 4, 6))
    assert all(map(torch.equal, theirs, ours))


@pytest.mark.parametrize("shape", [(3, 4, 8, 8), (2, 7, 5), (2, 3, 5, 6), (1, 1, 2, 2)])
def test_every_shape(shape):
    theirs, ours = both(torch.randn(shape, generator=torch.Generator().manual_seed(0)))
    assert all(map(torch.equal, theirs, ours))


def test_a_network_keeps_its_bits_and_only_plain_pools_are_replaced():
    network = nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.MaxPool2d(2, padding=1),
        nn.MaxPool2d(3, 2), nn.Flatten(), nn.LazyLinear(3),
    )  # fmt: skip
    x = torch.randn(5, 1, 18, 18, generator=torch.Generator().manual_seed(1))
    network(x)
    quick = copy.deepcopy(network)
    quicken(quick)
    assert [type(part) is QuickMaxPool2d for part in quick] == [False] * 2 + [True] + [False] * 4
    for net in (network, quick):
        functional.cross_entropy(net(x), torch.tensor([0, 1, 2, 0, 1])).backward()
    for mine, other in zip(quick.parameters(), network.parameters(), strict=True):
        assert mine.grad is not None
        assert other.grad is not None
        assert torch.equal(mine.grad, other.grad)


def test_a_network_that_looks_between_its_layers_sees_what_they_give() -> None:
    """Nothing but the pooling is touched: somebody may tap a ReLU's output on its way."""
    network = nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU(), nn.MaxPool2d(2))
    x = torch.randn(2, 1, 8, 8, generator=torch.Generator().manual_seed(4))
    quick = copy.deepcopy(network)
    quicken(quick)
    mine = other = x
    for layer, quick_layer in zip(network, quick, strict=True):
        mine, other = layer(mine), quick_layer(other)
        assert torch.equal(mine, other)


def test_it_goes_through_vmap():
    x = torch.randn(3, 2, 4, 4, generator=torch.Generator().manual_seed(2)).requires_grad_()
    torch.func.vmap(QuickMaxPool2d(2))(x).sum().backward()
    slope, x.grad = x.grad, None
    nn.MaxPool2d(2)(x).sum().backward()
    assert x.grad is not None
    assert torch.equal(slope, x.grad)
