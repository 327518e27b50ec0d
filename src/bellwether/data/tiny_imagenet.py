"""Tiny ImageNet's folders: train/<number>/images/*.JPEG, val/images and val_annotations.txt.

The numbers are WordNet's, and words.txt says what they mean. The published test images have no
labels, so the validation part is the test part, as everywhere.
"""

from collections import Counter
from pathlib import Path

import numpy as np

from bellwether.core.errors import InputError
from bellwether.data.cache import cached
from bellwether.data.catalogue import Entry
from bellwether.data.part import Part, checked
from bellwether.data.pictures import ENDINGS, read_files


def read_part(folder: Path, entry: Entry) -> Part:
    """The images and labels of the folder train, or of val."""
    annotations = folder / "val_annotations.txt"
    found = (_annotated if annotations.is_file() else _foldered)(folder, entry)
    files, labels = tuple(found), np.array(list(found.values()), dtype=np.int64)

    def decode() -> Part:
        return checked(read_files(files, entry.shape), labels, entry, folder)

    return cached(files, (entry.shape, labels.tobytes()), decode)


def class_names(folder: Path, entry: Entry) -> tuple[str, ...]:
    """The first word for each class, where words.txt has one that no other class shares."""
    try:
        lines = (folder / "words.txt").read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return entry.classes
    words = dict(line.split("\t", 1) for line in lines if "\t" in line)
    first = [words.get(number, number).split(",")[0].strip() for number in entry.classes]
    uses = Counter(first)
    return tuple(
        word if uses[word] == 1 else number
        for word, number in zip(first, entry.classes, strict=True)
    )


def _foldered(folder: Path, entry: Entry) -> dict[Path, int]:
    found = {}
    for label, number in enumerate(entry.classes):
        home = folder / number
        files = [file for file in sorted(home.rglob("*")) if file.suffix.lower() in ENDINGS]
        if not files:
            raise InputError(f"{folder} is incomplete: {home} holds no images; copy it again")
        found.update(dict.fromkeys(files, label))
    return found


def _annotated(folder: Path, entry: Entry) -> dict[Path, int]:
    """From lines of a file's name and its class's number, then a box that nobody needs here."""
    labels = {number: label for label, number in enumerate(entry.classes)}
    annotations = folder / "val_annotations.txt"
    found = {}
    for row, line in enumerate(annotations.read_text(encoding="utf-8").splitlines(), start=1):
        name, number, *_ = [*line.split("\t"), "", ""]
        if number not in labels:
            raise InputError(f"{annotations}, line {row}: {number!r} is no class of Tiny ImageNet")
        found[folder / "images" / name] = labels[number]
    return found
