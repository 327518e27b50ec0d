"""Where data sets are looked for."""

import os
from collections.abc import Iterator
from pathlib import Path

from bellwether.core.errors import InputError
from bellwether.data.catalogue import Entry

VARIABLE = "BELLWETHER_DATA"
"""The environment variable that names a folder of data sets."""

SUBFOLDERS = ("", "raw", "gzip", "plain_text", "data")
"""In a data set's folder: its files, torchvision's layout, EMNIST's, two of the hub's."""


def user_cache() -> Path | None:
    """The user's cache folder for Bellwether; None for a user without a home."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(base):  # the XDG specification: a relative path is to be ignored
        return Path(base) / "bellwether"
    try:
        return Path.home() / ".cache" / "bellwether"
    except RuntimeError:
        return None


def places(entry: Entry, root: str | os.PathLike[str] | None) -> tuple[Path, ...]:
    """The folders to look in, in order."""
    if root is not None and not os.path.isdir(os.path.expanduser(root)):
        raise InputError(f"root {os.fspath(root)!r} is not a folder; give one that holds data sets")
    wishes = (root, os.environ.get(VARIABLE), user_cache(), entry.system_folder)
    folders = [Path(os.path.abspath(os.path.expanduser(wish))) for wish in wishes if wish]
    return tuple(dict.fromkeys(folders))


def candidates(entry: Entry, place: Path) -> Iterator[Path]:
    """The folders in a place that may hold the files.

    Files directly in the place count only where its name is one of the data set's, since MNIST
    and Fashion-MNIST name their files alike.
    """
    own = place.name in entry.folders or place == entry.system_folder
    homes = ([place] if own else []) + [place / name for name in entry.folders]
    for home in homes:
        inside = (home / subfolder for subfolder in (*SUBFOLDERS, *entry.folders))
        yield from filter(os.path.isdir, inside)


def not_found(name: str, entry: Entry, looked: tuple[Path, ...]) -> InputError:
    """The error that says where was looked and what to do."""
    where = ", ".join(
        f"{place}{'' if os.path.isdir(place) else ' (no such folder)'}" for place in looked
    )
    first = (
        [f"{start}-images-idx3-ubyte.gz" for start in entry.idx]
        + [f"{start}_X.bin" for start in entry.planes]
        + ["train" if entry.synsets else "train-00000-of-00001.parquet"]
    )[0]
    download = f"run: bellwether data get {name}, or " if entry.hub else ""
    return InputError(
        f"{name} was not found in {where or 'any folder'}; {download}set {VARIABLE} to a folder "
        f"that holds {entry.folders[0]}/{first} and the files that belong to it"
    )
