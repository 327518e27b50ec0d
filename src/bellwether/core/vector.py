"""A module as one vector: parameters and gradients are views into two contiguous buffers."""

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from bellwether.core.errors import InputError

Vector = Tensor
"""A tensor whose last axis is d, all trainable parameters in `module.parameters()`'s order."""


class FlatModule:
    """A private copy of a module, laid out as vectors.

    `parameters` and `gradient` have length d; tied weights count once. `buffers` holds the
    floating buffers (batch-norm statistics) in the same way. Frozen parameters and integer
    buffers stay with the module; the integers start fresh whenever a vector is loaded.
    """

    def __init__(self, module: nn.Module, device: torch.device | str = "cpu") -> None:
        self.module = copy.deepcopy(module).to(device)
        trainable = [p for p in self.module.parameters() if p.requires_grad]
        slots = list(_buffer_slots(self.module))
        floating = [(o, n, b) for o, n, b in slots if b.is_floating_point()]
        self._integers = [(b, b.clone()) for _, _, b in slots if not b.is_floating_point()]
        self.dtype = _one_dtype([*trainable, *(b for _, _, b in floating)])
        self.device = torch.device(device)

        self.parameters = self._pack(trainable)
        self.gradient = torch.zeros_like(self.parameters)
        values, slopes = _views(self.parameters, trainable), _views(self.gradient, trainable)
        for parameter, value, slope in zip(trainable, values, slopes, strict=True):
            parameter.data = value
            parameter.grad = slope

        tensors = [b for _, _, b in floating]
        self.buffers = self._pack(tensors)
        views = _views(self.buffers, tensors)
        self._slots = [(o, n, v) for (o, n, _), v in zip(floating, views, strict=True)]
        self._bind_buffers()

    @property
    def size(self) -> int:
        """d, the number of trainable parameters."""
        return len(self.parameters)

    def load(self, x: Vector, buffers: Vector) -> None:
        """Become the model x with these buffers, in training mode."""
        self.parameters.copy_(x)
        if self._slots:
            self.buffers.copy_(buffers)
            self._bind_buffers()
        for buffer, fresh in self._integers:
            buffer.copy_(fresh)
        if not self.module.training:
            self.module.train()

    @contextmanager
    def uncommitted(self) -> Iterator[None]:
        """Leave parameters and all buffers afterwards as they were before."""
        parameters, buffers = self.parameters.clone(), self.read_buffers()
        integers = [buffer.clone() for buffer, _ in self._integers]
        yield
        self.parameters.copy_(parameters)
        self.buffers.copy_(buffers)
        self._bind_buffers()
        for (buffer, _), before in zip(self._integers, integers, strict=True):
            buffer.copy_(before)

    def read_buffers(self) -> Vector:
        """A copy of the floating buffers as they are now."""
        for owner, name, view in self._slots:
            held = owner._buffers[name]
            if held is not view and held is not None:  # a module may rebind instead of updating
                view.copy_(held)
        return self.buffers.clone()

    def _bind_buffers(self) -> None:
        for owner, name, view in self._slots:
            owner._buffers[name] = view

    def _pack(self, tensors: Sequence[Tensor]) -> Vector:
        if not tensors:
            return torch.zeros(0, dtype=self.dtype, device=self.device)
        return torch.cat([t.detach().reshape(-1) for t in tensors])


def _views(flat: Vector, like: Sequence[Tensor]) -> list[Tensor]:
    pieces = flat.split([t.numel() for t in like])
    return [piece.view(t.shape) for piece, t in zip(pieces, like, strict=True)]


def _buffer_slots(module: nn.Module) -> Iterator[tuple[nn.Module, str, Tensor]]:
    seen: set[int] = set()
    for owner in module.modules():
        for name, buffer in owner._buffers.items():
            if buffer is None or id(buffer) in seen:
                continue
            seen.add(id(buffer))
            yield owner, name, buffer


def _one_dtype(tensors: Sequence[Tensor]) -> torch.dtype:
    dtypes = {t.dtype for t in tensors}
    if not dtypes:
        return torch.get_default_dtype()
    if len(dtypes) > 1 or not dtypes <= {torch.float32, torch.float64}:
        names = ", ".join(sorted(str(d).removeprefix("torch.") for d in dtypes))
        raise InputError(
            f"the model's parameters and buffers must all be float32 or all float64, found {names};"
            " call model.float() or model.double()"
        )
    return dtypes.pop()
