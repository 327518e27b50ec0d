"""Linear networks and perceptrons for many clients at once, forward and backward by hand.

The gradients of the weights are written straight into their places in the flat gradient, which
autograd cannot do: it adds a zero-padded [m, d] tensor for each layer.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

import torch
from torch import Tensor, nn


class Layer(Protocol):
    """One layer; `backward` follows its `forward`."""

    def forward(self, x: Tensor) -> Tensor:
        """[m, b, ...] -> [m, b, ...]."""

    def backward(self, slope: Tensor) -> Tensor | None:
        """The loss's slope at the outputs -> that at the inputs, if anybody needs it.

        Sets the gradient of the weights.
        """


class Linear:
    """y = x W' + b, with W [m, o, i] and b [m, o]."""

    def __init__(
        self, weight: Tensor, weight_slope: Tensor, bias: Tensor | None, bias_slope: Tensor | None
    ) -> None:
        self.weight, self.weight_slope = weight, weight_slope
        self.bias, self.bias_slope = bias, bias_slope
        self.first = False
        """Whether no layer before it has weights."""

    def forward(self, x: Tensor) -> Tensor:
        self.inputs = x.flatten(1, -2)
        across = self.weight.transpose(1, 2)
        if self.bias is None:
            y = torch.bmm(self.inputs, across)
        else:
            y = torch.baddbmm(self.bias.unsqueeze(1), self.inputs, across)
        return y.view(*x.shape[:-1], -1)

    def backward(self, slope: Tensor) -> Tensor | None:
        flat = slope.flatten(1, -2)
        torch.bmm(flat.transpose(1, 2), self.inputs, out=self.weight_slope)
        if self.bias_slope is not None:
            torch.sum(flat, dim=1, out=self.bias_slope)
        if self.first:
            return None
        return torch.bmm(flat, self.weight).view(*slope.shape[:-1], -1)


class Flatten:
    """All axes of a sample as one."""

    def forward(self, x: Tensor) -> Tensor:
        self.shape = x.shape
        return x.flatten(2)

    def backward(self, slope: Tensor) -> Tensor:
        return slope.reshape(self.shape)


class Elementwise:
    """An activation y = a(x), whose slope is a function of y."""

    def __init__(
        self, forward: Callable[[Tensor], Tensor], slope: Callable[[Tensor, Tensor], Tensor]
    ) -> None:
        self._forward, self._slope = forward, slope

    def forward(self, x: Tensor) -> Tensor:
        self.outputs = self._forward(x)
        return self.outputs

    def backward(self, slope: Tensor) -> Tensor:
        return self._slope(slope, self.outputs)


ACTIVATIONS: Mapping[type[nn.Module], Callable[[], Layer]] = {
    nn.ReLU: lambda: Elementwise(
        torch.relu, lambda g, y: torch.ops.aten.threshold_backward(g, y, 0)
    ),
    nn.Tanh: lambda: Elementwise(torch.tanh, torch.ops.aten.tanh_backward),
    nn.Sigmoid: lambda: Elementwise(torch.sigmoid, torch.ops.aten.sigmoid_backward),
}


def by_hand(
    module: nn.Module, values: Mapping[str, Tensor], slopes: Mapping[str, Tensor]
) -> Sequence[Layer] | None:
    """The layers of a sequence of linear layers and activations; None for any other module.

    `values` and `slopes` are the stacked parameters and their gradients by name.
    """
    layers: list[Layer] = []
    used: set[str] = set()
    for name, part in _sequence(module, ""):
        if type(part) is nn.Linear:
            names = [f"{name}weight"] + ([f"{name}bias"] if part.bias is not None else [])
            if used & set(names) or not set(names) <= set(values):  # tied, or frozen
                return None
            used |= set(names)
            w, b = names[0], names[1] if len(names) > 1 else None
            layers.append(
                Linear(values[w], slopes[w], b and values[b], b and slopes[b])  # type: ignore
            )
        elif type(part) is nn.Flatten and (part.start_dim, part.end_dim) == (1, -1):
            layers.append(Flatten())
        elif type(part) in ACTIVATIONS:
            layers.append(ACTIVATIONS[type(part)]())
        elif type(part) is not nn.Identity:
            return None
        if part._forward_hooks or part._forward_pre_hooks or part._backward_hooks:
            return None
    if used != set(values):
        return None
    for layer in layers:
        if isinstance(layer, Linear):
            layer.first = True
            break
    return layers


def _sequence(module: nn.Module, name: str) -> Iterator[tuple[str, nn.Module]]:
    if type(module) is nn.Sequential:
        for child, part in module.named_children():
            yield from _sequence(part, f"{name}{child}.")
    else:
        yield name, module
