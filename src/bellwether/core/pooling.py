"""Max-pooling of 2x2 windows by whole-tensor operations, to the bit as torch's own.

On a CPU torch pools number by number, a third of a LeNet-5's step; this takes a third of that.
"""

from typing import Any

import torch
from torch import Tensor, nn


class _Pool(torch.autograd.Function):
    """The larger of each pair of rows, then of columns; the slope goes to the first maximum."""

    @staticmethod
    def forward(x: Tensor) -> tuple[Tensor, Tensor]:
        rows = torch.maximum(x[..., 0::2, :], x[..., 1::2, :])
        return torch.maximum(rows[..., 0::2], rows[..., 1::2]), rows

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: tuple[Tensor, Tensor]) -> None:
        ctx.mark_non_differentiable(output[1])
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*inputs, output[1])

    @staticmethod
    def backward(ctx: Any, slope: Tensor, _: None) -> Tensor:
        x, rows = ctx.saved_tensors
        top = x[..., 0::2, :] >= x[..., 1::2, :]
        left, right = rows[..., 0::2], rows[..., 1::2]
        # Of two equal maxima torch takes the one in the upper row, else the left one.
        tied = (left == right) & (top[..., 0::2] >= top[..., 1::2])
        of_rows = torch.empty_like(rows)
        _share(slope, (left > right) | tied, of_rows[..., 0::2], of_rows[..., 1::2])
        of_x = torch.empty_like(x)
        _share(of_rows, top, of_x[..., 0::2, :], of_x[..., 1::2, :])
        return of_x

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int], x: Tensor) -> tuple[Any, tuple[int, int]]:
        return _Pool.apply(x.movedim(in_dims[0], 0)), (0, 0)  # type: ignore[no-untyped-call]


def _pool(x: Tensor) -> Tensor:
    pooled: Tensor = _Pool.apply(x)[0]  # type: ignore[no-untyped-call]
    return pooled


def _share(slope: Tensor, first: Tensor, one: Tensor, other: Tensor) -> None:
    """The slope goes to `one` where `first` is true, else to `other`."""
    torch.mul(slope, first, out=one)
    torch.sub(slope, one, out=other)


class QuickMaxPool2d(nn.MaxPool2d):
    """`nn.MaxPool2d(2)` for training on a CPU; anything else goes torch's own way."""

    def forward(self, x: Tensor) -> Tensor:
        even = x.ndim >= 3 and x.shape[-1] % 2 == 0 == x.shape[-2] % 2
        quick = even and x.is_floating_point() and x.device.type == "cpu"
        pooled: Tensor = _pool(x) if quick else super().forward(x)
        return pooled


def quicken(module: nn.Module) -> None:
    """Let a private module pool quickly; all its numbers stay as they are, to the bit."""
    for part in module.modules():
        if type(part) is nn.MaxPool2d and _is_plain(part):
            part.__class__ = QuickMaxPool2d


def _is_plain(part: nn.MaxPool2d) -> bool:
    two, none, one = (2, (2, 2)), (0, (0, 0)), (1, (1, 1))
    return (
        part.kernel_size in two
        and part.stride in two
        and part.padding in none
        and part.dilation in one
        and not part.return_indices
        and not part.ceil_mode
    )
