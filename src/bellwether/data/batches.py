"""CIFAR's batches, as Krizhevsky published them: pickled for Python, or binary.

An image is 1,024 red values row by row, then the green, then the blue ones. A pickled batch is a
dictionary of `data` and a list of labels. A binary record is the labels, then the image.
"""

import pickle
from pathlib import Path
from typing import Any

import numpy as np

from bellwether.core.errors import InputError
from bellwether.data.catalogue import Batches, Entry
from bellwether.data.files import Shards
from bellwether.data.part import Part, Pixels, checked, joined

_ARRAYS = {
    ("numpy", "dtype"),
    ("numpy", "ndarray"),
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy.core.numeric", "_frombuffer"),
    ("numpy._core.numeric", "_frombuffer"),
    ("_codecs", "encode"),  # how Python 3 writes bytes for Python 2
}
"""All that the pickle of an array may name."""


def read_part(shards: Shards, entry: Entry) -> Part:
    """The images and labels of all batches."""
    assert entry.batches is not None
    return joined([_read(file, entry, entry.batches) for file in shards])


def _read(file: Path, entry: Entry, batches: Batches) -> Part:
    width = int(np.prod(entry.shape))
    binary = file.suffix == ".bin"
    rows, labels = (_binary if binary else _pickled)(file, width, batches)
    images = rows.reshape(-1, *entry.shape).transpose(0, 2, 3, 1)
    return checked(images, labels, entry, file)


def _binary(file: Path, width: int, batches: Batches) -> tuple[Pixels, Any]:
    record = batches.labels + width
    try:
        content = np.fromfile(file, np.uint8)
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror}") from error
    if len(content) % record or not len(content):
        raise InputError(
            f"{file} has {len(content)} bytes, no multiple of the {record} of an image with its "
            "label; copy or download it again"
        )
    records = content.reshape(-1, record)
    return records[:, batches.labels :], records[:, batches.position]


class _Unpickler(pickle.Unpickler):
    """Makes arrays and plain values; nothing else that a pickle asks for is even looked up."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in _ARRAYS:
            return super().find_class(module, name)
        raise InputError(
            f"asks to run {module}.{name}, which no batch of CIFAR does: do not unpickle it; "
            "download it again"
        )


def _pickled(file: Path, width: int, batches: Batches) -> tuple[Pixels, Any]:
    try:
        with file.open("rb") as content:
            batch = _Unpickler(content, encoding="bytes").load()
    except InputError as error:
        raise InputError(f"{file} {error}") from None
    except Exception as error:  # damaged pickles raise nearly anything
        raise InputError(
            f"{file} cannot be read as a pickled batch ({type(error).__name__}); "
            "copy or download it again"
        ) from error
    held = batch if isinstance(batch, dict) else {}
    rows = held.get("data", held.get(b"data"))
    labels = held.get(batches.key, held.get(batches.key.encode()))
    if not isinstance(rows, np.ndarray) or labels is None:
        raise InputError(f"{file} is no batch of CIFAR: it has no data, or no {batches.key}")
    if rows.dtype != np.uint8 or rows.ndim != 2 or rows.shape[1] != width:
        raise InputError(
            f"the data of {file} are {rows.dtype} {list(rows.shape)}, expected uint8 [n, {width}]"
        )
    try:
        numbers = np.array(labels, dtype=np.int64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"the {batches.key} of {file} are not whole numbers") from error
    return rows, numbers.reshape(-1)
