"""Where a stacked cohort computes: [m, d] parameters and gradients, and the loss of each row."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor
from torch.func import functional_call, vmap
from torch.nn import functional

from bellwether.core.stacked.data import StackedBatch, StackedData
from bellwether.core.stacked.layers import by_hand, cross_entropy_slope
from bellwether.core.vector import Vector
from bellwether.core.workspace import CHUNK, Workspace


class StackedSpace:
    """The rows of [m, d] tensors as so many copies of a module: `Workspace` for m clients."""

    def __init__(self, space: Workspace, clients: int) -> None:
        self.clients = clients
        self.loss = space.loss
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

    def mean_gradient(self, data: StackedData | StackedBatch, chunk: int | None) -> Vector:
        """Each row's gradient of the client's mean loss over all its data, in chunks."""
        if isinstance(data, StackedBatch) or data.size <= (chunk or CHUNK):
            self.backward(data if isinstance(data, StackedBatch) else data.whole)
            return self.gradient.clone()
        total = torch.zeros_like(self.gradient)
        for batch in data.chunks(chunk or CHUNK):
            self._set_gradient(batch, data.sizes)
            total.add_(self.gradient)
        return total

    def _set_gradient(self, batch: StackedBatch, totals: tuple[int, ...]) -> None:
        """Each row: the gradient of the sum of the client's losses, divided by its total."""
        even = batch.even and totals == batch.sizes
        weights = None if even else batch.weights(totals, self.dtype)
        if self._layers is not None:
            x: Tensor = batch.inputs
            for layer in self._layers:
                x = layer.forward(x)
            slope: Tensor | None = self._slope(x, batch, weights)
            for layer in reversed(self._layers):
                if slope is not None:
                    slope = layer.backward(slope)
            return
        outputs = vmap(self._outputs)(self._values, batch.inputs)
        total = self._total(outputs, batch, weights)
        found = torch.autograd.grad(total, list(self._values.values()), materialize_grads=True)
        torch._foreach_copy_(self._slopes, found)

    def _outputs(self, values: dict[str, Tensor], inputs: Tensor) -> Tensor:
        outputs: Tensor = functional_call(self._space.module, values, (inputs,))
        return outputs

    def _slope(self, outputs: Tensor, batch: StackedBatch, weights: Tensor | None) -> Tensor:
        """The slope of the rows' losses at the outputs."""
        if self._classifies(outputs, batch):
            return cross_entropy_slope(outputs, batch.targets, weights)
        leaf = outputs.detach().requires_grad_()
        self._total(leaf, batch, weights).backward()
        assert leaf.grad is not None
        return leaf.grad

    def _total(self, outputs: Tensor, batch: StackedBatch, weights: Tensor | None) -> Tensor:
        """The sum of the rows' losses."""
        if self._classifies(outputs, batch):
            each = functional.cross_entropy(
                outputs.flatten(0, 1), batch.targets.flatten(), reduction="none"
            )
            return each.sum() / outputs.shape[1] if weights is None else each @ weights.flatten()
        total = outputs.new_zeros(())
        for row, size in enumerate(batch.sizes):
            if size:
                loss = self.loss(outputs[row, :size], batch.targets[row, :size])
                share = 1.0 if weights is None else float(weights[row, 0]) * size
                total = total + loss * share
        return total

    def _classifies(self, outputs: Tensor, batch: StackedBatch) -> bool:
        return (
            self.loss is functional.cross_entropy
            and outputs.ndim == 3
            and batch.targets.ndim == 2
            and not batch.targets.is_floating_point()
        )


def _stacked(flat: Vector, space: Workspace) -> dict[str, Tensor]:
    """The rows' parameters by name: [m, ...] views."""
    shapes = {n: p.shape for n, p in space.module.named_parameters() if p.requires_grad}
    return {n: flat[:, where].unflatten(1, shapes[n]) for n, where in space.layers.items()}
