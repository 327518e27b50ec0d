"""Arrays in NumPy's files: .npz archives, and .npy files that stay on disk."""

import os
import zipfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bellwether.core.dataset import Dataset
from bellwether.core.errors import InputError
from bellwether.data.own import of_images, of_pairs
from bellwether.data.part import Part

_NAMES = (
    ("x_train", "y_train", "x_test", "y_test"),  # Keras
    ("train_images", "train_labels", "test_images", "test_labels"),  # MedMNIST
)


def from_npz(path: str | os.PathLike[str]) -> Dataset:
    """The arrays x_train, y_train and, if there, x_test, y_test of an archive, as Keras's.

    Or train_images, train_labels, test_images, test_labels, as MedMNIST's; its validation part is
    left out. Bytes of shape [count, height, width] or [.., channels] are images, which are
    normalised by the training images' own mean and deviation of each channel. All else is taken
    as it is. Archives cannot stay on disk: see `from_npy` for arrays larger than memory.
    """
    file = Path(os.path.abspath(os.path.expanduser(path)))
    try:
        with file.open("rb") as content:
            archive = np.load(content, allow_pickle=False)
            if not isinstance(archive, Mapping):
                raise InputError(f"{file} is one array, no archive; see from_npy")
            names = _names(archive, file)
            held = [(archive[x], archive[y]) for x, y in names]
    except InputError:
        raise
    except FileNotFoundError as error:
        raise InputError(f"there is no file {file}") from error
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(f"{file} cannot be read as an .npz archive: {error}") from error
    labels = [
        _labels(y, f"{name} of {file}") for (_, name), (_, y) in zip(names, held, strict=True)
    ]
    images = [x for x, _ in held]
    classes = _classes(labels[0])
    if not classes or not all(x.dtype == np.uint8 and x.ndim in (3, 4) for x in images):
        pairs = [(_floats(x), y) for x, y in zip(images, labels, strict=True)]
        return of_pairs(file.stem, pairs, classes, file)
    parts = [
        Part(x if x.ndim == 4 else x[..., np.newaxis], y)
        for x, y in zip(images, labels, strict=True)
    ]
    return of_images(file.stem, parts, classes, file)


def from_npy(folder: str | os.PathLike[str]) -> Dataset:
    """x_train.npy, y_train.npy and, if there, x_test.npy, y_test.npy, inputs larger than memory.

    The inputs stay on disk, and what a client holds is read when it comes, so they must be stored
    as the model takes them: [count, channels, height, width], in float32, or in bytes, which
    become 0 .. 1 where they are computed with. `numpy.lib.format.open_memmap` writes such files.
    The names train_images.npy and so on are understood as well.
    """
    home = Path(os.path.abspath(os.path.expanduser(folder)))
    files = {file.stem: file for file in sorted(home.glob("*.npy"))}
    pairs = []
    for x_name, y_name in _names(files, home):
        x, y = _mapped(files[x_name]), _mapped(files[y_name])
        if x.dtype not in (np.float32, np.uint8) or not x.flags.c_contiguous:
            raise InputError(
                f"{files[x_name]} must hold float32 or bytes in C order, not {x.dtype}"
                f"{'' if x.flags.c_contiguous else ' in Fortran order'}; save it again"
            )
        if x.dtype == np.uint8 and x.ndim == 4 and x.shape[-1] in (1, 3) < x.shape[1:2]:
            raise InputError(f"{files[x_name]}: save the channels first, as the model takes them")
        pairs.append((x, _labels(np.array(y), str(files[y_name]))))
    return of_pairs(home.name, pairs, _classes(pairs[0][1]), home)


def _names(held: Collection[str], where: Path) -> list[tuple[str, str]]:
    """The names of inputs and targets, for training and, if they are there, for the test."""
    for x_train, y_train, x_test, y_test in _NAMES:
        if x_train in held and y_train in held:
            tested = x_test in held and y_test in held
            return [(x_train, y_train)] + ([(x_test, y_test)] if tested else [])
    raise InputError(
        f"{where} holds {', '.join(held) or 'no arrays'}; expected x_train and y_train, "
        "or train_images and train_labels"
    )


def _mapped(file: Path) -> np.ndarray:
    try:
        array: np.ndarray = np.load(file, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise InputError(f"{file} cannot be read as an .npy array: {error}") from error
    return array


def _labels(targets: np.ndarray, where: str) -> np.ndarray:
    """Targets without an axis of length 1; whole numbers are labels and count from 0."""
    if targets.ndim == 2 and targets.shape[1] == 1:
        targets = targets[:, 0]
    if targets.dtype.kind in "bui":
        if targets.ndim != 1:
            raise InputError(f"{where}: expected one label a sample, not {list(targets.shape)}")
        if len(targets) and targets.min() < 0:
            raise InputError(f"{where}: label {targets.min()}; labels count from 0")
        return targets.astype(np.int64)
    return targets


def _classes(targets: np.ndarray) -> tuple[str, ...]:
    """Labels' names, 0 .. the largest; none for values to regress."""
    labelled = targets.dtype.kind == "i" and len(targets) > 0
    return tuple(map(str, range(int(targets.max()) + 1))) if labelled else ()


def _floats(inputs: np.ndarray) -> Any:
    return inputs.astype(np.float32) if inputs.dtype.kind in "bui" else inputs
