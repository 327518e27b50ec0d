"""Samples as tensors, checked once at the boundary."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bellwether.core.errors import InputError

ALIGNMENT = 64
"""Data start on 64-byte boundaries: a matrix product's last bits can depend on where they start."""


class Samples(NamedTuple):
    """Inputs and targets of equal length, the first axis counting samples."""

    inputs: Tensor
    targets: Tensor

    @property
    def size(self) -> int:
        """n, the number of samples."""
        return len(self.targets)

    @property
    def labelled(self) -> bool:
        """Whether targets are class labels (whole numbers) rather than values to regress."""
        return not self.targets.is_floating_point()

    @property
    def class_labels(self) -> NDArray[np.int64] | None:
        """One class label a sample; None where the targets are something else."""
        return self.targets.cpu().numpy() if self.labelled and self.targets.ndim == 1 else None

    def take(self, indices: Tensor) -> "Samples":
        """A private, aligned copy of the samples at these indices."""
        return Samples(self.inputs.index_select(0, indices), self.targets.index_select(0, indices))

    def union(self, other: "Samples") -> "Samples":
        """These samples, then those."""
        return Samples(*(torch.cat(both) for both in zip(self, other, strict=True)))


def samples(inputs: Any, targets: Any, owner: str) -> Samples:
    """Arrays or tensors as `Samples`; `owner` names them in errors ("client 3", "the server")."""
    x, y = _tensor(inputs, f"{owner}: inputs"), _tensor(targets, f"{owner}: targets")
    if x.ndim == 0 or y.ndim == 0:
        raise InputError(f"{owner}: inputs and targets need a first axis that counts samples")
    if len(x) != len(y):
        raise InputError(
            f"{owner}: {len(x)} inputs but {len(y)} targets; they must have the same length"
        )
    if len(x) == 0:
        raise InputError(f"{owner} has no samples; leave it out or give it at least one")
    if not y.is_floating_point():
        y = y.to(torch.int64)
    return Samples(_aligned(x), _aligned(y))


@dataclass(frozen=True)
class Dataset:
    """A named data set: training and test samples, class names, and where it was found."""

    name: str
    train: Samples
    test: Samples | None = None
    classes: Sequence[str] = ()
    source: str = "memory"

    def __post_init__(self) -> None:
        object.__setattr__(self, "train", samples(*self.train, f"{self.name} (train)"))
        if self.test is not None:
            object.__setattr__(self, "test", samples(*self.test, f"{self.name} (test)"))


def _tensor(values: Any, what: str) -> Tensor:
    if isinstance(values, Tensor):
        return values.detach()
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise InputError(f"{what} must be an array, every row of one length") from error
    if array.dtype.kind not in "biuf":
        raise InputError(f"{what} must be numbers, got an array of {array.dtype}")
    if not array.flags.writeable or not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="), copy=True)
    return torch.from_numpy(np.require(array, requirements="C"))


def _aligned(tensor: Tensor) -> Tensor:
    tensor = tensor.contiguous()
    return tensor if tensor.data_ptr() % ALIGNMENT == 0 else tensor.clone()
