"""Initial weights other than torch's defaults, drawn from torch's default generator."""

from collections.abc import Callable
from typing import Any, TypeVar

from torch import nn

Network = TypeVar("Network", bound=nn.Module)


def glorot(network: Network) -> Network:
    """Uniform in +-sqrt(6 / (fan in + fan out)), biases 0 (Glorot and Bengio 2010): Keras's start.

    Of convolutions and linear layers, as `he`; returns the network.
    """
    return _draw(network, nn.init.xavier_uniform_)


def he(network: Network) -> Network:
    """Normal with variance 2 / fan in, biases 0 (He et al. 2015): for deep networks with ReLU."""
    return _draw(network, nn.init.kaiming_normal_)


def _draw(network: Network, draw: Callable[..., Any]) -> Network:
    for layer in network.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            draw(layer.weight)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
    return network
