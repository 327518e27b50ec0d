"""Files that are either the old version or the new one, whatever happens."""

import os
import tempfile
from pathlib import Path

from bellwether.core.errors import InputError


def write_atomically(path: Path, content: bytes | str) -> Path:
    """Write a file so that a reader, or a crash, never meets half of it."""
    data = content.encode() if isinstance(content, str) else content
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".tmp")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(temporary, 0o666 & ~_umask())
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
        _sync(path.parent)
    except OSError as error:
        raise InputError(
            f"cannot write {path}: {error.strerror or error}; choose another folder"
        ) from error
    return path


def make_folder(folder: Path) -> None:
    """Make a folder and those around it, unless they are there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"cannot write {folder}: {error.strerror or error}; choose another folder"
        ) from error


def check_writable(folder: Path) -> None:
    """Raise `InputError` unless files can be made in the folder; make it where it is missing."""
    probe = folder / ".writable"
    write_atomically(probe, "")
    probe.unlink()


def _sync(folder: Path) -> None:
    """Let the folder's list of files, too, survive that the power goes."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
