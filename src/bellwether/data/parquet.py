"""Parquet files of encoded images, the layout of the Hugging Face hub.

An image is a struct of bytes and path, or the bytes alone; a label is a whole number. The only
module that imports pyarrow and Pillow, so it is imported where such files are read.
"""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
from PIL import Image
from pyarrow import parquet

from bellwether.core.errors import InputError
from bellwether.data.catalogue import Entry
from bellwether.data.files import Shards
from bellwether.data.part import Part, checked

IMAGE_COLUMNS = ("img", "image")
LABEL_COLUMNS = ("label", "fine_label", "labels")
_ROWS = 1000
_FORMATS = ("PNG", "JPEG")  # Pillow knows formats that start other programs; data need none


def read_part(shards: Shards, entry: Entry) -> Part:
    """The images and labels of all files."""
    parts = [_read(file, entry) for file in shards]
    if len(parts) == 1:
        return parts[0]
    return Part(
        np.concatenate([part.images for part in parts]),
        np.concatenate([part.labels for part in parts]),
    )


def _read(file: Path, entry: Entry) -> Part:
    channels, height, width = entry.shape
    pixels, labels = bytearray(), []
    for row, (image, label) in enumerate(_rows(file)):
        pixels += _decoded(image, entry, f"{file}, row {row}")
        if not isinstance(label, int):
            raise InputError(f"{file}, row {row}: the label must be a whole number, got {label!r}")
        labels.append(label)
    images = np.frombuffer(pixels, np.uint8).reshape(-1, height, width, channels)
    return checked(images, np.array(labels), entry, file)


def _rows(file: Path) -> Iterator[tuple[Any, Any]]:
    try:
        with parquet.ParquetFile(file) as table:
            present = table.schema_arrow.names
            image = _column(file, present, IMAGE_COLUMNS)
            label = _column(file, present, LABEL_COLUMNS)
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
    channels, height, width = entry.shape
    try:
        picture = Image.open(io.BytesIO(encoded), formats=_FORMATS)
        if picture.size == (width, height):
            return picture.convert("L" if channels == 1 else "RGB").tobytes()
    except Exception as error:  # decoders of damaged images raise nearly anything
        raise InputError(f"{where}: not a readable PNG or JPEG image") from error
    found = f"{picture.size[1]}x{picture.size[0]}"
    raise InputError(f"{where}: the image is {found}, expected {height}x{width}")
