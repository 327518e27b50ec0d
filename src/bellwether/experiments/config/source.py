"""A TOML text, where in it a key stands, and what was said over it by --set."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bellwether.core.errors import InputError

KeyPath = tuple[str, ...]
Tree = dict[str, Any]


@dataclass(frozen=True)
class Source:
    """Where values come from, so that a mistake can be shown in its place."""

    name: str
    """The file as the user knows it."""
    text: str = ""
    said: Mapping[KeyPath, str] = field(default_factory=dict)
    """What came from elsewhere: the place by path, such as "--set training.rounds=x"."""
    prefix: KeyPath = ()
    """The table of the text that paths begin in."""

    def at(self, path: KeyPath) -> str:
        """Where this key is, or the table nearest to it: "experiment.toml:12"."""
        for length in range(len(path), 0, -1):
            if place := self.said.get(path[:length]):
                return place
            if line := self._line((*self.prefix, *path[:length])):
                return f"{self.name}:{line}"
            for key, place in self.said.items():  # the table of what was said
                if key[:length] == path[:length]:
                    return place
        return self.name

    def mistake(self, path: KeyPath, text: str) -> InputError:
        """The error about a key, in its place."""
        return InputError(f"{self.at(path)}: {text}")

    def _line(self, path: KeyPath) -> int | None:
        """The first line after which the text holds the path.

        tomllib gives no lines, so it reads ever more of them: whatever TOML allows is understood.
        A beginning that ends within a value is none that can be read, so a value of several lines
        is found at its last, and begins after the last beginning that could.
        """
        lines = self.text.splitlines(keepends=True)
        read = 0
        for count in range(1, len(lines) + 1):
            try:
                tree = tomllib.loads("".join(lines[:count]))
            except tomllib.TOMLDecodeError:
                continue
            if _holds(tree, path):
                return read + 1
            read = count
        return None


def parsed(source: Source) -> Tree:
    """The text as nested dicts."""
    try:
        return tomllib.loads(source.text)
    except tomllib.TOMLDecodeError as error:
        reason, _, place = str(error).rpartition(" (at ")
        line = place.removeprefix("line ").partition(",")[0]
        where = f"{source.name}:{line}" if line.isdecimal() else source.name
        raise InputError(f"{where}: this is no TOML: {reason or error}") from None


def read(path: Path) -> Source:
    """The file."""
    try:
        return Source(str(path), path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is no text in UTF-8, so it is no TOML") from None


def override(source: Source, tree: Tree, settings: Sequence[str]) -> tuple[Source, Tree]:
    """The tree with what `key.path=value` say; "key.path=" takes a key away."""
    said = dict(source.said)
    for setting in settings:
        name, equals, text = setting.partition("=")
        path = tuple(part.strip() for part in name.split("."))
        if not equals or not all(path):
            raise InputError(f"--set {setting}: write it as algorithm.client.lr=0.1")
        tree = put(tree, path, _value(text.strip()), f"--set {setting}")
        said[path] = f"--set {setting}"
    return replace(source, said=said), tree


def put(tree: Tree, path: KeyPath, value: Any, place: str) -> Tree:
    """A copy of the tree with the value at the path; None takes the key away."""
    first, *rest = path
    if rest:
        inner = tree.get(first, {})
        if not isinstance(inner, dict):
            raise InputError(f"{place}: {first} is a value, not a table")
        return {**tree, first: put(inner, tuple(rest), value, place)}
    left = {name: each for name, each in tree.items() if name != first}
    return left if value is None else {**tree, first: value}


def _value(text: str) -> Any:
    """A value of TOML; what is none is a text, so that nobody must quote a name for the shell."""
    if not text:
        return None
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _holds(tree: Any, path: KeyPath) -> bool:
    """Whether the path is there; in a study "a.b" may be one quoted key."""
    if not path or not isinstance(tree, dict):
        return not path
    names = ((".".join(path[:length]), length) for length in range(1, len(path) + 1))
    return any(name in tree and _holds(tree[name], path[length:]) for name, length in names)
