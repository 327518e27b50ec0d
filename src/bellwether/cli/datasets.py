"""`bellwether data`: which data sets there are, what is in them, and how to get them."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from bellwether import data
from bellwether.cli.console import Quiet, out
from bellwether.core.dataset import Dataset
from bellwether.core.errors import InputError
from bellwether.core.files import write_atomically
from bellwether.data.catalogue import CATALOGUE, Entry
from bellwether.data.download import by_hand
from bellwether.data.places import VARIABLE
from bellwether.report.contact_sheet import can_be_pictured, contact_sheet

app = typer.Typer(
    help="Data sets: list them, look at one, download one.\n\n"
    f"They are looked for in the folder that the environment variable {VARIABLE} names, then in "
    "your cache folder, where 'get' puts them. 'digits' is always there.",
    epilog="Start with: bellwether data show digits",
    no_args_is_help=True,
)

_ROWS = 25
"""More classes than this stand side by side."""


@app.command("list")
def list_() -> None:
    """Every data set: its training + test images as published, and where it was found."""
    indent = 2 + max(map(len, CATALOGUE))
    for name, entry in CATALOGUE.items():
        train, test = entry.counts
        counts = f"{train:,} + {test:,} images" if test else f"{train:,} images"
        _say(f"{name:{indent}}", entry.description)
        _say("", f"{'':{indent}}published: {counts}; {_where(name, entry)}")


@app.command()
def show(
    name: Annotated[
        str, typer.Argument(help="A data set (see: data list), or the path of your own.")
    ],
    picture: Annotated[
        Path | None,
        typer.Option("--out", help="The picture's file; by default runs/data/NAME.png."),
    ] = None,
) -> None:
    """What is in a data set: where it is, how many of each class, and a picture of samples."""
    dataset = data.load(name)
    entry = CATALOGUE.get(name)
    inputs = dataset.train.inputs
    test = f", {dataset.test.size:,} for testing" if dataset.test else ""
    facts = {
        "found": dataset.source,
        "samples": f"{dataset.train.size:,} for training{test}",
        "shape": f"{'x'.join(map(str, inputs.shape[1:]))}, {str(inputs.dtype).split('.')[-1]}",
    }
    if entry:
        facts["scaled"] = (
            f"(pixel / {entry.white} - mean) / deviation, "
            f"mean {_numbers(entry.mean)}, deviation {_numbers(entry.deviation)}"
        )
        facts["origin"] = entry.origin
    title = entry.description if entry else "your own data"
    _say(f"{dataset.name}: ", title)
    for fact, value in facts.items():
        _say("", f"  {fact:9}{value}")
    if dataset.classes:
        out.print()
        out.print(_class_counts(dataset))
    if can_be_pictured(dataset):
        file = picture or Path("runs") / "data" / f"{dataset.name}.png"
        write_atomically(file, contact_sheet(dataset, f"{title}: {facts['samples']}", entry))
        _say("", f"\nSamples of each class: {file.resolve()}")
    elif picture:
        raise InputError(f"{name} holds no images of named classes, so there is no picture")


@app.command(
    help="Download data sets from the Hugging Face hub into your cache folder.\n\n"
    "Checksums are compared, so damaged files are never used. A download that broke off goes on "
    "where it was with the same command. It needs: pip install 'bellwether-fl\\[hub]'",
)
def get(
    names: Annotated[list[str], typer.Argument(help="Data sets (see: data list).")],
    endpoint: Annotated[
        str | None,
        typer.Option(help="Address of the hub or of a mirror.", envvar="HF_ENDPOINT"),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Download data sets into your cache folder."""
    for name in names:
        try:
            folder = data.get(name, endpoint=endpoint, quiet=quiet)
        except KeyboardInterrupt:
            out.print("Stopped by Ctrl-C; what came is kept, the same command goes on.")
            raise typer.Exit(130) from None
        _say(name, f" is complete: {folder}")
        if (found := data.find(name)) != str(folder):
            _say("", f"  but {found} comes first; unset {VARIABLE} to use the download")


def _where(name: str, entry: Entry) -> str:
    try:
        found = data.find(name)
    except InputError as error:
        return str(error)
    if found:
        return f"found: {found}"
    return f"not found; {f'run: bellwether data get {name}' if entry.hub else by_hand(entry)}"


def _class_counts(dataset: Dataset) -> Table:
    """Training and test samples of each class, in as many column groups as keep it low and fit."""
    names = list(dataset.classes)
    parts = [dataset.train, *([dataset.test] if dataset.test else [])]
    counts = [part.targets.bincount(minlength=len(names)).tolist() for part in parts]
    room = out.width // (max(map(len, names)) + 9 * len(parts))
    groups = max(1, min(-(-len(names) // _ROWS), room))
    rows = -(-len(names) // groups)
    table = Table(box=None, pad_edge=False)
    for _ in range(groups):
        table.add_column("class")
        for title in ("train", "test")[: len(parts)]:
            table.add_column(title, justify="right")
    for row in range(rows):
        cells: list[RenderableType] = []
        for label in range(row, len(names), rows):
            cells += [Text(names[label]), *(f"{count[label]:,}" for count in counts)]
        table.add_row(*cells)
    return table


def _numbers(values: tuple[float, ...]) -> str:
    return " ".join(f"{value:.4f}" for value in values)


def _say(name: str, text: str) -> None:
    """A line that stays in one piece; it may hold what looks like markup: a path, a name."""
    out.print(Text.assemble((name, "bold"), text), soft_wrap=True)
