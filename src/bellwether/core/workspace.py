"""Where one task computes: a private module as vectors, and the loss."""

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional

from bellwether.core.dataset import Samples
from bellwether.core.errors import InputError
from bellwether.core.graphs import graphed
from bellwether.core.heap import keep_heap
from bellwether.core.pooling import quicken
from bellwether.core.vector import FlatModule, Vector, dot

Loss = Callable[[Tensor, Tensor], Tensor]
"""(outputs, targets) -> their mean loss, a scalar."""


@dataclass(frozen=True)
class Regularised:
    """f(x) + l2/2 |x|^2 over all parameters x, f the mean loss.

    The term is part of the objective: of steps, of the gradients that participants report, and of
    the loss that is evaluated. `SGD(weight_decay=...)` takes the same steps, but to a method it is
    no part of f. A loss of (outputs, targets) cannot see x, so the workspace adds the term.
    """

    loss: Loss
    l2: float

    def __post_init__(self) -> None:
        if not callable(self.loss):
            raise InputError(f"Regularised(loss={self.loss!r}): must be a loss such as logistic")
        if not (math.isfinite(self.l2) and self.l2 >= 0):
            raise InputError(f"Regularised(l2={self.l2!r}): must be a finite number, 0 or more")


class Space(Protocol):
    """What a participant computes in: for one model `Workspace`, for many `StackedSpace`."""

    parameters: Vector
    gradient: Vector

    def load(self, x: Vector, buffers: Vector) -> None:
        """Become the model x with these buffers, in training mode."""

    def read_buffers(self) -> Vector:
        """The floating buffers as they are now."""

    def uncommitted(self) -> AbstractContextManager[None]:
        """Leave parameters and buffers afterwards as they were before."""

    def backward(self, batch: Any) -> None:
        """Set `gradient` to that of the mean loss over the batch."""

    def mean_gradient(self, data: Any, chunk: int | None) -> Vector:
        """The gradient of the mean loss over all data."""


CHUNK = 4096
"""The most samples that go through the model at once when no batch size is given."""


def squared_error(outputs: Tensor, targets: Tensor) -> Tensor:
    """Mean squared error; outputs of shape [n, 1] meet targets of shape [n]."""
    return functional.mse_loss(outputs.reshape(targets.shape), targets)


def default_loss(data: Samples) -> Loss:
    """Cross-entropy for class labels, squared error for values."""
    return functional.cross_entropy if data.labelled else squared_error


class Workspace(FlatModule):
    """A flat module with its loss: f(x; batch) and its gradient."""

    def __init__(
        self, module: nn.Module, loss: Loss | Regularised, device: torch.device | str = "cpu"
    ) -> None:
        super().__init__(module, device)
        quicken(self.module)
        keep_heap()
        self.l2 = loss.l2 if isinstance(loss, Regularised) else 0.0
        self.loss = loss.loss if isinstance(loss, Regularised) else loss
        self._run = graphed(self._compute, self.uncommitted, self.device)

    def penalty(self, x: Vector) -> float:
        """l2/2 |x|^2; without l2 it is 0 whatever x is."""
        return self.l2 / 2 * dot(x, x).item() if self.l2 else 0.0

    def admit(self, data: Samples) -> Samples:
        """The samples on this device, floating values in the model's precision.

        Bytes are pixels and become 0 .. 1, so that images can be kept in a quarter of the memory.
        """
        return Samples(*(self._admit(t) for t in data))

    def backward(self, batch: Samples) -> None:
        """Set `gradient` to that of the mean loss over the batch.

        More than `CHUNK` samples are taken in pieces, weighted by their sizes.
        """
        if self.size:
            self._run(*batch)

    def mean_gradient(self, data: Samples, chunk: int | None) -> Vector:
        """The gradient of the mean loss over all data, in chunks; memory is one chunk's."""
        if chunk is None or chunk >= data.size:
            self.backward(data)
            return self.gradient.clone()
        total = torch.zeros_like(self.gradient)
        for piece in pieces(data, chunk):
            self.backward(piece)
            total.add_(self.gradient, alpha=piece.size / data.size)
        return total

    def _compute(self, inputs: Tensor, targets: Tensor) -> None:
        self.gradient.zero_()
        for piece in pieces(Samples(inputs, targets), CHUNK):
            loss = self.loss(self.module(piece.inputs), piece.targets)
            if piece.size != len(targets):
                loss = loss * (piece.size / len(targets))
            loss.backward()
        if self.l2:
            self.gradient.add_(self.parameters, alpha=self.l2)

    def _admit(self, tensor: Tensor) -> Tensor:
        if tensor.dtype == torch.uint8:
            return tensor.to(device=self.device).to(self.dtype) / 255
        dtype = self.dtype if tensor.is_floating_point() else tensor.dtype
        return tensor.to(device=self.device, dtype=dtype)


def pieces(data: Samples, size: int) -> Iterator[Samples]:
    """The samples in order, at most `size` at a time."""
    if data.size <= size:
        yield data
    else:
        for x, y in zip(data.inputs.split(size), data.targets.split(size), strict=True):
            yield Samples(x, y)
