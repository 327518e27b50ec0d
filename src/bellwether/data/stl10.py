"""STL-10's binary files (Coates, Lee and Ng 2011), and its images under CIFAR-10's labels.

An image is its red values column by column, then the green, then the blue ones; labels begin at 1.
"""

from pathlib import Path

import numpy as np

from bellwether.core.errors import InputError
from bellwether.data.catalogue import Entry
from bellwether.data.files import Pair
from bellwether.data.part import Part, Pixels, checked


def read_part(pair: Pair, entry: Entry) -> Part:
    """The images and labels of two files."""
    channels, height, width = entry.shape
    values, labels = (_bytes(file) for file in pair)
    size = channels * height * width
    if len(values) % size:
        raise InputError(
            f"{pair[0]} has {len(values)} bytes, no multiple of the {size} of an image; "
            "copy or download it again"
        )
    if not labels.all():
        raise InputError(f"{pair[1]} has label 0; STL-10's labels are 1 to {len(entry.classes)}")
    images = values.reshape(-1, channels, width, height).transpose(0, 3, 2, 1)
    return checked(images, labels.astype(np.int64) - 1, entry, pair[1])


def relabelled(part: Part, entry: Entry) -> Part:
    """The samples whose class this entry knows, under its labels and in its size."""
    known = np.array([-1 if label is None else label for label in entry.relabelled])
    labels = known[part.labels]
    kept = labels >= 0
    return Part(_shrunk(part.images[kept], entry.shape[1]), labels[kept])


def _shrunk(images: Pixels, size: int) -> Pixels:
    """Square images whose pixels are the rounded means of the squares that they stand for."""
    count, height, _, channels = images.shape
    side = height // size
    squares = images.reshape(count, size, side, size, side, channels)
    sums = squares.sum(axis=(2, 4), dtype=np.uint16)
    means: Pixels = ((sums + side * side // 2) // (side * side)).astype(np.uint8)
    return means


def _bytes(file: Path) -> Pixels:
    try:
        return np.fromfile(file, np.uint8)
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror}") from error
