"""Encoded pictures as pixels, one by one or file by file."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from bellwether.core.errors import InputError
from bellwether.data.part import Pixels

Shape = tuple[int, int, int]
"""Channels, height, width."""
Size = tuple[int, int]
"""Height, width."""

FORMATS = ("PNG", "JPEG")  # Pillow knows formats that start other programs; data need none
ENDINGS = (".png", ".jpg", ".jpeg")
_MODES = {1: "L", 3: "RGB"}
_GRAY = ("1", "L", "LA")


def decoded(encoded: bytes, shape: Shape, where: str) -> bytes:
    """The pixels of a PNG or JPEG image of this size, row by row; `where` names it in errors."""
    channels, height, width = shape
    with _opened(encoded, where) as picture:
        if picture.size == (width, height):
            return _converted(picture, channels, where).tobytes()
        found = f"{picture.size[1]}x{picture.size[0]}"
    raise InputError(f"{where}: the image is {found}, expected {height}x{width}")


def read_files(files: Sequence[Path], shape: Shape, size: Size | None = None) -> Pixels:
    """The images of these files, all of one shape, or brought to this size."""
    channels, height, width = shape
    pixels = np.empty((len(files), height, width, channels), dtype=np.uint8)
    for image, file in zip(pixels, files, strict=True):
        encoded = _content(file)
        if size is None:
            flat = decoded(encoded, shape, str(file))
        else:
            with _opened(encoded, str(file)) as picture:
                whole = _converted(picture, channels, str(file))
                flat = whole.resize((width, height), Image.Resampling.BILINEAR).tobytes()
        image[...] = np.frombuffer(flat, np.uint8).reshape(height, width, channels)
    return pixels


def shape_of(files: Sequence[Path]) -> Shape:
    """The shape of the first image; three channels where any of them has colours."""
    size, colours = None, False
    for file in files:
        with _opened(_content(file), str(file)) as picture:
            size = size or picture.size
            colours = colours or picture.mode not in _GRAY
    assert size is not None
    return (3 if colours else 1, size[1], size[0])


def array_of(value: Any) -> Pixels | None:
    """A PIL image as pixels [height, width, channels]; None for what is no image."""
    if not isinstance(value, Image.Image):
        return None
    channels = 1 if value.mode in _GRAY else 3
    pixels = np.asarray(value.convert(_MODES[channels]))
    return pixels.reshape(value.height, value.width, channels)


def _opened(encoded: bytes, where: str) -> Image.Image:
    try:
        picture = Image.open(io.BytesIO(encoded), formats=FORMATS)
    except Exception as error:  # decoders of damaged images raise nearly anything
        raise _unreadable(where) from error
    if picture.mode.startswith("I"):  # to 8 bits Pillow would cut the values off, not scale them
        raise InputError(f"{where}: the image has 16 bits a pixel; save it with 8")
    return picture


def _converted(picture: Image.Image, channels: int, where: str) -> Image.Image:
    try:
        return picture.convert(_MODES[channels])
    except Exception as error:
        raise _unreadable(where) from error


def _unreadable(where: str) -> InputError:
    return InputError(f"{where}: not a readable PNG or JPEG image")


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror}") from error
