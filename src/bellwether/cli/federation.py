"""`bellwether federation`: who holds what and who comes, before anybody trains."""

from pathlib import Path
from typing import Annotated

import typer

from bellwether import data
from bellwether.cli.console import out
from bellwether.cli.options import spread
from bellwether.cli.world import World
from bellwether.report.federation_page import write_federation_page
from bellwether.report.federation_table import federation_table
from bellwether.report.overview import overview

app = typer.Typer(help="Who holds what and who comes, before anybody trains.", no_args_is_help=True)


@app.callback()
def root() -> None:
    """A group, though it has one command only."""


@app.command()
@spread
def show(
    world: World,
    seed: Annotated[int, typer.Option(min=0, help="The seed of all draws.")] = 0,
    rounds: Annotated[
        int, typer.Option(min=1, max=1000, help="How many rounds of who comes to show.")
    ] = 50,
    page: Annotated[Path, typer.Option("--out", help="The page with the pictures.")] = Path(
        "runs/federation.html"
    ),
    save: Annotated[
        Path | None, typer.Option(help="Write who holds which sample to this JSON file.")
    ] = None,
) -> None:
    """A federation as `run` with the same options would make it: a table and a page of pictures."""
    loaded = data.load(world.dataset)
    coming = world.coming
    manifest = world.federate(loaded, seed).manifest
    assert manifest is not None
    shown = overview(manifest, coming, rounds, loaded.classes)
    write_federation_page(shown, page)
    out.print(federation_table(shown))
    out.print(f"The pictures: {page.resolve()}", soft_wrap=True, highlight=False, markup=False)
    if save:
        manifest.save(save)
        out.print(
            f"Who holds what: {save.resolve()}", soft_wrap=True, highlight=False, markup=False
        )
