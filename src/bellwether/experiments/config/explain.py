"""What may stand at a place of the file, for `bellwether config explain`."""

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bellwether.core.errors import InputError
from bellwether.experiments.config.check import near
from bellwether.experiments.config.schema import REQUIRED, Choice, Key, Node, Table, spelt
from bellwether.experiments.config.tree import ROOT
from bellwether.experiments.config.write import value


@dataclass(frozen=True)
class Line:
    """A key, or a table, as it is explained."""

    name: str
    wanted: str
    default: str
    meaning: str


@dataclass(frozen=True)
class Explanation:
    """What may stand at a place."""

    title: str
    about: str
    lines: tuple[Line, ...]
    more: tuple[str, ...] = ()
    """Paths that can be asked for next."""


def explain(path: str = "", others: Mapping[str, Node] | None = None) -> Explanation:
    """The place that a path names: "training", "partition.dirichlet", "algorithm.fedclg-c.client".

    A table within another may be named alone where that is clear: partition, compress_up. `others`
    are tables of other files.
    """
    known = {**ROOT.tables, **(others or {})}
    node: Node | Key = dataclasses.replace(ROOT, tables=known) if path else ROOT
    table: list[str] = []
    chosen = ""
    parts = [part for part in path.split(".") if part]
    if parts and parts[0] not in {*ROOT.keys, *known}:
        parts = [*_prefix(parts[0]), *parts]
    for number, part in enumerate(parts):
        before, node = node, _step(node, part, ".".join(parts[:number]))
        if isinstance(before, Choice) and node in before.options.values():
            chosen = f' with {before.tag} = "{spelt(part)}"'
        else:
            table.append(part)
    return _told(node, ".".join(parts), f"[{'.'.join(table)}]{chosen}")


def _step(node: Node | Key, part: str, before: str) -> Node | Key:
    known: dict[str, Any]
    if isinstance(node, Key):
        known = {}
    elif isinstance(node, Choice):
        known = dict(node.options)
        for option in node.options.values():  # algorithm.client: any method's
            known |= {name: each for name, each in option.tables.items() if name not in known}
        part = spelt(part) if spelt(part) in known else part
    else:
        known = {**node.keys, **node.tables}
    if part not in known:
        where = f" in {before}" if before else ""
        raise InputError(f"there is no {part!r}{where} to explain; {near(part, known)}")
    found: Node | Key = known[part]
    return found


def _prefix(name: str) -> list[str]:
    """The tables around one that is named alone."""
    for outer, node in ROOT.tables.items():
        if isinstance(node, Table) and name in node.names:
            return [outer]
    return []


def _told(node: Node | Key, path: str, title: str) -> Explanation:
    if isinstance(node, Key):
        return Explanation(path, "", (_key(path.rpartition(".")[2], node),))
    if isinstance(node, Choice):
        lines = [
            Line(f'{node.tag} = "{name}"', "", "", option.about.partition("\n")[0])
            for name, option in node.options.items()
        ]
        more = tuple(f"{path}.{name}" for name in node.options)
        return Explanation(title, node.meaning, tuple(lines), more)
    about = _paragraphs(node.about) if path else "Keys and tables of an experiment."
    more = tuple(
        ".".join(filter(None, (path, name)))
        for name, inner in node.tables.items()
        if not path or isinstance(inner, Choice)
    )
    return Explanation(title if path else "the file", about, tuple(_lines(node, path != "")), more)


def _lines(node: Table, inwards: bool, before: str = "") -> Iterator[Line]:
    """Keys, then tables; `inwards` with the keys of those."""
    for name, key in node.keys.items():
        yield _key(before + name, key)
    for name, inner in node.tables.items():
        given = "required" if inner.default is REQUIRED else "may be left out"
        yield Line(f"[{before}{name}]", "a table", given, inner.meaning)
        if inwards and isinstance(inner, Table):
            yield from _lines(inner, inwards, f"{before}{name}.")


def _paragraphs(text: str) -> str:
    """Without the line breaks of the source."""
    return "\n\n".join(" ".join(each.split()) for each in text.split("\n\n"))


def _key(name: str, key: Key) -> Line:
    if key.default is REQUIRED:
        default = "required"
    else:
        default = "" if key.default is None else value(key.default)
    return Line(name, key.wanted, default, key.meaning)
