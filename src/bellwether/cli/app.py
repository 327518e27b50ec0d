"""The command itself: its groups, its version, and how a mistake ends."""

import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from bellwether.cli import federation, lists, training
from bellwether.cli.console import out
from bellwether.core.errors import BellwetherError
from bellwether.version import __version__

app = typer.Typer(
    help="Server-assisted federated learning: the server owns a little data, and it learns too.",
    epilog="Start with: bellwether demo",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)
app.command("list")(lists.list_)
app.command()(training.demo)
app.command()(training.run)
app.add_typer(federation.app, name="federation")


def main() -> None:
    """Run the command; a user's mistake is one line and exit code 2."""
    try:
        app()
    except BellwetherError as error:
        # A Text, since what the user typed may look like markup: 'bellwether-fl[parquet]'.
        line = Text.assemble(("error:", "bold red"), f" {error}")
        Console(stderr=True).print(line, soft_wrap=True)
        sys.exit(2)


def _version(wanted: bool) -> None:
    if wanted:
        out.print(f"bellwether {__version__}", highlight=False)
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Say which version."),
    ] = False,
) -> None:
    """Nothing but the options of every command."""
