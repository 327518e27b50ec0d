"""What every command shares: where it prints, and the options that mean the same everywhere."""

from typing import Annotated

import typer
from rich.console import Console

out = Console()
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, only the result.")]
