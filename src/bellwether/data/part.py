"""The training or test part of a data set as it is stored, checked once after reading."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bellwether.core.dataset import Samples
from bellwether.core.errors import InputError
from bellwether.data.catalogue import Entry

Pixels = NDArray[np.uint8]


class Part(NamedTuple):
    """Images [count, height, width, channels] and their labels."""

    images: Pixels
    labels: NDArray[np.int64]


def checked(images: Pixels, labels: NDArray[np.integer], entry: Entry, file: Path) -> Part:
    """A part whose labels came from this file; `InputError` when it cannot be of this entry."""
    channels, height, width = entry.shape
    if images.shape[1:] != (height, width, channels):
        found = "x".join(map(str, images.shape[1:3]))
        raise InputError(f"the images of {file} are {found}, expected {height}x{width}")
    if len(images) != len(labels):
        raise InputError(
            f"{file} has {len(labels)} labels but its images are {len(images)}; "
            "the two must come from the same release"
        )
    wrong = np.flatnonzero((labels < 0) | (labels >= len(entry.classes)))
    if len(wrong):
        raise InputError(
            f"{file} has label {labels[wrong[0]]} at position {wrong[0]}; "
            f"labels must be 0 to {len(entry.classes) - 1}"
        )
    return Part(images, labels.astype(np.int64))


def joined(parts: Sequence[Part]) -> Part:
    """All parts, one after the other."""
    if len(parts) == 1:
        return parts[0]
    images, labels = zip(*parts, strict=True)
    return Part(np.concatenate(images), np.concatenate(labels))


def first_classes(part: Part, classes: int) -> Part:
    """The samples whose labels are 0 .. classes-1."""
    kept = part.labels < classes
    return Part(part.images[kept], part.labels[kept])


def normalised(part: Part, entry: Entry) -> Samples:
    """Samples whose inputs are (pixel / white - mean) / deviation, channels first."""
    return Samples(_inputs(part.images, entry), torch.from_numpy(part.labels))


def _inputs(images: Pixels, entry: Entry) -> Tensor:
    """In float32, without a wider copy."""
    inputs = torch.empty((len(images), *entry.shape), dtype=torch.float32)
    for channel, (mean, deviation) in enumerate(zip(entry.mean, entry.deviation, strict=True)):
        plane = inputs.numpy()[:, channel]
        scale = np.float32(1 / (entry.white * deviation))
        np.multiply(images[..., channel], scale, out=plane, dtype=np.float32)
        plane -= np.float32(mean / deviation)
    return inputs
