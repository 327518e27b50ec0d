"""The table of a file that makes what Python made: the way back from `check.made`."""

from typing import Any

from bellwether.experiments.config.schema import Choice, Node
from bellwether.experiments.config.source import Tree


def described(node: Node, value: Any) -> Tree:
    """Its keys and tables, without what is None."""
    if isinstance(node, Choice):
        names = {option.make: name for name, option in node.options.items()}
        name = names[type(value)]
        return {node.tag: name, **described(node.options[name], value)}
    tree: Tree = {}
    for name in node.keys:
        if (given := getattr(value, name)) is not None:
            tree[name] = _plain(given)
    for name, inner in node.tables.items():
        if (given := getattr(value, name)) is not None:
            tree[name] = described(inner, given)
    return tree


def _plain(value: Any) -> Any:
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value
