"""Where a stacked cohort computes: [m, d] parameters and gradients, and the loss of each row."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor
from torch.func import functional_call, vmap
from torch.nn import functional

from bellwether.core.graphs import graphed
from bellwether.core.stacked.data import StackedBatch, StackedData
from bellwether.core.stacked.layers import by_hand
from bellwether.core.stacked.losses import AnyLosses, CrossEntropies, RowLosses
from bellwether.core.vector import Vector
from bellwether.core.workspace import CHUNK, Workspace


class StackedSpace:
    """The rows of [m, d] tensors as so many copies of a module: `Workspace` for m clients."""

    def __init__(self, space: Workspace, clients: int) -> None:
        self.loss, self.l2 = space.loss, space.l2
        self.dtype, self.device = space.dtype, space.device
        self.size = space.size
        self.parameters = space.parameters.new_zeros((clients, space.size))
        self.gradient = torch.zeros_like(self.parameters)
        self.admit = space.admit
        self._space = space
        self._buffers = space.read_buffers()
        self._values = _stacked(self.parameters, space)
        slopes = _stacked(self.gradient, space)
        self._slopes = list(slopes.values())
        self._layers = by_hand(space.module, self._values, slopes)
        if self._layers is None:
            for value in self._values.values():
                value.requires_grad_()
        self._classify = graphed(self._cross_entropy, self.uncommitted, self.device)

    @property
    def by_hand(self) -> bool:
        """Whether the gradients are written by hand rather than by autograd."""
        return self._layers is not None

    def load(self, x: Vector, buffers: Vector) -> None:
        """Every row becomes the model x, or its row of x."""
        with torch.no_grad():
            self.parameters.copy_(x)
        self._space.load(self._space.parameters, buffers)
        self._buffers = buffers

    def read_buffers(self) -> Vector:
        """The buffers as they were loaded: a model that changes them is not stacked."""
        return self._buffers

    @contextmanager
    def uncommitted(self) -> Iterator[None]:
        """Leave the parameters afterwards as they were before."""
        parameters = self.parameters.clone()
        yield
        self.parameters.copy_(parameters)

    def backward(self, batch: StackedBatch) -> None:
        """Set each row of `gradient` to that of the client's mean loss over its batch."""
        if self.size:
            self._set_gradient(batch, batch.sizes)
            self._add_penalty(self.gradient)

    def mean_gradient(self, data: StackedData | StackedBatch, chunk: int | None) -> Vector:
        """Each row's gradient of the client's mean loss over all its data, in chunks."""
        if isinstance(data, StackedBatch) or data.size <= (chunk or CHUNK):
            self.backward(data if isinstance(data, StackedBatch) else data.whole)
            return self.gradient.clone()
        total = torch.zeros_like(self.gradient)
        for batch in data.chunks(chunk or CHUNK):
            self._set_gradient(batch, data.sizes)
            total.add_(self.gradient)
        self._add_penalty(total)
        return total

    def _add_penalty(self, gradient: Vector) -> None:
        if self.l2:
            gradient.add_(self.parameters, alpha=self.l2)

    def _set_gradient(self, batch: StackedBatch, totals: tuple[int, ...]) -> None:
        """Each row: the gradient of the sum of the client's losses, divided by its total."""
        if self.loss is not functional.cross_entropy or batch.targets.ndim != 2:
            self._compute(batch.inputs, AnyLosses(self.loss, batch, totals))
        elif batch.even and totals == batch.sizes:
            self._classify(batch.inputs, batch.targets)
        else:
            self._classify(batch.inputs, batch.targets, batch.weights(totals, self.dtype))

    def _cross_entropy(
        self, inputs: Tensor, targets: Tensor, weights: Tensor | None = None
    ) -> None:
        self._compute(inputs, CrossEntropies(targets, weights))

    def _compute(self, inputs: Tensor, losses: RowLosses) -> None:
        if self._layers is None:
            outputs = vmap(self._outputs)(self._values, inputs)
            values = list(self._values.values())
            found = torch.autograd.grad(losses.total(outputs), values, materialize_grads=True)
            torch._foreach_copy_(self._slopes, found)
            return
        x = inputs
        for layer in self._layers:
            x = layer.forward(x)
        slope: Tensor | None = losses.slope(x)
        for layer in reversed(self._layers):
            if slope is not None:
                slope = layer.backward(slope)

    def _outputs(self, values: dict[str, Tensor], inputs: Tensor) -> Tensor:
        outputs: Tensor = functional_call(self._space.module, values, (inputs,))
        return outputs


def _stacked(flat: Vector, space: Workspace) -> dict[str, Tensor]:
    """The rows' parameters by name: [m, ...] views."""
    shapes = {n: p.shape for n, p in space.module.named_parameters() if p.requires_grad}
    return {n: flat[:, where].unflatten(1, shapes[n]) for n, where in space.layers.items()}
