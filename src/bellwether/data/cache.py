"""Decoded images kept on disk, since decoding 60,000 of them takes seconds."""

import contextlib
import hashlib
import io
from collections.abc import Callable
from pathlib import Path

import numpy as np

from bellwether.core.errors import InputError
from bellwether.core.files import write_atomically
from bellwether.data.part import Part
from bellwether.data.places import user_cache

_LAYOUT = 1  # to be raised when the meaning of the stored arrays changes


def cached(sources: tuple[Path, ...], settings: object, decode: Callable[[], Part]) -> Part:
    """What `decode` makes of these files, from disk where it was made before.

    The name carries a digest of the files' content and of the settings, so it can't be stale.
    """
    file = _file(sources, settings)
    part = _load(file) if file else None
    if part is None:
        part = decode()
        if file:
            _store(file, part)
    return part


def _file(sources: tuple[Path, ...], settings: object) -> Path | None:
    folder = user_cache()
    if folder is None:
        return None
    name = hashlib.blake2b(repr((_LAYOUT, settings)).encode(), digest_size=16)
    try:
        for source in sources:
            with source.open("rb") as content:
                name.update(hashlib.file_digest(content, "blake2b").digest())
    except OSError:
        return None  # the decoder will say it better
    return folder / "decoded" / f"{name.hexdigest()}.npz"


def _load(file: Path) -> Part | None:
    try:
        # Opened here, since NumPy leaves its own file open when this is no archive; the archive's
        # checksums find damage inside.
        with file.open("rb") as content, np.load(content, allow_pickle=False) as arrays:
            return Part(arrays["images"], arrays["labels"])
    except Exception:  # whatever is wrong with it, the files themselves are there
        return None


def _store(file: Path, part: Part) -> None:
    content = io.BytesIO()
    np.savez(content, images=part.images, labels=part.labels)
    # A folder that can't be written to, or a full disk, only costs time.
    with contextlib.suppress(InputError):
        write_atomically(file, content.getvalue())
