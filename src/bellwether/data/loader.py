"""`load`: a data set by its name, as normalised tensors."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from bellwether.core.dataset import Dataset
from bellwether.core.errors import InputError
from bellwether.data import (
    batches,
    cursive,
    digits,
    files,
    fonts,
    idx,
    places,
    stl10,
    tiny_imagenet,
)
from bellwether.data.arrays import from_npy, from_npz
from bellwether.data.cache import cached
from bellwether.data.catalogue import CATALOGUE, Entry, entry_of
from bellwether.data.image_folder import from_image_folder
from bellwether.data.part import Part, first_classes, normalised


class Found(NamedTuple):
    """A data set as it is stored, where it was found, and what its classes are called."""

    train: Part
    test: Part | None
    source: str
    classes: tuple[str, ...]


def load(
    name: str, root: str | os.PathLike[str] | None = None, *, classes: int | None = None
) -> Dataset:
    """The data set of this name: float32 inputs [count, channels, height, width], int64 labels.

    Looks for files in `root`, then in the folder that the environment variable BELLWETHER_DATA
    names, in the user's cache folder and where a system package puts them. Pixels are scaled to
    0..1, then (pixel - mean) / deviation with the constants of each channel in the catalogue.
    For "cursive", `root` is a font file, or a folder of fonts to look in first.

    A name that is the path of a folder of images, a folder of .npy files or an .npz archive opens
    it: see `from_image_folder`, `from_npy` and `from_npz`.

    classes: keep only the samples of the first so many classes (FSL: 45 of EMNIST Balanced's 47).
    """
    path = Path(os.path.expanduser(name))
    if name not in CATALOGUE and path.exists():
        if classes is not None:
            raise InputError(f"classes are for data sets known by name; leave them out for {path}")
        return _opened(path)
    entry = entry_of(name)
    train, test, source, names = _parts(name, entry, root)
    if classes is not None:
        if isinstance(classes, bool) or not 1 <= classes <= len(names):
            raise InputError(f"classes must be 1 to the {len(names)} of {name}, not {classes}")
        train, test = first_classes(train, classes), test and first_classes(test, classes)
    return Dataset(
        name,
        normalised(train, entry),
        test and normalised(test, entry),
        names[:classes],
        source,
    )


def _opened(path: Path) -> Dataset:
    if not path.is_dir():
        return from_npz(path)
    return from_npy(path) if any(path.glob("*.npy")) else from_image_folder(path)


def _parts(name: str, entry: Entry, root: str | os.PathLike[str] | None) -> Found:
    if name == "digits":
        return Found(*digits.read(), digits.SOURCE, entry.classes)
    if name == "cursive":
        font = fonts.find(root)
        return Found(cursive.rendered(font, entry), None, str(font), entry.classes)
    if entry.made_of:
        found = _found(entry.made_of, CATALOGUE[entry.made_of], root)
        train, test = stl10.relabelled(found.train, entry), found.test
        return Found(train, test and stl10.relabelled(test, entry), found.source, entry.classes)
    return _found(name, entry, root)


def _parquet(shards: files.Shards, entry: Entry) -> Part:
    def decode() -> Part:
        try:
            from bellwether.data import parquet
        except ImportError as error:
            raise InputError(
                f"reading {shards[0]} needs pyarrow; run: pip install 'bellwether-fl[parquet]'"
            ) from error
        return parquet.read_part(shards, entry)

    return cached(shards, (entry.shape, len(entry.classes), entry.label_columns), decode)


_FORMATS: tuple[tuple[Callable[[Path, Entry], Any], Callable[[Any, Entry], Part]], ...] = (
    (files.idx_files, idx.read_part),
    (files.parquet_files, _parquet),
    (files.batch_files, batches.read_part),
    (files.plane_files, stl10.read_part),
    (files.synset_folders, tiny_imagenet.read_part),
)
"""How to see what a folder holds, and how to read it."""


class Held(NamedTuple):
    """The files of a data set in a folder, and how to read its training and its test part."""

    folder: Path
    parts: tuple[Any, Any]
    read: Callable[[Any, Entry], Part]


def find(name: str, root: str | os.PathLike[str] | None = None) -> str | None:
    """Where `load` would find the data set, without reading it; None where nothing is found."""
    entry = entry_of(name)
    if name == "digits":
        return digits.SOURCE
    if name == "cursive":
        return str(fonts.find(root))
    entry = CATALOGUE[entry.made_of] if entry.made_of else entry
    held = _held(entry, places.places(entry, root))
    return str(held.folder) if held else None


def _held(entry: Entry, looked: tuple[Path, ...]) -> Held | None:
    for place in looked:
        for folder in places.candidates(entry, place):
            for parts_in, read in _FORMATS:
                if (parts := parts_in(folder, entry)) is not None:
                    return Held(folder, parts, read)
    return None


def _found(name: str, entry: Entry, root: str | os.PathLike[str] | None) -> Found:
    looked = places.places(entry, root)
    held = _held(entry, looked)
    if held is None:
        raise places.not_found(name, entry, looked)
    train, test = (held.read(part, entry) for part in held.parts)
    if len(train.labels) == entry.transposed_release:
        train, test = _transposed(train), _transposed(test)
    return Found(train, test, str(held.folder), _class_names(held.folder, entry))


def _class_names(folder: Path, entry: Entry) -> tuple[str, ...]:
    return tiny_imagenet.class_names(folder, entry) if entry.synsets else entry.classes


def _transposed(part: Part) -> Part:
    return part._replace(images=part.images.transpose(0, 2, 1, 3))
