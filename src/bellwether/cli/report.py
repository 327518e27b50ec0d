"""`bellwether report` and `bellwether watch`: what runs wrote down, as pages and tables."""

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from bellwether.cli.console import out
from bellwether.core.errors import InputError, unknown
from bellwether.experiments.recorded import read_comparison
from bellwether.experiments.summary import Metric, summarise
from bellwether.report.export import Format, printed
from bellwether.report.mlflow import followed
from bellwether.report.page import write_page
from bellwether.report.table import comparison_table
from bellwether.report.tables import Table, tables
from bellwether.report.tensorboard import board
from bellwether.report.trackers import export
from bellwether.report.watch import LOOPBACK, watching


def report(
    folders: Annotated[
        list[Path],
        typer.Argument(
            metavar="DIR...", help="Folders of runs: what `run --out` made, or of single runs."
        ),
    ],
    page: Annotated[
        Path | None,
        typer.Option(
            "--out", help="The page; by default report.html in DIR, or here if there are several."
        ),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(help="The method to compare with; by default FedAvg, or else the first."),
    ] = None,
    target: Annotated[
        float | None,
        typer.Option(help="Accuracy (or loss) for 'rounds to the target', such as 0.97."),
    ] = None,
    format: Annotated[
        Format | None,
        typer.Option(help="Print every table so; a page is then written only with --out."),
    ] = None,
    tensorboard: Annotated[
        Path | None,
        typer.Option(help="Also write event files for TensorBoard into this folder."),
    ] = None,
    mlflow: Annotated[
        str | None,
        typer.Option(help="Also tell MLflow at this address, such as http://127.0.0.1:5000."),
    ] = None,
    table: Annotated[
        str | None, typer.Option(help="Of the tables to print only this one, such as 'summary'.")
    ] = None,
) -> None:
    """One page that fetches nothing, from runs: curves, tables, tests, who came, who holds what."""
    comparison = read_comparison(folders, target)
    summary = summarise(comparison)
    if target is not None and summary.metric is Metric.ACCURACY and target > 1:
        raise InputError(
            f"accuracies lie between 0 and 1: --target {target / 100:g}, not {target:g}?"
        )
    found = tables(comparison, summary, baseline)
    if table is not None and format is None:
        raise InputError("--table chooses what --format prints; add --format csv")
    if tensorboard is not None:
        export(comparison, partial(board, tensorboard))
    if mlflow is not None:
        export(comparison, partial(followed, mlflow, comparison.title))
    if format is not None:
        typer.echo(printed(_chosen(found, table), format), nl=False)
        if page is None:
            return
    path = page or (folders[0] if len(folders) == 1 else Path()) / "report.html"
    write_page(comparison, path, baseline)
    if format is None:
        out.print(comparison_table(summary))
        out.print(f"The page: {path.resolve()}", soft_wrap=True, highlight=False, markup=False)


def watch(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="What `run --out` writes to, or a single run.")
    ],
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Of the page; 0 for any free one.")
    ] = 8765,
) -> None:
    """A page with curves that grow while runs train; this machine only, Ctrl-C ends it."""
    with watching(folder, port) as server:
        address = f"http://{LOOPBACK}:{server.server_address[1]}/"
        out.print(f"Watching {folder}: {address}", soft_wrap=True, highlight=False, markup=False)
        with suppress(KeyboardInterrupt):
            server.serve_forever()


def _chosen(found: Sequence[Table], name: str | None) -> Sequence[Table]:
    if name is None:
        return found
    names = [table.name for table in found]
    if name not in names:
        raise unknown("table", name, names)
    return [table for table in found if table.name == name]
