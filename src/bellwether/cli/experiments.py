"""`bellwether run FILE`, `resume` and `config`: experiments that files describe."""

from collections.abc import Callable
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from bellwether.cli.console import Quiet, out
from bellwether.cli.shown import chosen_engine, show
from bellwether.cli.stopping import stopping
from bellwether.core.interfaces import Engine
from bellwether.experiments import perform
from bellwether.experiments.config.config import Config, load
from bellwether.experiments.config.explain import explain as explained
from bellwether.experiments.run import Result
from bellwether.experiments.study.questions import QUESTION
from bellwether.experiments.training import Interrupted
from bellwether.report.progress import Progress

Settings = Annotated[
    list[str] | None,
    typer.Option("--set", help="Change a key of the file: algorithm.client.lr=0.1; repeatable."),
]
config = typer.Typer(help="The file of an experiment: its keys, and what is in one.")


@config.command()
def explain(
    place: Annotated[
        str, typer.Argument(help="Such as algorithm.fedclg-c, partition.dirichlet, training.")
    ] = "",
) -> None:
    """Every key that may stand at a place of the file: what it takes, its default, its meaning."""
    told = explained(place, {"question": QUESTION})
    out.print(Text(told.title, "bold"))
    if told.about:
        out.print(Text(f"{told.about}\n"))
    table = Table(box=None, pad_edge=False, show_header=False)
    for line in told.lines:
        table.add_row(*map(Text, (line.name, line.wanted, line.default, line.meaning)))
    out.print(table)
    if told.more:
        out.print(Text(f"\nMore: bellwether config explain {told.more[0]}", "dim"))


@config.command("show")
def show_(
    file: Annotated[Path, typer.Argument(help="The file of an experiment.")],
    settings: Settings = None,
) -> None:
    """The complete file, with every default filled in: what a run's folder keeps."""
    print(load(file, settings or ()).text, end="")


def begin(
    file: Path, settings: list[str], folder: Path | None, engine: Engine | None, quiet: bool
) -> None:
    """Run the experiment of a file in a new folder."""
    described = load(file, settings)
    folder = folder or Path("runs") / f"{datetime.now():%Y%m%d-%H%M%S}-{file.stem}"
    _performed(described, folder, quiet, partial(perform.begin, described, folder, engine=engine))


def resume(
    folder: Annotated[Path, typer.Argument(help="The folder of a run.")],
    rounds: Annotated[
        int | None, typer.Option(min=1, help="Go on to so many rounds, more than planned.")
    ] = None,
    workers: Annotated[
        str | None, typer.Option(help="Processes that run clients; by default as its file says.")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Go on with a run that was stopped or killed; it ends in the bits of one that never was."""
    described = perform.kept(folder)
    if rounds is not None:
        described = perform.longer(described, folder, rounds)
    engine = chosen_engine(workers) if workers else None
    _performed(described, folder, quiet, partial(perform.resume, described, folder, engine=engine))


def _performed(
    described: Config, folder: Path, quiet: bool, training: Callable[..., Result]
) -> None:
    """Train before the user's eyes; show the table and say where the page is."""
    name, seed = perform.title(described), described.experiment.training["seed"]
    rounds = max(1, described.experiment.training["rounds"])
    complete = True
    with stopping() as asked, Progress(1, rounds, quiet=quiet) as progress:
        try:
            result = training(on_round=asked.after(partial(progress.update, name, seed)))
        except Interrupted as interrupt:
            result, complete = interrupt.result, False
    if result.history:
        perform.keep_manifest(described, folder)
        show(perform.comparison(described, result.history, complete), folder / "report.html")
    if not complete:
        out.print(f"Stopped by Ctrl-C; go on with: bellwether resume {folder}", soft_wrap=True,
            highlight=False, markup=False)  # fmt: skip
        raise typer.Exit(130)
