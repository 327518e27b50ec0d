"""The axes of a study: what varies, and what each value says over the base."""

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bellwether.experiments.config.schema import Choice, Node, Table, spelt
from bellwether.experiments.config.source import KeyPath, Source, Tree, put
from bellwether.experiments.config.tree import ALGORITHM, ROOT

METHOD, SEED = "method", "seed"
_EITHER = (("epochs", "steps"), ("samples", "fraction"), ("samples", "per_label"))
"""Arguments of which a table has one: giving one takes the other away."""


@dataclass(frozen=True)
class Value:
    """A value of an axis, by its label, and what it says over the base."""

    label: str
    settings: Mapping[KeyPath, Any]


@dataclass(frozen=True)
class Axis:
    """What varies."""

    name: str
    values: tuple[Value, ...]

    @property
    def paths(self) -> set[KeyPath]:
        """All that its values say."""
        return {path for value in self.values for path in value.settings}


def axes(given: Tree, source: Source) -> list[Axis]:
    """The axes of [axes], checked: none empty, no value twice, no path in two of them."""
    read = [_axis(path, values, source) for path, values in flat(given)]
    for axis in read:
        labels = [value.label for value in axis.values]
        twice = next((label for label in labels if labels.count(label) > 1), None)
        where = tuple(axis.name.split("."))
        if twice is not None:
            raise source.mistake(where, f"axis {axis.name} has {twice} twice; keep one")
        if not labels:
            raise source.mistake(where, f"axis {axis.name} has no value; give one or leave it out")
    check_disjoint(read, source)
    return read


def check_disjoint(read: list[Axis], source: Source) -> None:
    """Raise `InputError` for two axes that say the same key."""
    for other, axis in itertools.combinations(read, 2):
        for path, said in itertools.product(sorted(axis.paths), sorted(other.paths)):
            shorter = min(len(path), len(said))
            if path[:shorter] == said[:shorter]:
                key = ".".join(path if len(path) > shorter else said)
                same = other.name == axis.name
                which = "two axes" if same else f"axes {other.name} and {axis.name} both"
                text = f"{which} say {key}; keep one of them"
                raise source.mistake(tuple(axis.name.split(".")), text)


def flat(tree: Tree, before: KeyPath = ()) -> Iterator[tuple[KeyPath, Any]]:
    """The values with their paths; a quoted "a.b" and a bare a.b are the same."""
    for name, value in tree.items():
        path = (*before, *name.split("."))
        if isinstance(value, dict):
            yield from flat(value, path)
        else:
            yield path, value


def merged(base: Tree, over: Tree, node: Node = ROOT) -> Tree:
    """The base with what is said over it; another choice replaces a table, its keys change it."""
    if isinstance(node, Choice):
        chosen = over.get(node.tag, base.get(node.tag))
        same = spelt(str(chosen)) == spelt(str(base.get(node.tag)))
        if node.tag in over and node.tag in base and not same:
            return over
        option = node.options.get(spelt(str(chosen)))
        return base | over if option is None else merged(base, over, option)
    whole = dict(base)
    for one, other in (*_EITHER, *(pair[::-1] for pair in _EITHER)):
        if one in over and other not in over and one in node.names:
            whole.pop(other, None)
    for name, value in over.items():
        inner = node.tables.get(name)
        both = isinstance(value, dict) and isinstance(whole.get(name), dict)
        whole[name] = merged(whole[name], value, inner) if both and inner else value
    return whole


def with_method(tree: Tree, method: Tree) -> Tree:
    """The tree with a method that takes of [algorithm] what it has."""
    shared = tree.get("algorithm", {})
    option = ALGORITHM.options.get(spelt(str(method.get("name"))))
    if option is None or not isinstance(shared, dict):
        return {**tree, "algorithm": method}
    own = {name: value for name, value in shared.items() if name in option.names}
    return {**tree, "algorithm": merged(own, method, option)}


def has(tree: Tree, path: KeyPath) -> bool:
    """Whether this key may stand in the tree, given what is chosen in it."""
    node: Node | None = ROOT
    for number, name in enumerate(path):
        if isinstance(node, Choice):
            node = node.options.get(spelt(str(tree.get(node.tag))))
        if not isinstance(node, Table) or name not in node.names:
            return False
        if number + 1 < len(path):
            node = node.tables.get(name)
            tree = tree.get(name, {}) if isinstance(tree.get(name, {}), dict) else {}
    return True


def nested(settings: Mapping[KeyPath, Any]) -> Tree:
    """The tree of these values."""
    tree: Tree = {}
    for path, value in settings.items():
        tree = put(tree, path, value, ".".join(path))
    return tree


def slug(label: str) -> str:
    """A label as the name of a folder."""
    return re.sub(r"[^A-Za-z0-9._=+-]+", "-", label).strip("-.") or "-"


def _axis(path: KeyPath, given: Any, source: Source) -> Axis:
    name = ".".join(path)
    if name == "seeds":
        if isinstance(given, bool) or not isinstance(given, int) or given < 1:
            raise source.mistake(path, f"axis seeds must be how many, from 1, not {given!r}")
        name, given = SEED, list(range(given))
    if not isinstance(given, list):
        raise source.mistake(path, f"axis {name} must be a list of values, not {given!r}")
    if name == METHOD:
        return Axis(name, tuple(_method(each, source) for each in given))
    if name == SEED:
        seeds = (Value(f"{each}", {("training", "seed"): each}) for each in given)
        return Axis(name, tuple(seeds))
    if path[0] in ROOT.names:
        return Axis(name, tuple(Value(_label(each), {path: each}) for each in given))
    return Axis(name, tuple(_bundle(name, each, source) for each in given))


def _method(given: Any, source: Source) -> Value:
    table = {"name": given} if isinstance(given, str) else given
    if not isinstance(table, dict) or not isinstance(table.get("name"), str):
        raise source.mistake(
            (METHOD,), f'a method is a name, or a table with name = "...", not {given!r}'
        )
    label = str(table.get("label", spelt(table["name"])))
    said = flat({name: value for name, value in table.items() if name != "label"})
    return Value(label, {("algorithm", *path): value for path, value in said})


def _bundle(name: str, given: Any, source: Source) -> Value:
    if not isinstance(given, dict) or not isinstance(given.get("label"), str):
        raise source.mistake(
            tuple(name.split(".")),
            f"{name} is no key of an experiment, so its values must be tables with a label and"
            f' keys, such as {{ label = "few", participation.clients = 4 }}, not {given!r}',
        )
    settings = {path: value for path, value in flat(given) if path != ("label",)}
    return Value(given["label"], settings)


def _label(value: Any) -> str:
    if isinstance(value, dict):
        return str(value.get("label") or "-".join(f"{v}" for v in value.values()))
    return f"{value}"
