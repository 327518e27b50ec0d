"""Tables as text for other programs, with the digits of the page."""

import csv
import io
from collections.abc import Callable, Sequence
from enum import StrEnum

from bellwether.report.rows import Cell
from bellwether.report.tables import Table

LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": "$<$", ">": "$>$", "±": r"$\pm$", "≥": r"$\ge$", "≤": r"$\le$", "\N{MINUS SIGN}": "$-$",
    "\N{MULTIPLICATION SIGN}": r"$\times$", "—": "---",
}  # fmt: skip


class Format(StrEnum):
    """What a table can be written as."""

    CSV = "csv"
    MARKDOWN = "markdown"
    LATEX = "latex"


def exported(table: Table, format: Format) -> str:
    """The table as a file of this format holds it."""
    return _WRITERS[format](table)


def printed(tables: Sequence[Table], format: Format) -> str:
    """Several tables, an empty line between them."""
    return "\n".join(exported(table, format) for table in tables)


def _csv(table: Table) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("method", *table.headers))
    writer.writerows((row.algorithm, *map(cell_text, row.cells)) for row in table.rows)
    return out.getvalue()


def _markdown(table: Table) -> str:
    def line(cells: Sequence[str]) -> str:
        return f"| {' | '.join(cells)} |\n"

    def bold(cell: Cell) -> str:
        text = _escaped(cell_text(cell))
        return f"**{text}**" if cell.best else text

    head = line(("method", *map(_escaped, table.headers)))
    rule = f"|---|{'---:|' * len(table.headers)}\n"
    body = "".join(line((_escaped(row.algorithm), *map(bold, row.cells))) for row in table.rows)
    return f"**{_escaped(table.title)}**\n\n{head}{rule}{body}\n{_escaped(_below(table))}\n"


def _latex(table: Table) -> str:
    def line(cells: Sequence[str]) -> str:
        return f"    {' & '.join(cells)} \\\\\n"

    def bold(cell: Cell) -> str:
        text = _tex(cell_text(cell))
        return rf"\textbf{{{text}}}" if cell.best else text

    head = line(("method", *map(_tex, table.headers)))
    body = "".join(line((_tex(row.algorithm), *map(bold, row.cells))) for row in table.rows)
    return (
        "% needs \\usepackage{booktabs}\n"
        "\\begin{table}\n  \\centering\n"
        f"  \\caption{{{_tex(table.title)}. {_tex(_below(table))}}}\n"
        f"  \\begin{{tabular}}{{l{'r' * len(table.headers)}}}\n    \\toprule\n"
        f"{head}    \\midrule\n{body}    \\bottomrule\n  \\end{{tabular}}\n\\end{{table}}\n"
    )


def _below(table: Table) -> str:
    return f"{table.caption} {table.reading}".strip()


def cell_text(cell: Cell) -> str:
    """The cell as the page shows it."""
    return f"{cell.text} {cell.detail}".strip()


def _escaped(text: str) -> str:
    """Without what Markdown would read as more than text."""
    flat = " ".join(text.split())
    return "".join(f"\\{mark}" if mark in "\\`*_[]<>|" else mark for mark in flat)


def _tex(text: str) -> str:
    return "".join(LATEX.get(mark, mark) for mark in " ".join(text.split()))


_WRITERS: dict[Format, Callable[[Table], str]] = {
    Format.CSV: _csv,
    Format.MARKDOWN: _markdown,
    Format.LATEX: _latex,
}
