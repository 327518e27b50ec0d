"""Where a cursive font is found."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from bellwether.core.errors import InputError

ENDINGS = (".ttf", ".otf", ".ttc")

CURSIVE = (
    "applechancery",
    "z003",  # URW's Zapf Chancery
    "urwchancery",
    "mtcorsva",  # Monotype Corsiva
    "dancingscript",
    "lhandw",  # Lucida Handwriting
    "segoesc",  # Segoe Script
    "brushsc",  # Brush Script
    "snellroundhand",
    "bradleyhand",
    "greatvibes",
    "kaushanscript",
    "pacifico",
    "lobster",
    "kristi",
    "rufscript",
    "felipa",
    "comicneue",
    "comic",
)
"""How the file names of cursive fonts begin, in small letters and digits: the best first."""


def find(root: str | os.PathLike[str] | None) -> Path:
    """The font file `root`, or the best cursive font in the folder `root` or where fonts lie."""
    wish = None if root is None else Path(os.path.abspath(os.path.expanduser(root)))
    if wish is not None and not wish.is_dir():
        if wish.is_file():
            return wish
        raise InputError(f"{os.fspath(wish)} is no font file and no folder of fonts")
    for folder in (wish, *_folders()):
        if folder is not None and (best := _best(folder)):
            return best
    raise InputError(
        "no cursive font was found; install one (Debian: fonts-dancingscript) or give "
        'load("cursive", root=...) the path of a .ttf or .otf file'
    )


def _best(folder: Path) -> Path | None:
    ranked = []
    for file in folder.rglob("*") if folder.is_dir() else ():
        plain = "".join(filter(str.isalnum, file.stem.lower()))
        rank = next((i for i, name in enumerate(CURSIVE) if plain.startswith(name)), None)
        if rank is not None and file.suffix.lower() in ENDINGS:
            ranked.append((rank, "bold" in plain, len(plain), file))  # the regular cut is shortest
    return min(ranked)[-1] if ranked else None


def _folders() -> Iterator[Path]:
    """Where Linux, macOS and Windows keep fonts, the user's own before the system's."""
    home = Path(os.path.expanduser("~"))
    if sys.platform == "win32":
        yield Path(os.environ.get("LOCALAPPDATA", home)) / "Microsoft" / "Windows" / "Fonts"
        yield Path(os.environ.get("WINDIR", r"C:\Windows")) / "Fonts"
        return
    yield Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share") / "fonts"
    yield home / ".fonts"
    yield home / "Library" / "Fonts"
    for folder in ("/Library/Fonts", "/System/Library/Fonts"):
        yield Path(folder)
    for folder in ("/usr/local/share/fonts", "/usr/share/fonts"):
        yield Path(folder)
