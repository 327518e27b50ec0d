"""The comparison as a table for the terminal."""

from rich import box
from rich.table import Table
from rich.text import Text

from bellwether.experiments.summary import Summary
from bellwether.report.rows import Cell, caption, headers, rows


def comparison_table(summary: Summary) -> Table:
    """A row a method, best values bold; fits 80 columns (long names wrap)."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, caption=_caption(summary))
    table.caption_justify = "left"
    table.add_column("method", overflow="fold")
    for header in headers(summary):  # only the name of the goal is longer than its numbers
        table.add_column(header, justify="right", no_wrap=not header.startswith("rounds"))
    for row in rows(summary):
        table.add_row(Text(row.algorithm), *(_text(cell) for cell in row.cells))
    return table


def _text(cell: Cell) -> Text:
    text = Text(cell.text, style="bold green" if cell.best else "", no_wrap=True)
    if cell.detail:
        text.append(f" {cell.detail}", style="dim")
    return text


def _caption(summary: Summary) -> Text:
    notes = (Text(note, "yellow") for note in summary.notes)
    return Text("\n").join([Text(caption(summary)), *notes])
