"""`bellwether study`: many runs in parallel, and the table of what they found."""

import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from bellwether.cli.console import Quiet, out
from bellwether.core.records import RoundRecord
from bellwether.experiments.config.source import Tree
from bellwether.experiments.study.conduct import conduct
from bellwether.experiments.study.plan import Cell
from bellwether.experiments.study.pool import Stop
from bellwether.experiments.study.read import load
from bellwether.report.progress import Progress
from bellwether.report.study_table import study_table


def study(
    file: Annotated[Path, typer.Argument(help="The file of a study: a base, axes, a question.")],
    jobs: Annotated[
        int | None,
        typer.Option(min=1, help="Runs at a time, each a process; by default one a core."),
    ] = None,
    folder: Annotated[
        Path | None, typer.Option("--out", help="Folder of the runs; by default runs/NAME.")
    ] = None,
    plan: Annotated[bool, typer.Option("--plan", help="Only say what would run.")] = False,
    quiet: Quiet = False,
) -> None:
    """Run all of a study that is not done yet, in parallel; a table of what it found.

    The same command goes on after Ctrl-C, a crash or a kill, and skips what is done.
    """
    asked = load(file)
    folder = folder or Path("runs") / file.stem
    if plan:
        for cell in _all(asked.tuning_cells()) + asked.cells():
            out.print(cell.name, highlight=False, markup=False, soft_wrap=True)
        return
    with _stopping() as stop, ExitStack() as shown:

        def watch(phase: str, cells: Sequence[Cell]) -> Callable[[Cell, RoundRecord], None]:
            shown.close()  # the phase before
            rounds = [cell.config.experiment.training["rounds"] for cell in cells]
            progress = shown.enter_context(
                Progress(len(cells), max(rounds), total=sum(rounds), quiet=quiet)
            )
            return lambda cell, record: progress.update(_short(phase, cell), cell.seed, record)

        ended = conduct(asked, folder, jobs or os.cpu_count() or 1, watch, stop)
    if ended.results.rows:
        out.print(study_table(ended.results))
        where = (folder / "results.json").resolve()
        out.print(f"Every number: {where}", soft_wrap=True, highlight=False, markup=False)
    for line in _failures(ended.failed):
        Console(stderr=True).print(line, soft_wrap=True, highlight=False, markup=False)
    if ended.stopped:
        out.print("Stopped by Ctrl-C; what was done is kept. The same command goes on.")
        raise typer.Exit(130)
    if ended.failed:
        raise typer.Exit(1)


def _all(tuning: dict[str, dict[str, tuple[Tree, list[Cell]]]]) -> list[Cell]:
    return [cell for points in tuning.values() for _, own in points.values() for cell in own]


def _failures(failed: Mapping[str, str]) -> Iterator[str]:
    """A line a reason."""
    for reason in dict.fromkeys(failed.values()):
        names = [name for name, each in failed.items() if each == reason]
        others = f" and {len(names) - 1} more" if len(names) > 1 else ""
        yield f"failed: {names[0]}{others}: {reason}"


def _short(phase: str, cell: Cell) -> str:
    """A run's name without what every run's has."""
    middle = "/".join(cell.name.split("/")[1:-1])
    return f"{phase} {middle}" if phase == "tuning" else middle


@contextmanager
def _stopping() -> Iterator[Stop]:
    """Ctrl-C once: finish the rounds and save. Twice: stop now."""
    stop = Stop()

    def ask(*_: object) -> None:
        stop.level += 1
        if stop.level == 1:
            Console(stderr=True).print("Finishing the rounds; Ctrl-C again stops now.")

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)
