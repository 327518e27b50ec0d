"""The training or test part of a data set as it is stored, checked once after reading."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

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
