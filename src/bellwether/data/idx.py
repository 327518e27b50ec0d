"""IDX files, the format of MNIST and its relatives, compressed with gzip or not.

Two zero bytes, the type of the values (8: unsigned bytes), the number of dimensions, each
dimension as a big-endian 32-bit number, then the values (LeCun, Cortes and Burges).
"""

import gzip
import math
import zlib
from pathlib import Path

import numpy as np

from bellwether.core.errors import InputError
from bellwether.data.catalogue import Entry
from bellwether.data.files import Pair
from bellwether.data.part import Part, Pixels, checked

_UNSIGNED_BYTES = 8
_AGAIN = "copy or download it again"


def read_part(pair: Pair, entry: Entry) -> Part:
    """The images and labels of two files."""
    images, labels = read(pair[0], dimensions=3), read(pair[1], dimensions=1)
    return checked(images[..., np.newaxis], labels, entry, pair[1])


def read(file: Path, dimensions: int) -> Pixels:
    """The array of bytes in an IDX file that must have so many dimensions."""
    content = _content(file)
    start = 4 + 4 * dimensions
    if len(content) < 4 or content[:2] != b"\0\0":
        raise InputError(f"{file} is not an IDX file; its first two bytes must be zero")
    if content[2] != _UNSIGNED_BYTES:
        raise InputError(f"{file} holds values of type {content[2]}, expected unsigned bytes (8)")
    if content[3] != dimensions:
        raise InputError(f"{file} has {content[3]} dimensions, expected {dimensions}")
    if len(content) < start:
        raise InputError(f"{file} ends inside its header; {_AGAIN}")
    shape = np.frombuffer(content, ">u4", dimensions, offset=4).tolist()
    held, promised = len(content) - start, math.prod(shape)
    if held != promised:
        raise InputError(f"{file} holds {held} values but its header says {promised}; {_AGAIN}")
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)


def _content(file: Path) -> bytes:
    try:
        content = file.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror}") from error
    if not content.startswith(b"\x1f\x8b"):  # the name does not tell: some tools unpack silently
        return content
    try:
        return gzip.decompress(content)
    except EOFError as error:
        raise InputError(f"{file} is cut short (truncated gzip); {_AGAIN}") from error
    except (OSError, zlib.error) as error:
        raise InputError(f"{file} is damaged (corrupt gzip: {error}); {_AGAIN}") from error
