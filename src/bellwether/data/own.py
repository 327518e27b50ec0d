"""A user's own samples; what images are normalised by is found in the images themselves."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bellwether.core.dataset import Dataset, samples
from bellwether.data.catalogue import Entry
from bellwether.data.part import Part, Pixels, checked, normalised

_CHUNK = 1000


def of_images(name: str, parts: Sequence[Part], classes: Sequence[str], source: Path) -> Dataset:
    """Training and, where there is a second part, test images as a normalised data set.

    (pixel / 255 - mean) / deviation with the training images' own mean and deviation of each
    channel; a channel that is the same everywhere becomes 0.
    """
    height, width, channels = parts[0].images.shape[1:]
    counts = [_histogram(parts[0].images[..., channel]) for channel in range(channels)]
    moments = [_moments(each) for each in counts]
    entry = Entry(
        description=name,
        classes=tuple(classes),
        shape=(channels, height, width),
        mean=tuple(mean for mean, _ in moments),
        deviation=tuple(deviation or 1.0 for _, deviation in moments),
    )
    sound = [checked(part.images, part.labels, entry, source) for part in parts]
    return of_pairs(name, [normalised(part, entry) for part in sound], classes, source)


def of_pairs(
    name: str, pairs: Sequence[tuple[Any, Any]], classes: Sequence[str], source: Path
) -> Dataset:
    """Training and, where there is a second pair, test samples as they are."""
    owners = (f"{name} (train)", f"{name} (test)")
    held = [samples(x, y, owner) for (x, y), owner in zip(pairs, owners, strict=False)]
    return Dataset(name, held[0], held[1] if held[1:] else None, tuple(classes), str(source))


def _histogram(plane: Pixels) -> NDArray[np.int64]:
    counts = np.zeros(256, dtype=np.int64)
    for first in range(0, len(plane), _CHUNK):  # in pieces, since counting widens them
        counts += np.bincount(plane[first : first + _CHUNK].ravel(), minlength=256)
    return counts


def _moments(counts: NDArray[np.int64]) -> tuple[float, float]:
    values = np.arange(256) / 255
    mean = float(counts @ values / counts.sum())
    return mean, float(np.sqrt(counts @ (values - mean) ** 2 / counts.sum()))
