"""What every command shares: where it prints, and the options that mean the same everywhere."""

from enum import StrEnum
from typing import Annotated

import typer
from rich.console import Console

out = Console()
Workers = Annotated[
    str,
    typer.Option(
        help="Processes that run clients: a number, or 'auto' for one a core where that pays."
        " The results are the same."
    ),
]


class EngineName(StrEnum):
    """Where clients run."""

    LOCAL = "local"
    RAY = "ray"


Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, only the result.")]
