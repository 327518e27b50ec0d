"""The losses of several clients' batches at once: their sum, and its slope at the outputs."""

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional

from bellwether.core.stacked.data import StackedBatch
from bellwether.core.workspace import Loss


class RowLosses(Protocol):
    """The sum of the clients' losses, as a function of the outputs [m, b, ...]."""

    def total(self, outputs: Tensor) -> Tensor:
        """The sum."""

    def slope(self, outputs: Tensor) -> Tensor:
        """Its gradient at the outputs."""


@dataclass(frozen=True, eq=False)
class CrossEntropies:
    """Mean cross-entropies of outputs [m, b, c], or sums in which each sample has its weight."""

    targets: Tensor
    weights: Tensor | None

    def total(self, outputs: Tensor) -> Tensor:
        """The sum of -w log softmax(outputs)_y."""
        each = functional.cross_entropy(
            outputs.flatten(0, 1), self.targets.flatten(), reduction="none"
        )
        return (
            each.sum() / outputs.shape[1] if self.weights is None else each @ self.weights.flatten()
        )

    def slope(self, outputs: Tensor) -> Tensor:
        """(softmax(outputs) - 1_y) w."""
        slope = (outputs - outputs.amax(dim=-1, keepdim=True)).exp_()
        slope.div_(slope.sum(dim=-1, keepdim=True))  # torch.softmax is slow on short rows
        places = self.targets.unsqueeze(-1)
        slope.scatter_add_(-1, places, slope.new_full((), -1.0).expand(places.shape))
        if self.weights is None:
            return slope.div_(outputs.shape[1])
        return slope.mul_(self.weights.unsqueeze(-1))


@dataclass(frozen=True, eq=False)
class AnyLosses:
    """A loss of which nothing is known: client by client, without the padding."""

    loss: Loss
    batch: StackedBatch
    totals: tuple[int, ...]
    """A client's loss counts by the share of its samples that are in this batch."""

    def total(self, outputs: Tensor) -> Tensor:
        """The sum."""
        total = outputs.new_zeros(())
        for row, (size, whole) in enumerate(zip(self.batch.sizes, self.totals, strict=True)):
            if size:
                loss = self.loss(outputs[row, :size], self.batch.targets[row, :size])
                total = total + (loss if size == whole else loss * (size / whole))
        return total

    def slope(self, outputs: Tensor) -> Tensor:
        """By autograd."""
        leaf = outputs.detach().requires_grad_()
        (slope,) = torch.autograd.grad(self.total(leaf), leaf)
        return slope
