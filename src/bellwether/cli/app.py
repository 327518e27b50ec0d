"""The command itself: its groups, its version, and how a mistake ends."""

import sys
import warnings
from typing import Annotated, NoReturn

import typer
from rich.console import Console
from rich.text import Text

from bellwether.cli import datasets, experiments, federation, lists, report, studies, training
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
app.command()(report.report)
app.command()(report.watch)
app.command()(experiments.resume)
app.command()(studies.study)
app.add_typer(experiments.config, name="config")
app.add_typer(federation.app, name="federation")
app.add_typer(datasets.app, name="data")


def main() -> None:
    """Run the command; a user's mistake is one line and exit code 2."""
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _note
            sys.exit(app(standalone_mode=False))
    except BellwetherError as error:
        _refuse(str(error))
    except typer.TyperException as error:  # no such command or option, or no such value of it
        if len(sys.argv) > 1:  # otherwise it was the help that was shown
            _refuse(_told(error))
        sys.exit(2)


def _told(error: typer.TyperException) -> str:
    """What was wrong with what was typed, in one line, and where to read more."""
    context = getattr(error, "ctx", None)
    text: str = getattr(error, "format_message", error.__str__)()
    line = " ".join(text.replace("Value error, ", "").split()).rstrip(".")
    return f"{line}; see {context.command_path if context else 'bellwether'} --help"


def _refuse(mistake: str) -> NoReturn:
    # A Text, since what the user typed may look like markup: 'bellwether-fl[parquet]'.
    line = Text.assemble(("error:", "bold red"), f" {mistake}")
    Console(stderr=True).print(line, soft_wrap=True)
    sys.exit(2)


def _note(message: Warning | str, *_: object, **__: object) -> None:
    """A warning in one line, without the place in the source."""
    Console(stderr=True).print(f"note: {message}", soft_wrap=True, highlight=False, markup=False)


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
