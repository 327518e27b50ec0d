"""A tree of values as TOML that reads back equal."""

import json
import math
import re
from collections.abc import Iterator
from typing import Any

from bellwether.experiments.config.source import KeyPath, Tree

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def toml(tree: Tree) -> str:
    """The text: keys first, then a table a section."""
    return "\n".join(_lines(tree, ())).strip() + "\n"


def value(given: Any) -> str:
    """One value."""
    if isinstance(given, bool):
        return "true" if given else "false"
    if isinstance(given, int):
        return str(given)
    if isinstance(given, float):
        return repr(given) if math.isfinite(given) else str(given)
    if isinstance(given, str):
        # JSON's strings are TOML's, but for the one control character that JSON leaves as it is;
        # surrogates do not occur in what UTF-8 can hold.
        return json.dumps(given, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(given, dict):
        return "{ " + ", ".join(f"{key(k)} = {value(v)}" for k, v in given.items()) + " }"
    return f"[{', '.join(map(value, given))}]"


def key(name: str) -> str:
    """A key, quoted where it must be."""
    return name if _BARE.fullmatch(name) else value(name)


def _lines(tree: Tree, path: KeyPath) -> Iterator[str]:
    tables = {name: each for name, each in tree.items() if isinstance(each, dict)}
    if path and (len(tables) < len(tree) or not tree):
        yield f"\n[{'.'.join(map(key, path))}]"
    for name, each in tree.items():
        if name not in tables:
            yield f"{key(name)} = {value(each)}"
    for name, inner in tables.items():
        yield from _lines(inner, (*path, name))
