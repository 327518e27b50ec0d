"""Experiments that files describe: begun in a folder, gone on with, shown."""

from collections.abc import Callable, Iterable
from pathlib import Path

from bellwether.algorithms import find
from bellwether.core.errors import InputError
from bellwether.core.files import write_atomically
from bellwether.core.interfaces import Engine
from bellwether.core.records import RoundRecord
from bellwether.experiments.config.config import Config, from_tree, load
from bellwether.experiments.config.source import Source, put
from bellwether.experiments.results import Comparison, Run
from bellwether.experiments.run import Result
from bellwether.experiments.run_directory import CONFIG, ENVIRONMENT, keeping
from bellwether.experiments.training import train

OnRound = Callable[[RoundRecord], None]


def begin(
    config: Config, folder: Path, on_round: OnRound | None = None, engine: Engine | None = None
) -> Result:
    """Train as the file says in a folder of its own, which keeps the complete file."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; choose another folder")
    if folder.exists() and any(file.name != CONFIG for file in folder.iterdir()):
        raise InputError(
            f"{folder} is not empty; go on with its run by: bellwether resume {folder},"
            " or choose another folder"
        )
    with keeping(config.text, folder):
        return _train(config, folder, False, on_round, engine)


def resume(
    config: Config, folder: Path, on_round: OnRound | None = None, engine: Engine | None = None
) -> Result:
    """Go on with the run of a folder; `config` is what the folder keeps."""
    begun = (folder / ENVIRONMENT).exists()
    if not begun:  # it was stopped before its first file was whole
        for file in folder.glob("*.tmp"):
            file.unlink()
    return _train(config, folder, begun, on_round, engine)


def longer(config: Config, folder: Path, rounds: int) -> Config:
    """The experiment of a folder with more rounds, which the folder then keeps."""
    planned = config.experiment.training["rounds"]
    if rounds < planned:
        raise InputError(f"{folder} is a run of {planned} rounds; --rounds can only be more")
    tree = put(config.tree, ("training", "rounds"), rounds, "--rounds")
    more = from_tree(tree, Source("--rounds"))
    write_atomically(folder / CONFIG, more.text)
    return more


def kept(folder: Path) -> Config:
    """The experiment that a folder was made for."""
    if not folder.is_dir():
        raise InputError(f"there is no run in {folder}")
    if not (folder / CONFIG).exists():
        raise InputError(
            f"{folder} holds no {CONFIG}; go on by the command that began it, with --resume"
        )
    return load(folder / CONFIG)


def title(config: Config) -> str:
    """The method's name as people know it."""
    return find(config.tree["algorithm"]["name"])


def comparison(config: Config, records: Iterable[RoundRecord], complete: bool) -> Comparison:
    """The run as the tables and pages take it."""
    experiment = config.experiment
    name = title(config)
    seed = experiment.training["seed"]
    manifest = experiment.federate().manifest
    assert manifest is not None
    tested = experiment.dataset.test
    return Comparison(
        title=experiment.title or f"{name} on {experiment.dataset.name}",
        runs=(Run(name, seed, tuple(records), complete),),
        settings={
            "data": f"{experiment.dataset.name}"
            + (f", {tested.size:,} test samples" if tested else "")
            + f" ({experiment.dataset.source})",
            "clients": f"{experiment.federation['clients']}, {experiment.federation['partition']}",
            "participation": str(experiment.participation),
            "server": manifest.server or "no samples",
            "model": experiment.model.name,
            "method": str(experiment.algorithm),
            "seed": str(seed),
        },
        target=experiment.training["target"],
        planned_rounds=max(1, experiment.training["rounds"]),
        histogram=manifest.labels if manifest.labels.size else None,
        server_histogram=manifest.drawn_labels if manifest.server else None,
        server_draws=manifest.drawn,
        class_names=tuple(experiment.dataset.classes),
    )


def keep_manifest(config: Config, folder: Path) -> None:
    """Write who holds what beside the run, as comparisons do, for the report."""
    manifest = config.experiment.federate().manifest
    assert manifest is not None
    manifest.save(folder / f"manifest-seed-{config.experiment.training['seed']}.json")


def _train(
    config: Config,
    folder: Path,
    going_on: bool,
    on_round: OnRound | None,
    engine: Engine | None,
) -> Result:
    experiment = config.experiment if engine is None else config.experiment.on(engine)
    return train(**experiment.arguments, on_round=on_round, run_dir=folder, resume=going_on)
