"""A folder of images, sorted into a folder for each class."""

import os
from pathlib import Path

import numpy as np

from bellwether.core.dataset import Dataset
from bellwether.core.errors import InputError
from bellwether.data.own import of_images
from bellwether.data.part import Part
from bellwether.data.pictures import ENDINGS, Shape, Size, read_files, shape_of

_TRAIN = ("train", "training")
_TEST = ("test", "val", "valid", "validation", "testing")


def from_image_folder(path: str | os.PathLike[str], size: Size | None = None) -> Dataset:
    """PNG and JPEG images in <class>/, or in train/<class>/ and test/<class>/ (or val/<class>/).

    Classes are the folders' names in ascending order. Images are gray if all of them are. They
    must have one size, or are brought to `size` (height, width). The inputs are normalised by the
    training images' own mean and deviation of each channel.
    """
    folder = Path(os.path.abspath(os.path.expanduser(path)))
    if not folder.is_dir():
        raise InputError(f"{folder} is no folder of images")
    if size is not None and (len(size) != 2 or min(size) < 1):
        raise InputError(f"size must be (height, width) in pixels, not {size}")
    train, test = (_first(folder, names) for names in (_TRAIN, _TEST))
    homes = [train or folder] + ([test] if train and test else [])
    classes = _classes(homes[0])
    found = [_files(home, classes) for home in homes]
    shape = shape_of([file for files in found for file in files])
    if size is not None:
        shape = (shape[0], *size)
    parts = [_part(files, shape, size) for files in found]
    return of_images(folder.name, parts, classes, folder)


def _part(files: dict[Path, int], shape: Shape, size: Size | None) -> Part:
    return Part(read_files(tuple(files), shape, size), np.array(list(files.values())))


def _first(folder: Path, names: tuple[str, ...]) -> Path | None:
    """The first of these that is no class itself: a class may be called "train"."""
    known = (folder / name for name in names if (folder / name).is_dir())
    return next((part for part in known if not _images(part)), None)


def _classes(home: Path) -> list[str]:
    classes = sorted(each.name for each in home.iterdir() if each.is_dir() and _images(each))
    if not classes:
        raise InputError(
            f"{home} holds no images; they are expected as <class>/<name>.png or .jpg, "
            "also below train/ and test/"
        )
    return classes


def _files(home: Path, classes: list[str]) -> dict[Path, int]:
    """Every image with its label."""
    strange = [each for each in _classes(home) if each not in classes]
    if strange:
        raise InputError(
            f"{home} has the class {strange[0]!r}, of which there is no training image"
        )
    labels = {name: label for label, name in enumerate(classes)}
    return {file: labels[name] for name in _classes(home) for file in _images(home / name)}


def _images(folder: Path) -> list[Path]:
    return sorted(file for file in folder.iterdir() if file.suffix.lower() in ENDINGS)
