"""Samples as tensors, checked once at the boundary."""

import warnings
from collections.abc import Callable, Sequence
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


class Gathered(NamedTuple):
    """The samples of many in one place, and where there a participant's are."""

    samples: Samples
    rows: Callable[[int], NDArray[np.int64]]


def samples(inputs: Any, targets: Any, owner: str) -> Samples:
    """Arrays or tensors as `Samples`; `owner` names them in errors ("client 3", "the server").

    Memory-mapped arrays, as of `numpy.load(file, mmap_mode="r")`, stay on disk. Inputs of bytes
    are pixels, which become 0 .. 1 where they are computed with.
    """
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
    if not array.flags.writeable and (mapped := _mapped(array)) is not None:
        return mapped
    if not array.flags.writeable or not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="), copy=True)
    return torch.from_numpy(np.require(array, requirements="C"))


def _mapped(array: NDArray[Any]) -> Tensor | None:
    """A read-only, memory-mapped array as a tensor that stays on disk; None for any other.

    It is mapped anew for copy-on-write, since torch wants to be able to write. A system that
    would have to promise memory for that refuses it for files larger than memory; those stay
    read-only.
    """
    root = array
    while isinstance(root.base, np.ndarray):
        root = root.base
    whole = array.flags.c_contiguous and array.dtype.isnative and array.size
    if not isinstance(root, np.memmap) or root.filename is None or not whole:
        return None
    offset = root.offset + array.ctypes.data - root.ctypes.data
    try:
        return torch.from_numpy(np.memmap(root.filename, array.dtype, "c", offset, array.shape))
    except OSError:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The given NumPy array is not writable")
            return torch.from_numpy(array)


def _aligned(tensor: Tensor) -> Tensor:
    tensor = tensor.contiguous()
    return tensor if tensor.data_ptr() % ALIGNMENT == 0 else tensor.clone()
