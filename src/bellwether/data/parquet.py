"""Parquet files of encoded images, the layout of the Hugging Face hub.

An image is a struct of bytes and path, or the bytes alone; a label is a whole number. The only
module that imports pyarrow, so it is imported where such files are read.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
from pyarrow import parquet

from bellwether.core.errors import InputError
from bellwether.data.catalogue import Entry
from bellwether.data.files import Shards
from bellwether.data.part import Part, checked, joined
from bellwether.data.pictures import decoded

IMAGE_COLUMNS = ("img", "image")
_ROWS = 1000


def read_part(shards: Shards, entry: Entry) -> Part:
    """The images and labels of all files."""
    return joined([_read(file, entry) for file in shards])


def _read(file: Path, entry: Entry) -> Part:
    channels, height, width = entry.shape
    pixels, labels = bytearray(), []
    for row, (image, label) in enumerate(_rows(file, entry)):
        pixels += _decoded(image, entry, f"{file}, row {row}")
        if not isinstance(label, int):
            raise InputError(f"{file}, row {row}: the label must be a whole number, got {label!r}")
        labels.append(label)
    images = np.frombuffer(pixels, np.uint8).reshape(-1, height, width, channels)
    return checked(images, np.array(labels), entry, file)


def _rows(file: Path, entry: Entry) -> Iterator[tuple[Any, Any]]:
    try:
        with parquet.ParquetFile(file) as table:
            present = table.schema_arrow.names
            image = _column(file, present, IMAGE_COLUMNS)
            label = _column(file, present, entry.label_columns)
            for batch in table.iter_batches(batch_size=_ROWS, columns=[image, label]):
                yield from zip(
                    batch.column(image).to_pylist(), batch.column(label).to_pylist(), strict=True
                )
    except (OSError, pyarrow.ArrowException) as error:
        reason = str(error).partition("\n")[0]
        raise InputError(f"{file} cannot be read as Parquet: {reason}") from error


def _column(file: Path, present: list[str], known: tuple[str, ...]) -> str:
    for name in known:
        if name in present:
            return name
    raise InputError(
        f"{file} has the columns {', '.join(present)}; one must be named {' or '.join(known)}"
    )


def _decoded(image: Any, entry: Entry, where: str) -> bytes:
    encoded = image.get("bytes") if isinstance(image, dict) else image
    if not isinstance(encoded, bytes):
        raise InputError(f"{where}: no bytes of an image; the file must embed its images")
    return decoded(encoded, entry.shape, where)
