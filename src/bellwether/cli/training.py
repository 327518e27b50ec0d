"""`bellwether demo` and `bellwether run`: train, compare, show."""

from collections.abc import Mapping
from contextlib import ExitStack, suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from bellwether import algorithms, data, models
from bellwether.cli import experiments
from bellwether.cli.console import EngineName, Quiet, Workers, out
from bellwether.cli.options import spread
from bellwether.cli.shown import chosen_engine, show
from bellwether.cli.stopping import stopping
from bellwether.cli.world import World
from bellwether.core.algorithm import Algorithm
from bellwether.core.errors import InputError
from bellwether.core.files import check_writable
from bellwether.core.profile import Profile
from bellwether.core.sgd import SGD
from bellwether.engines import Ray
from bellwether.experiments import demo as demonstration
from bellwether.experiments.comparison import Plan, compare
from bellwether.experiments.config.config import from_tree
from bellwether.experiments.config.describe import described
from bellwether.experiments.config.source import Source, Tree
from bellwether.experiments.config.tree import ALGORITHM, ENGINE
from bellwether.report.profile_table import profile_table
from bellwether.report.progress import Progress

WITH_FILE = ("file", "changes", "folder", "resume", "workers", "quiet")
"""What may be typed beside a file."""


def demo(
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of each method.")] = 60,
    seeds: Annotated[int, typer.Option(min=1, help="Repetitions, each with its own seed.")] = 3,
    folder: Annotated[Path, typer.Option("--out", help="Folder of the page.")] = Path("runs/demo"),
    workers: Workers = "auto",
    quiet: Quiet = False,
) -> None:
    """Five methods race on real handwritten digits: a table, and a page with the curves."""
    _show(demonstration.plan(rounds, seeds, chosen_engine(workers)), folder, quiet)


@spread
def run(
    context: typer.Context,
    world: World,
    file: Annotated[
        Path | None,
        typer.Argument(help="The file of an experiment (see: config explain); or use options."),
    ] = None,
    changes: experiments.Settings = None,
    algorithm: Annotated[
        list[str] | None,
        typer.Option(
            "--algorithm", "-a", help="A method (see: list algorithms); repeat it to compare."
        ),
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="A network (see: list models); by default one that fits.")
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of training.")] = 50,
    seed: Annotated[int, typer.Option(min=0, help="The first seed.")] = 0,
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds, counted from --seed.")] = 1,
    lr: Annotated[float, typer.Option(help="The clients' learning rate.")] = 0.05,
    epochs: Annotated[int, typer.Option(help="K, the clients' local epochs.")] = 5,
    batch_size: Annotated[int, typer.Option(help="Mini-batches, at clients and server.")] = 64,
    server_lr: Annotated[float, typer.Option(help="The server's learning rate.")] = 0.05,
    server_epochs: Annotated[int, typer.Option(help="E, the server's epochs.")] = 1,
    decay: Annotated[float, typer.Option(help="Both rates shrink by this every round.")] = 0.99,
    global_lr: Annotated[
        float | None,
        typer.Option(help="eta_g, the step on the mean; by default the method's."),
    ] = None,
    target: Annotated[
        float | None, typer.Option(help="Accuracy for 'rounds to the target'.")
    ] = None,
    stop_on_divergence: Annotated[
        bool, typer.Option(help="Stop where a number is not finite, or go on with it.")
    ] = True,
    folder: Annotated[
        Path | None,
        typer.Option("--out", help="Folder of the run; by default a new one in runs/."),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in --out.")] = False,
    workers: Workers = "auto",
    profile: Annotated[
        bool, typer.Option("--profile", help="Say where the rounds' time went.")
    ] = False,
    where: Annotated[
        EngineName,
        typer.Option("--engine", help="Where clients run: on this machine, or on Ray's."),
    ] = EngineName.LOCAL,
    ray_address: Annotated[
        str | None,
        typer.Option(
            help="HOST:PORT of a Ray cluster that this machine is a node of, or 'auto' for the one"
            " that runs here; by default Ray starts here for the run."
        ),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Train by a file, or one or more methods by options; a table, a page, all that was recorded.

    By a file: bellwether run experiment.toml --set training.rounds=20
    """
    if file is not None:
        given = _given(context)
        for name, flag in given.items():
            if name not in WITH_FILE:
                raise InputError(
                    f"{flag} is for runs without a file; change the file's key by --set, such as"
                    " --set training.rounds=20 (see: bellwether config explain)"
                )
        engine = chosen_engine(workers) if "workers" in given else None
        if resume:
            raise InputError("go on with a file's run by: bellwether resume, and its folder")
        experiments.begin(file, changes or [], folder, engine, quiet)
        return
    if not algorithm:
        raise InputError("give the file of an experiment, or a method such as -a fedclg-c")
    if changes:
        raise InputError("--set changes a key of a file; without a file use the options")
    if resume and folder is None:
        raise InputError("--resume needs --out, the folder of the run to go on with")
    engine = chosen_engine(workers, where, ray_address)
    settings = {
        "client": SGD(lr=lr, epochs=epochs, batch_size=batch_size, decay=decay),
        "server": SGD(lr=server_lr, epochs=server_epochs, batch_size=batch_size, decay=decay),
    } | ({} if global_lr is None else {"global_lr": global_lr})
    methods = {algorithms.find(name): algorithms.create(name, **settings) for name in algorithm}
    loaded = data.load(world.dataset)
    shape, classes = tuple(loaded.train.inputs.shape[1:]), len(loaded.classes)
    network = model or models.default_for(shape)
    models.create(network, shape, classes)  # an unknown name is said now
    owned, coming = world.owned, world.coming
    tested = f", {loaded.test.size:,} test samples" if loaded.test else ""
    plan = Plan(
        title=f"{' and '.join(methods)} on {loaded.name}",
        methods=methods,
        federation=lambda seed: world.federate(loaded, seed),
        model=lambda: models.create(network, shape, classes),
        participation=coming,
        rounds=rounds,
        seeds=range(seed, seed + seeds),
        target=target,
        class_names=loaded.classes,
        stop_on_divergence=stop_on_divergence,
        engine=engine,
        profiles={name: Profile() for name in methods} if profile else {},
        file=partial(
            _file,
            world,
            methods,
            model={"name": network},
            engine=described(ENGINE, engine),
            rounds=rounds,
            stop_on_divergence=stop_on_divergence,
            target=target,
        ),
        settings={
            "data": f"{loaded.name}{tested} ({loaded.source})",
            "clients": f"{world.clients}, {world.share}",
            "participation": str(coming),
            "server": str(owned) if owned else "no samples",
            "model": network,
            **{name: str(method) for name, method in methods.items()},
        },
    )
    if folder is None:
        names = "-".join(name.lower().replace(" ", "-") for name in methods)
        folder = Path("runs") / f"{datetime.now():%Y%m%d-%H%M%S}-{names}-{loaded.name}"
    elif folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is no folder; give another --out")
    elif not resume and folder.exists() and any(folder.iterdir()):
        raise InputError(f"{folder} is not empty; add --resume to go on, or give another --out")
    elif resume and not folder.exists():
        raise InputError(f"there is no run in {folder}; start one without --resume")
    with ExitStack() as stack:
        if isinstance(engine, Ray):  # once for all runs, and before anything is written
            with out.status("Looking for Ray ..."):
                stack.enter_context(engine)
        _show(plan, folder, quiet, keep=folder, resume=resume)


def _file(
    world: World,
    methods: Mapping[str, Algorithm[Any]],
    name: str,
    seed: int,
    *,
    model: Tree,
    engine: Tree,
    **training: Any,
) -> str:
    """What the options say, as the file of one method and seed."""
    kept = {key: value for key, value in training.items() if value is not None}
    tree = {
        **world.tables,
        "model": model,
        "algorithm": described(ALGORITHM, methods[name]),
        "training": {**kept, "seed": seed},
        "engine": engine,
    }
    return from_tree(tree, Source("the options")).text


def _given(context: typer.Context) -> dict[str, str]:
    """The parameters that were typed, each with its flag."""
    flags = {each.name: each.opts[0] for each in context.command.params}
    sources = {name: context.get_parameter_source(name) for name in flags if name}
    return {
        name: flags[name]
        for name, source in sources.items()
        if source is not None and source.name == "COMMANDLINE"
    }


def _show(
    plan: Plan, folder: Path, quiet: bool, keep: Path | None = None, resume: bool = False
) -> None:
    """Run the plan before the user's eyes; show the table and say where the page is."""
    page = folder / "report.html"
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    check_writable(folder)
    try:
        runs = len(plan.methods) * len(plan.seeds)
        with stopping() as asked, Progress(runs, plan.rounds, quiet=quiet) as progress:
            comparison = compare(plan, asked.after(progress.update), keep, resume)
    finally:
        with suppress(OSError):
            for path in missing:  # made for a run of which nothing was written
                path.rmdir()
    show(comparison, page)
    for name, measured in plan.profiles.items():
        out.print(profile_table(name, measured))
    if not all(comparison.finished(run) for run in comparison.runs):
        again = " Go on with the same command and --resume." if keep else ""
        out.print(f"Stopped by Ctrl-C; what was done is kept.{again}")
        raise typer.Exit(130)
