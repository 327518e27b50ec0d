"""Which files of a data set a folder holds."""

import os
from pathlib import Path

from bellwether.core.errors import InputError
from bellwether.data.catalogue import Entry

Pair = tuple[Path, Path]
"""IDX files of images and of their labels."""

Shards = tuple[Path, ...]
"""Parquet files, in the order of their names."""


def idx_files(folder: Path, entry: Entry) -> tuple[Pair, Pair] | None:
    """The training and test pairs in this folder; None when it holds no file of them."""
    wanted = [
        f"{start}-{kind}"
        for start in entry.idx
        for kind in ("images-idx3-ubyte", "labels-idx1-ubyte")
    ]
    found = {name: file for name in wanted if (file := _file(folder, name))}
    if not found:
        return None
    if missing := [name for name in wanted if name not in found]:
        raise InputError(f"{folder} is incomplete: add {' and '.join(missing)} (.gz or not)")
    images, labels, test_images, test_labels = found.values()
    return (images, labels), (test_images, test_labels)


def parquet_files(folder: Path, entry: Entry) -> tuple[Shards, Shards] | None:
    """The training and test shards in this folder; None when it holds neither."""
    if not entry.parquet:
        return None
    train, test = (tuple(sorted(folder.glob(f"*{part}*.parquet"))) for part in ("train", "test"))
    if not train and not test:
        return None
    if not train or not test:
        raise InputError(
            f"{folder} is incomplete: add its *{'test' if train else 'train'}*.parquet"
        )
    return train, test


def _file(folder: Path, name: str) -> Path | None:
    """The file of this name; some collections write a dot for the hyphen before "idx"."""
    stems = (name, name.replace("-idx", ".idx"))
    files = (folder / (stem + end) for stem in stems for end in ("", ".gz"))
    return next((file for file in files if os.path.isfile(file)), None)
