"""Which files of a data set a folder holds."""

import os
from pathlib import Path

from bellwether.core.errors import InputError
from bellwether.data.catalogue import Entry

Pair = tuple[Path, Path]
"""IDX files of images and of their labels."""

Shards = tuple[Path, ...]
"""Files that make up one part together, in their order."""


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
    train, test, validation = (
        tuple(sorted(folder.glob(f"*{part}*.parquet"))) for part in ("train", "test", "val")
    )
    test = test or validation  # some data sets keep the labels of their test part to themselves
    if not train and not test:
        return None
    if not train or not test:
        raise InputError(
            f"{folder} is incomplete: add its *{'test' if train else 'train'}*.parquet"
        )
    return train, test


def batch_files(folder: Path, entry: Entry) -> tuple[Shards, Shards] | None:
    """The pickled or the binary batches in this folder; None when it holds neither."""
    if entry.batches is None:
        return None
    wanted = entry.batches.train + entry.batches.test
    for end in ("", ".bin"):
        files = [folder / (name + end) for name in wanted]
        missing = [file.name for file in files if not os.path.isfile(file)]
        if not missing:
            count = len(entry.batches.train)
            return tuple(files[:count]), tuple(files[count:])
        if len(missing) < len(files):
            raise InputError(f"{folder} is incomplete: add {' and '.join(missing)}")
    return None


def plane_files(folder: Path, entry: Entry) -> tuple[Pair, Pair] | None:
    """STL-10's binary files in this folder; None when it holds none of them."""
    files = [folder / f"{start}_{kind}.bin" for start in entry.planes for kind in "Xy"]
    missing = [file.name for file in files if not os.path.isfile(file)]
    if len(missing) == len(files):
        return None
    if missing:
        raise InputError(f"{folder} is incomplete: add {' and '.join(missing)}")
    return (files[0], files[1]), (files[2], files[3])


def synset_folders(folder: Path, entry: Entry) -> tuple[Path, Path] | None:
    """Tiny ImageNet's folders in this one; None when there is none for training."""
    train, test = folder / "train", folder / "val"
    if not entry.synsets or not os.path.isdir(train):
        return None
    if not os.path.isdir(test):
        raise InputError(f"{folder} is incomplete: add its folder val")
    return train, test


def _file(folder: Path, name: str) -> Path | None:
    """The file of this name; some collections write a dot for the hyphen before "idx"."""
    stems = (name, name.replace("-idx", ".idx"))
    files = (folder / (stem + end) for stem in stems for end in ("", ".gz"))
    return next((file for file in files if os.path.isfile(file)), None)
