"""A study as its file says: every run of it, checked before any begins."""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bellwether.core.errors import InputError, check_fraction
from bellwether.experiments.config.check import complete, made, near
from bellwether.experiments.config.config import Config, from_tree
from bellwether.experiments.config.schema import Key, Table
from bellwether.experiments.config.source import KeyPath, Source, Tree, parsed, put, read
from bellwether.experiments.study.axes import (
    METHOD,
    SEED,
    Axis,
    axes,
    check_disjoint,
    flat,
    has,
    merged,
    nested,
    slug,
    with_method,
)
from bellwether.experiments.study.questions import QUESTION, Question

_TUNE = Table(
    dict,
    {
        "validation": Key(float, 0.1, "share of the training samples that rates are tuned on"),
        "seeds": Key(int, 1, "seeds of each point of the grid"),
    },
    {},
    "",
)
_STUDY = Table(dict, {"title": Key(str, "", ""), "base": Key(str | None, None, "")}, {}, "")
_TABLES = ("experiment", "axes", "question", "tune")


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
        for labels, tree, said in self._groups():
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
        for labels, tree, said in self._groups():
            group = group_name(labels)
            own = [axis for axis in self.tuning.grid if has(tree, *axis.paths)]
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

    def _groups(self) -> Iterator[tuple[dict[str, str], Tree, dict[KeyPath, str]]]:
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


def load(path: Path | str) -> Study:
    """The study of a file, with every run of it checked."""
    source = read(Path(path))
    tree = parsed(source)
    for name in tree:
        if name not in (known := (*_STUDY.names, *_TABLES)):
            raise source.mistake((name,), f"unknown key {name!r} in a study; {near(name, known)}")
    plain = complete(_STUDY, {k: v for k, v in tree.items() if k not in _TABLES}, source)
    for name in ("axes", "experiment"):
        if not isinstance(tree.get(name, {}), dict):
            raise source.mistake((name,), f"{name} must be a table")
    base, source = _base(plain.get("base"), tree, Path(path), source)
    questions = tree.get("question")
    if not questions:
        kinds = ", ".join(QUESTION.options)
        raise InputError(f'{source.name}: there is no [question]; give its kind = "...": {kinds}')
    asked = questions if isinstance(questions, list) else [questions]
    wholes = [complete(QUESTION, each, source, ("question",)) for each in asked]
    axes_source = Source(source.name, source.text, prefix=("axes",))
    study = Study(
        title=plain["title"] or Path(path).stem,
        questions=tuple((w["kind"], made(QUESTION, w, source, ("question",))) for w in wholes),
        tuning=_tuning(tree.get("tune"), source),
        axes=tuple(axes(tree.get("axes", {}), axes_source)),
        base=base,
        source=source,
    )
    _check(study, axes_source)
    return study


def group_name(labels: Mapping[str, str]) -> str:
    """The folder of a group: its labels in the order of the axes."""
    parts = (v if name == METHOD else f"{name}={v}" for name, v in labels.items())
    return "/".join(map(slug, parts)) or "all"


def _base(name: str | None, tree: Tree, path: Path, source: Source) -> tuple[Tree, Source]:
    """The experiment that all runs share, and a source that knows where its keys are."""
    own = tree.get("experiment", {})
    if name is None:
        return own, source
    file = read(path.parent / name)
    inherited = parsed(file)
    said = {key: file.at(key) for key, _ in flat(inherited)}
    inner = Source(source.name, source.text, prefix=("experiment",))
    said |= {key: inner.at(key) for key, _ in flat(own)}
    return merged(inherited, own), Source(source.name, source.text, said)


def _tuning(given: Any, source: Source) -> Tuning | None:
    if given is None:
        return None
    grid = given.get("grid") if isinstance(given, dict) else None
    if not isinstance(grid, dict) or not grid:
        raise source.mistake(("tune",), '[tune] needs [tune.grid]: "algorithm.client.lr" = [...]')
    rest = {name: value for name, value in given.items() if name != "grid"}
    plain = complete(_TUNE, rest, source, ("tune",))
    try:
        check_fraction(validation=plain["validation"])
    except InputError as error:
        raise source.mistake(("tune", "validation"), str(error)) from error
    read = axes(grid, Source(source.name, source.text, prefix=("tune", "grid")))
    return Tuning(plain["validation"], plain["seeds"], tuple(read))


def _check(study: Study, source: Source) -> None:
    """Raise `InputError` for what contradicts, and for a run that cannot be."""
    tuned = list(study.tuning.grid) if study.tuning else []
    check_disjoint([*study.axes, *tuned], source)
    methods = next((axis for axis in study.axes if axis.name == METHOD), None)
    if methods:
        names = [nested(value.settings)["algorithm"]["name"] for value in methods.values]
        for key in study.base.get("algorithm", {}):
            if key != "name" and not any(
                has({"algorithm": {"name": n}}, ("algorithm", key)) for n in names
            ):
                text = f"no method of the study has {key!r} of [algorithm]"
                raise replace(study.source, prefix=("experiment",)).mistake(
                    ("algorithm", key), text
                )
    validation = ("data", "validation")
    if study.tuning and any(validation in axis.paths for axis in study.axes):
        raise source.mistake(validation, "[tune] holds a validation split out; no axis may")
    if study.tuning and "validation" in study.base.get("data", {}):
        raise study.source.mistake(
            ("tune",), "[tune] holds a validation split out itself; leave out data.validation"
        )
    if study.tuning and study.tuning.seeds < 1:
        raise study.source.mistake(("tune", "seeds"), "[tune] seeds must be at least 1")
    for axis in tuned:
        if not any(has(tree, *axis.paths) for _, tree, _ in study._groups()):
            raise study.source.mistake(
                ("tune", "grid", *axis.name.split(".")),
                f"no method of the study has {axis.name} to tune",
            )
    first = {
        group: next(iter(points.values()))[0] for group, points in study.tuning_cells().items()
    }
    cells = study.cells(first)
    names = [cell.name for cell in cells]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        raise InputError(f"{study.source.name}: two runs would be {twice}; give them labels")
