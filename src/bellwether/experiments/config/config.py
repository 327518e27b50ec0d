"""A configuration: the complete tree of an experiment, from a file and what was said over it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bellwether import data
from bellwether.data.catalogue import CATALOGUE
from bellwether.experiments.config.check import complete, made
from bellwether.experiments.config.experiment import Experiment
from bellwether.experiments.config.source import Source, Tree, override, parsed, read
from bellwether.experiments.config.tree import ROOT
from bellwether.experiments.config.write import toml
from bellwether.experiments.training import DEFAULT_COHORT
from bellwether.models import default_for


@dataclass(frozen=True)
class Config:
    """A complete tree that was checked; two that are equal describe the same bits."""

    tree: Tree
    experiment: Experiment
    """What the tree describes, made."""

    @property
    def text(self) -> str:
        """As a file, with every default filled in."""
        return toml(self.tree)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Config) and self.tree == other.tree

    __hash__ = None  # type: ignore[assignment]


def load(path: Path | str, settings: Sequence[str] = ()) -> Config:
    """The experiment of a file, with `--set` values."""
    source = read(Path(path))
    source, tree = override(source, parsed(source), settings)
    return from_tree(tree, source)


def from_tree(tree: Tree, source: Source) -> Config:
    """Check a tree of values, and fill in what it leaves out."""
    whole = complete(ROOT, _with_defaults(tree), source)
    return Config(whole, made(ROOT, whole, source))


def _with_defaults(tree: Tree) -> Tree:
    """With the defaults that depend on other values, where those can be read."""
    federation, samples = tree.get("federation"), tree.get("data", {})
    filled = dict(tree)
    if "participation" not in tree and isinstance(federation, dict):
        clients = federation.get("clients")
        if isinstance(clients, int):
            cohort = max(1, min(DEFAULT_COHORT, clients))
            filled["participation"] = {"kind": "uniform", "clients": cohort}
    if "model" not in tree and isinstance(samples, dict):
        name = samples.get("name", "digits")
        if isinstance(name, str) and name in data.names():
            filled["model"] = {"name": default_for(CATALOGUE[name].shape)}
    return filled
