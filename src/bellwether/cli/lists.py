"""`bellwether list`: what there is."""

from enum import StrEnum
from typing import Annotated

import typer
from rich.table import Table

from bellwether import algorithms, data, models
from bellwether.cli.console import out


class Kind(StrEnum):
    """What can be listed."""

    ALGORITHMS = "algorithms"
    DATA = "data"
    MODELS = "models"


def list_(kind: Annotated[Kind, typer.Argument(help="What to list.")]) -> None:
    """What there is: methods, data sets, networks."""
    rooms = {Kind.ALGORITHMS: algorithms, Kind.DATA: data, Kind.MODELS: models}
    table = Table(box=None, show_header=False, pad_edge=False)
    for name, description in rooms[kind].names().items():
        table.add_row(f"[bold]{name}[/]", description)
    out.print(table)
