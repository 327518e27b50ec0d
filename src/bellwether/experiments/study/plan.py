"""A study as its file says: every run of it, checked before any begins."""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bellwether.core.errors import InputError
from bellwether.experiments.config.config import Config, from_tree
from bellwether.experiments.config.source import KeyPath, Source, Tree, put
from bellwether.experiments.study.axes import (
    METHOD,
    SEED,
    Axis,
    has,
    merged,
    nested,
    slug,
    with_method,
)
from bellwether.experiments.study.questions import Question


@dataclass(frozen=True)
class Cell:
    """One run of a study."""

    name: str
    """Where it is, below the study's folder."""
    labels: Mapping[str, str]
    """The value of each axis, but for the seed's."""
    seed: int
    config: Config


@dataclass(frozen=True)
class Tuning:
    """What is tuned, on what."""

    validation: float
    seeds: int
    grid: tuple[Axis, ...]


@dataclass(frozen=True)
class Study:
    """A base, axes, and questions; the first of these is what rates are tuned for."""

    title: str
    questions: tuple[tuple[str, Question], ...]
    """By their kinds."""
    tuning: Tuning | None
    axes: tuple[Axis, ...]
    base: Tree
    source: Source

    def cells(self, tuned: Mapping[str, Tree] | None = None) -> list[Cell]:
        """The runs that answer; with the settings that were tuned for each group."""
        cells = []
        for labels, tree, said in self.groups():
            group = group_name(labels)
            settings = (tuned or {}).get(group, {})
            for seed, with_seed in self._seeds(merged(tree, settings)):
                name = f"runs/{group}/seed-{seed}"
                cells.append(Cell(name, labels, seed, self._config(name, with_seed, said)))
        return cells

    def tuning_cells(self) -> dict[str, dict[str, tuple[Tree, list[Cell]]]]:
        """By group and point of the grid: its settings, and its runs on the validation split."""
        if self.tuning is None:
            return {}
        tuned: dict[str, dict[str, tuple[Tree, list[Cell]]]] = {}
        for labels, tree, said in self.groups():
            group = group_name(labels)
            own = [axis for axis in self.tuning.grid if all(has(tree, path) for path in axis.paths)]
            points = tuned[group] = {}
            for values in itertools.product(*(axis.values for axis in own)):
                pairs = zip(own, values, strict=True)
                point = ",".join(f"{axis.name}={value.label}" for axis, value in pairs) or "as-is"
                settings = nested({p: v for value in values for p, v in value.settings.items()})
                whole = merged(
                    merged(tree, settings), {"data": {"validation": self.tuning.validation}}
                )
                runs = []
                for seed in range(self.tuning.seeds):
                    name = f"tuning/{group}/{slug(point)}/seed-{seed}"
                    with_seed = put(whole, ("training", "seed"), seed, "[tune] seeds")
                    runs.append(Cell(name, labels, seed, self._config(name, with_seed, said)))
                points[point] = settings, runs
        return tuned

    def groups(self) -> Iterator[tuple[dict[str, str], Tree, dict[KeyPath, str]]]:
        """Every combination but for seeds: its labels, its tree, and where its keys were said."""
        varied = [axis for axis in self.axes if axis.name != SEED]
        for values in itertools.product(*(axis.values for axis in varied)):
            tree, said = self.base, dict[KeyPath, str]()
            for axis, value in sorted(
                zip(varied, values, strict=True), key=lambda pair: pair[0].name != METHOD
            ):
                over = nested(value.settings)
                place = self.source.at(("axes", *axis.name.split(".")))
                if axis.name == METHOD:
                    tree = with_method(tree, over["algorithm"])
                else:
                    tree = merged(tree, over)
                said |= dict.fromkeys(value.settings, f"{place} ({axis.name} = {value.label})")
            labels = {axis.name: v.label for axis, v in zip(varied, values, strict=True)}
            yield labels, tree, said

    def _seeds(self, tree: Tree) -> Iterator[tuple[int, Tree]]:
        axis = next((axis for axis in self.axes if axis.name == SEED), None)
        if axis is None:
            seed = tree.get("training", {}).get("seed", 0)
            yield seed, tree
            return
        for value in axis.values:
            (path, seed), *_ = value.settings.items()
            yield seed, put(tree, path, seed, "[axes] seed")

    def _config(self, name: str, tree: Tree, said: Mapping[KeyPath, str]) -> Config:
        source = Source(
            self.source.name, self.source.text, {**self.source.said, **said}, ("experiment",)
        )
        # Each run is a process with one worker: the study's processes are what is parallel.
        config = from_tree(merged(tree, {"engine": {"workers": 1}}), source)
        training = config.experiment.training
        if not training["eval_every"]:
            raise InputError(f"{self.source.name}: {name} is never measured; leave out eval_every")
        for _, question in self.questions:
            try:
                question.check(training["rounds"])
            except InputError as error:
                raise self.source.mistake(("question",), f"{error} in {name}") from error
        return config


def group_name(labels: Mapping[str, str]) -> str:
    """The folder of a group: its labels in the order of the axes."""
    parts = (v if name == METHOD else f"{name}={v}" for name, v in labels.items())
    return "/".join(map(slug, parts)) or "all"
