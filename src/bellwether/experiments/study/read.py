"""The file of a study: read, and every run of it checked."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from bellwether.core.errors import InputError, check_fraction
from bellwether.experiments.config.check import complete, made, near
from bellwether.experiments.config.schema import Key, Table
from bellwether.experiments.config.source import Source, Tree, parsed, read
from bellwether.experiments.study.axes import (
    METHOD,
    SEED,
    axes,
    check_disjoint,
    flat,
    has,
    merged,
    nested,
)
from bellwether.experiments.study.plan import Study, Tuning
from bellwether.experiments.study.questions import QUESTION

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
        if axis.name in (METHOD, SEED):
            raise study.source.mistake(
                ("tune", "grid", axis.name), f"{axis.name} is an axis, nothing to tune"
            )
        trees = (tree for _, tree, _ in study.groups())
        if not any(all(has(tree, path) for path in axis.paths) for tree in trees):
            raise study.source.mistake(
                ("tune", "grid", *axis.name.split(".")),
                f"no method of the study has {axis.name} to tune",
            )
    first = {
        group: next(iter(points.values()))[0] for group, points in study.tuning_cells().items()
    }
    cells = study.cells(first)
    names = [cell.name for cell in cells]
    name, count = Counter(names).most_common(1)[0]
    if count > 1:
        raise InputError(f"{study.source.name}: {count} runs would be {name}; give them labels")
