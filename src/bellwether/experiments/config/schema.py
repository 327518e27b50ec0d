"""What may stand in a file, derived from the signatures of what it makes.

An argument is a key, or a table where it is a dataclass, or a choice among tables where it is a
partition, a method, a network. Nothing is listed twice: a new argument is a new key.
"""

import dataclasses
import inspect
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import or_
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import ConfigDict, TypeAdapter

from bellwether.experiments.config.meanings import meaning

REQUIRED: Any = inspect.Parameter.empty
"""The default of a key that must be given."""


@dataclass(frozen=True)
class Key:
    """A value in a file."""

    hint: Any
    default: Any
    meaning: str

    @cached_property
    def adapter(self) -> TypeAdapter[Any]:
        """pydantic's check: nothing is converted but whole numbers to numbers."""
        return TypeAdapter(self.hint, config=ConfigDict(strict=True, allow_inf_nan=False))

    @property
    def wanted(self) -> str:
        """What the value must be, in words."""
        return _words(self.hint)


@dataclass(frozen=True)
class Table:
    """Keys and tables that together are the arguments of a class or function."""

    make: Callable[..., Any]
    keys: Mapping[str, Key]
    tables: Mapping[str, "Node"]
    about: str
    default: Any = REQUIRED
    """What an absent table stands for: REQUIRED, None (nothing), or {} (its defaults)."""
    meaning: str = ""

    @property
    def names(self) -> list[str]:
        """All that may stand in it."""
        return [*self.keys, *self.tables]


@dataclass(frozen=True)
class Choice:
    """One of several tables, by the name under `tag`."""

    tag: str
    options: Mapping[str, Table]
    default: Any = REQUIRED
    meaning: str = ""
    usual: str | None = None
    """The option where the tag is not given; None: it must be."""


Node = Table | Choice
Nodes = Mapping[type, Node]
"""The table or choice that stands for an argument of a type."""


def table(
    make: Callable[..., Any],
    nodes: Nodes | None = None,
    *,
    only: Iterable[str] | None = None,
    without: Iterable[str] = (),
    defaults: Mapping[str, Any] | None = None,
    hints: Mapping[str, Any] | None = None,
) -> Table:
    """The table that gives the arguments of a class or function; `defaults` and `hints` of our own.

    `only` and `without` say which of them.
    """
    plain_class = inspect.isclass(make) and not dataclasses.is_dataclass(make)
    resolved = get_type_hints(make.__init__ if plain_class else make) | dict(hints or {})
    parameters = inspect.signature(make).parameters
    keys: dict[str, Key] = {}
    tables: dict[str, Node] = {}
    for name in parameters if only is None else only:
        if name in without:
            continue
        default = (defaults or {}).get(name, parameters[name].default)
        line = meaning(make, name)
        node = _node(resolved[name], nodes or {})
        if node is None:
            keys[name] = Key(_plain(resolved[name]), default, line)
        else:
            tables[name] = dataclasses.replace(node, default=_chosen(node, default), meaning=line)
    return Table(make, keys, tables, inspect.getdoc(make) or "")


def spelt(name: str) -> str:
    """A name as it is compared: "FedCLG-C", "fedclg_c" and "fedclg-c" are one."""
    return name.lower().replace(" ", "-").replace("_", "-")


def _chosen(node: Node, default: Any) -> Any:
    """The default of an argument as a file has it: an object is its choice by name."""
    if isinstance(node, Choice) and default not in (REQUIRED, None):
        makes = {option.make: name for name, option in node.options.items()}
        return {node.tag: makes[type(default)]}
    return default


def _node(hint: Any, nodes: Nodes) -> Node | None:
    kinds = (hint, *get_args(hint))
    return next((node for kind, node in nodes.items() if kind in kinds), None)


def _plain(hint: Any) -> Any:
    """The type as a file can hold it: no slices, no objects."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Literal or not inner:
        return hint
    kept = tuple(_plain(each) for each in inner if get_origin(each) or each in _PLAIN)
    return reduce(or_, kept) if origin in (Union, types.UnionType) else origin[kept]


_WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}
_PLAIN = (*_WORDS, type(None), Ellipsis)


def _words(hint: Any) -> str:
    origin, inner = get_origin(hint), [each for each in get_args(hint) if each is not type(None)]
    if origin is Literal:
        return " or ".join(map(repr, inner))
    if origin in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(map(_words, inner)))
    if origin is not None and issubclass(origin, Sequence):
        of = dict.fromkeys(_words(each) for each in inner if each is not Ellipsis)
        return f"a list, each {' or '.join(of)}"
    return _WORDS.get(hint, str(hint))
