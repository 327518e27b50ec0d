"""A tree of values against the tables that may be: completed, and made into what it describes."""

import difflib
import json
from typing import Any

from pydantic import ValidationError

from bellwether.core.errors import InputError
from bellwether.experiments.config.schema import REQUIRED, Choice, Key, Node, Table, spelt
from bellwether.experiments.config.source import KeyPath, Source, Tree


def complete(node: Node, given: Any, source: Source, path: KeyPath = ()) -> Tree:
    """The tree with defaults filled in, in the order of the tables; what is unset is left out."""
    if not isinstance(given, dict):
        raise source.mistake(path, f"{'.'.join(path)} must be a table, not {_shown(given)}")
    if isinstance(node, Choice):
        name = _chosen(node, given, source, path)
        rest = {key: value for key, value in given.items() if key != node.tag}
        option = node.options[name]
        _check_names(rest, option, source, path, f' of {node.tag} = "{name}"')
        return {node.tag: name, **complete(option, rest, source, path)}
    _check_names(given, node, source, path)
    whole: Tree = {}
    for name, key in node.keys.items():
        if name in given:
            whole[name] = _value(key, given[name], source, (*path, name))
        elif key.default is REQUIRED:
            about = f", {key.meaning}" if key.meaning else ""
            raise source.mistake(path, f"{_table(path)} needs {name}{about}")
        elif key.default is not None:
            whole[name] = _plain(key.default)
    for name, inner in node.tables.items():
        if name in given:
            whole[name] = complete(inner, given[name], source, (*path, name))
        elif inner.default is REQUIRED:
            table = ".".join((*path, name))
            raise source.mistake(path, f"there is no [{table}], {inner.meaning}")
        elif inner.default is not None:
            whole[name] = complete(inner, inner.default, source, (*path, name))
    return whole


def made(node: Node, whole: Tree, source: Source, path: KeyPath = ()) -> Any:
    """What a complete tree describes; what a maker refuses is said in the table's place."""
    if isinstance(node, Choice):
        rest = {key: value for key, value in whole.items() if key != node.tag}
        return made(node.options[whole[node.tag]], rest, source, path)
    arguments = {name: whole.get(name) for name in node.keys}
    for name, key in node.keys.items():
        if name in whole:
            arguments[name] = _loaded(key, whole[name])
    for name, inner in node.tables.items():
        at = (*path, name)
        arguments[name] = made(inner, whole[name], source, at) if name in whole else None
    try:
        return node.make(**arguments)
    except InputError as error:
        text = str(error)
        where = _named(node, text, path) if path else _named_table(text)
        raise source.mistake(where, text) from error


def _chosen(choice: Choice, given: Tree, source: Source, path: KeyPath) -> str:
    name = given.get(choice.tag, choice.usual)
    known = {spelt(option): option for option in choice.options}
    if name is None:
        for key in given:
            if difflib.get_close_matches(key, [choice.tag], cutoff=0.5):
                text = f"unknown key {key!r} in {_table(path)}; did you mean {choice.tag}?"
                raise source.mistake((*path, key), text)
        text = f'{_table(path)} needs {choice.tag} = "...": {", ".join(known.values())}'
        raise source.mistake(path, text)
    if not isinstance(name, str) or spelt(name) not in known:
        what = f"unknown {choice.tag} {_shown(name)} in {_table(path)}"
        hint = near(spelt(str(name)), known)
        raise source.mistake((*path, choice.tag), f"{what}; {hint}")
    return known[spelt(name)]


def _check_names(given: Tree, node: Table, source: Source, path: KeyPath, option: str = "") -> None:
    where = f" in {_table(path)}{option}" if path else ""
    for name in given:
        if name not in node.names:
            text = f"unknown key {name!r}{where}; {near(name, node.names)}"
            raise source.mistake((*path, name), text)


def near(name: str, known: Any) -> str:
    """A hint at the nearest of the known names, or at all of them."""
    names = list(known)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    if close:
        return f"did you mean {close[0]}?"
    return f"known: {', '.join(names)}" if names else "it takes none"


def _value(key: Key, given: Any, source: Source, path: KeyPath) -> Any:
    try:
        return _plain(_loaded(key, given))
    except (ValidationError, TypeError):
        *tables, name = path
        where = f"{_table(tuple(tables))} {name}" if tables else name
        text = f"{where} must be {key.wanted}, not {_shown(given)}"
        raise source.mistake(path, text) from None


def _loaded(key: Key, given: Any) -> Any:
    """The value in the type that the argument has; a list is a tuple, which nobody can change."""
    return _frozen(key.adapter.validate_json(json.dumps(given)))


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list | tuple) else value


def _plain(value: Any) -> Any:
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value


def _table(path: KeyPath) -> str:
    return f"[{'.'.join(path)}]" if path else "the file"


def _named(node: Table, text: str, path: KeyPath) -> KeyPath:
    """The key that a maker's refusal names, else the table."""
    words = text.replace("=", " ").replace("(", " ").replace("'", " ").split()
    return next(((*path, name) for name in node.keys if name in words), path)


def _named_table(text: str) -> KeyPath:
    """The table in brackets with which a refusal about several of them begins."""
    return tuple(text[1:].partition("]")[0].split(".")) if text.startswith("[") else ()


def _shown(value: Any) -> str:
    return "a table" if isinstance(value, dict) else repr(value)
