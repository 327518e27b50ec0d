"""A module as one vector: parameters and gradients are views into two contiguous buffers."""

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from bellwether.core.errors import InputError

Vector = Tensor
"""A tensor whose last axis is d, all trainable parameters in `module.parameters()`'s order."""


Layers = Mapping[str, slice]
"""Where each parameter, by its name in the module, lies in the vector."""


def dot(a: Vector, b: Vector) -> Tensor:
    """The inner product over the last axis: a number, or one a row ([m, 1]) that scales rows."""
    product = a * b
    return product.sum(dim=-1, keepdim=product.ndim > 1)


def norm(a: Vector) -> Tensor:
    """The Euclidean norm over the last axis."""
    return dot(a, a).sqrt()


class FlatModule:
    """A private copy of a module, laid out as vectors.

    `parameters` and `gradient` have length d; tied weights count once. `buffers` holds the
    floating buffers (batch-norm statistics) in the same way, and `homes` says for each of its
    numbers where its layer's parameters begin, -1 if it has none. Frozen parameters and integer
    buffers stay with the module; the integers start fresh whenever a vector is loaded.
    """

    def __init__(self, module: nn.Module, device: torch.device | str = "cpu") -> None:
        if any(is_lazy(t) for t in (*module.parameters(), *module.buffers())):
            raise InputError(
                "the model has lazy modules, whose shapes are not known yet;"
                " put one batch of inputs through it first"
            )
        self.module = copy.deepcopy(module).to(device).train()
        named = [(n, p) for n, p in self.module.named_parameters() if p.requires_grad]
        trainable = [p for _, p in named]
        ends = list(accumulate(p.numel() for p in trainable))
        self.layers: Layers = {
            n: slice(e - p.numel(), e) for (n, p), e in zip(named, ends, strict=True)
        }
        buffers = _buffers(self.module)
        floating = [b for b in buffers if b.bound.is_floating_point()]
        self._integers = [b for b in buffers if not b.bound.is_floating_point()]
        self._fresh = [b.bound.clone() for b in self._integers]
        self.dtype = _one_dtype([*trainable, *(b.bound for b in floating)])
        self.device = torch.device(device)

        self.parameters = self._pack(trainable)
        self.gradient = torch.zeros_like(self.parameters)
        values, slopes = _views(self.parameters, trainable), _views(self.gradient, trainable)
        for parameter, value, slope in zip(trainable, values, slopes, strict=True):
            parameter.data = value
            parameter.grad = slope

        tensors = [b.bound for b in floating]
        self.buffers = self._pack(tensors)
        starts = {id(p): e - p.numel() for p, e in zip(trainable, ends, strict=True)}
        homes = [torch.full((b.bound.numel(),), b.home(starts)) for b in floating]
        self.homes = torch.cat(homes) if homes else torch.zeros(0, dtype=torch.int64)
        # `.data`: autograd shall count writes to one buffer, not to all that share the storage
        views = [view.data for view in _views(self.buffers, tensors)]
        self._floating = [_Buffer(b.slots, v) for b, v in zip(floating, views, strict=True)]
        self._bind()

    @property
    def size(self) -> int:
        """d, the number of trainable parameters."""
        return len(self.parameters)

    def load(self, x: Vector, buffers: Vector) -> None:
        """Become the model x with these buffers, in training mode."""
        self._restore(x, buffers, self._fresh)
        if not self.module.training:
            self.module.train()

    @contextmanager
    def uncommitted(self) -> Iterator[None]:
        """Leave parameters and all buffers afterwards as they were before."""
        parameters, buffers = self.parameters.clone(), self.read_buffers()
        integers = [buffer.held().clone() for buffer in self._integers]
        yield
        self._restore(parameters, buffers, integers)

    def read_buffers(self) -> Vector:
        """A copy of the floating buffers as they are now."""
        for buffer in self._floating:
            held = buffer.held()
            if held is not buffer.bound:
                buffer.bound.copy_(held.detach())
        return self.buffers.clone()

    def _restore(self, parameters: Vector, buffers: Vector, integers: Sequence[Tensor]) -> None:
        self.parameters.copy_(parameters)
        self.buffers.copy_(buffers)
        for buffer, value in zip(self._integers, integers, strict=True):
            buffer.bound.copy_(value)
        self._bind()

    def _bind(self) -> None:
        for buffer in (*self._floating, *self._integers):
            for owner, name in buffer.slots:
                owner._buffers[name] = buffer.bound

    def _pack(self, tensors: Sequence[Tensor]) -> Vector:
        if not tensors:
            return torch.zeros(0, dtype=self.dtype, device=self.device)
        return torch.cat([t.detach().reshape(-1) for t in tensors])


@dataclass(frozen=True, eq=False)
class _Buffer:
    """A buffer, bound in one or more places of the module."""

    slots: list[tuple[nn.Module, str]]
    bound: Tensor

    def held(self) -> Tensor:
        """The tensor that is there now: a module may rebind its buffer instead of updating it."""
        for owner, name in self.slots:
            held = owner._buffers[name]
            if held is not None and held is not self.bound:
                return held
        return self.bound

    def home(self, starts: Mapping[int, int]) -> int:
        """Where the first trainable parameter of its layer begins; -1 if there is none."""
        owned = (starts[id(p)] for p in self.slots[0][0].parameters() if id(p) in starts)
        return next(owned, -1)


def _buffers(module: nn.Module) -> list[_Buffer]:
    found: dict[int, _Buffer] = {}
    for owner in module.modules():
        for name, tensor in owner._buffers.items():
            if tensor is not None:
                found.setdefault(id(tensor), _Buffer([], tensor)).slots.append((owner, name))
    return list(found.values())


def _views(flat: Vector, like: Sequence[Tensor]) -> list[Tensor]:
    pieces = flat.split([t.numel() for t in like])
    return [piece.view(t.shape) for piece, t in zip(pieces, like, strict=True)]


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
