"""Any torch Dataset of (input, target), read once into memory."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bellwether.core.dataset import Dataset
from bellwether.core.errors import InputError
from bellwether.data.own import of_images, of_pairs
from bellwether.data.part import Part, Pixels
from bellwether.data.pictures import array_of


def from_torch(dataset: Any, test: Any = None, *, name: str | None = None) -> Dataset:
    """Every (input, target) of a torch Dataset, and of another one for the test.

    Its transforms are applied once: a random one draws here and not in every epoch. Tensors and
    arrays are taken as they are, whole numbers as float32. PIL images, which a data set without
    transforms gives, are normalised by the training images' own mean and deviation.
    """
    title = name or type(dataset).__name__.lower()
    given = {f"{title} (train)": dataset} | ({} if test is None else {f"{title} (test)": test})
    parts = [_read(each, owner) for owner, each in given.items()]
    targets = parts[0][1]
    labelled = not targets.is_floating_point() and targets.ndim == 1
    classes = _classes(dataset, int(targets.max()) + 1) if labelled else ()
    pictures = [Part(x, y.numpy()) for x, y in parts if isinstance(x, np.ndarray)]
    if labelled and len(pictures) == len(parts):
        return of_images(title, pictures, classes, Path(title))
    held = [(_floats(inputs), targets) for inputs, targets in parts]
    return of_pairs(title, held, classes, Path(title))


def _read(dataset: Any, owner: str) -> tuple[Tensor | Pixels, Tensor]:
    """Inputs, as an array of pixels where they are images, and targets."""
    inputs: list[Any] = []
    targets = []
    for position, item in enumerate(_items(dataset, owner)):
        if not isinstance(item, tuple | list) or len(item) != 2:
            raise InputError(f"{owner}, item {position}: expected (input, target)")
        picture = array_of(item[0])
        try:
            inputs.append(torch.as_tensor(item[0]) if picture is None else picture)
            targets.append(torch.as_tensor(item[1]))
        except (RuntimeError, TypeError, ValueError) as error:
            kinds = " and ".join(type(each).__name__ for each in item)
            raise InputError(
                f"{owner}, item {position}: expected numbers or an image, got {kinds}"
            ) from error
        if inputs[-1].shape != inputs[0].shape:
            raise InputError(
                f"{owner}, item {position}: the input has the shape {tuple(inputs[-1].shape)}, "
                f"others {tuple(inputs[0].shape)}; give the data set a transform that resizes"
            )
    if not inputs:
        raise InputError(f"{owner} has no samples")
    pictured = isinstance(inputs[0], np.ndarray)
    return np.stack(inputs) if pictured else torch.stack(inputs), torch.stack(targets)


def _items(dataset: Any, owner: str) -> Iterator[Any]:
    """By index where the data set has a length: iterating would miss its end in some."""
    if hasattr(dataset, "__getitem__") and hasattr(dataset, "__len__"):
        return (dataset[index] for index in range(len(dataset)))
    if isinstance(dataset, Iterable):
        return iter(dataset)
    raise InputError(f"{owner}: expected a torch Dataset, got {type(dataset).__name__}")


def _classes(dataset: Any, count: int) -> tuple[str, ...]:
    """What the data set calls its classes, as torchvision's do, or their numbers."""
    names = getattr(dataset, "classes", None)
    if isinstance(names, list | tuple) and len(names) >= count:
        return tuple(map(str, names))
    return tuple(map(str, range(count)))


def _floats(inputs: Tensor | Pixels) -> Tensor:
    values = torch.as_tensor(inputs)
    return values if values.is_floating_point() else values.float()
