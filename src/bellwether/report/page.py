"""The comparison as one HTML file that fetches nothing."""

from collections.abc import Sequence
from html import escape
from pathlib import Path

from bellwether.core.files import write_atomically
from bellwether.experiments.attendance import attendance
from bellwether.experiments.results import Comparison
from bellwether.experiments.summary import Summary, summarise
from bellwether.report.coming import coming_caption
from bellwether.report.curves import curves_section
from bellwether.report.embedded import embedded
from bellwether.report.frame import framed, notes_list, settings_section
from bellwether.report.headline import headline
from bellwether.report.holdings import holdings_section
from bellwether.report.rows import Cell
from bellwether.report.tables import PARTICIPATION, Table, tables

SCRIPTS = (
    "holdings.js", "coming.js", "charts.js", "files.js", "legend.js", "page.js",
)  # fmt: skip


def write_page(comparison: Comparison, path: Path | str, baseline: str | None = None) -> Path:
    """Write the page; whoever reads the path sees the old file or the new one, never a part."""
    return write_atomically(Path(path), page(comparison, baseline))


def page(comparison: Comparison, baseline: str | None = None) -> str:
    """The HTML; every text of the user is escaped, every chart is drawn from the embedded JSON."""
    summary = summarise(comparison)
    sentence = headline(summary)
    found = tables(comparison, summary, baseline)
    return framed(
        comparison.title,
        "page.html",
        embedded(comparison, summary, sentence, found),
        SCRIPTS,
        headline=_prose(sentence),
        notes=notes_list(summary.notes),
        curves=curves_section(_metrics(summary), _band(summary), _bytes(summary)),
        tables=_sections([table for table in found if table.name != PARTICIPATION]),
        coming="".join(_coming(comparison, t) for t in found if t.name == PARTICIPATION),
        holdings=holdings_section(
            comparison.histogram, comparison.server_histogram, comparison.server_draws
        ),
        settings=settings_section(comparison.settings) + _configurations(comparison),
    )


def _metrics(summary: Summary) -> list[str]:
    lossy = any(method.loss for method in summary.methods)
    return [summary.metric.value, *(["loss"] if lossy else [])]


def _band(summary: Summary) -> str:
    if all(len(method.seeds) < 2 for method in summary.methods):
        return "One seed, so no band of spread."
    return "Mean over seeds; the band is one sample standard deviation to either side."


def _bytes(summary: Summary) -> str:
    text = "From the start of a run, all clients together."
    if any(method.rounds and not method.bytes_down + method.bytes_up for method in summary.methods):
        text += f" A method that sends nothing is the dashed line at its final {summary.metric}."
    return text


def _sections(found: Sequence[Table]) -> str:
    """A section each; how to read several tables is said once, after the last of them."""
    after = [*(table.reading for table in found[1:]), ""]
    return "\n\n".join(
        f'<section class="{"tests" if table.reading else "numbers"}" id="{table.name}">'
        f"<h2>{escape(table.title)}</h2>{_table(table)}{_reading(table, following)}</section>"
        for table, following in zip(found, after, strict=True)
    )


def _reading(table: Table, following: str) -> str:
    said = table.reading and table.reading != following
    return f'<p class="caption">{_prose(table.reading)}</p>' if said else ""


def _coming(comparison: Comparison, table: Table) -> str:
    """Who came: the map, and the table below it."""
    caption = coming_caption(attendance(comparison))
    return (
        f'<section class="numbers" id="{table.name}"><h2>{escape(table.title)}</h2>'
        f'<figure><div id="came"></div><figcaption>{caption}</figcaption></figure>'
        f"{_table(table)}</section>"
    )


def _table(table: Table) -> str:
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in ("method", *table.headers))
    body = "".join(
        f'<tr><th scope="row">{escape(row.algorithm)}</th>'
        + "".join(_cell(cell, name) for cell, name in zip(row.cells, table.headers, strict=True))
        + "</tr>"
        for row in table.rows
    )
    files = "".join(
        f'<a download="{table.name}.{ending}">{name}</a>'
        for ending, name in (("csv", "CSV"), ("md", "Markdown"), ("tex", "LaTeX"))
    )
    return (
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        f'<p class="caption">{_prose(table.caption)}</p>'
        f'<p class="exports">{files}</p>'
    )


def _prose(text: str) -> str:
    """A text in which no line begins with a percent sign."""
    return escape(text).replace(" %", "&nbsp;%")


def _configurations(comparison: Comparison) -> str:
    files = "".join(
        f"<details><summary>{escape(name)}</summary><pre>{escape(text)}</pre></details>"
        for name, text in comparison.configurations.items()
    )
    return f'<section class="configuration"><h2>Configuration</h2>{files}</section>' * bool(files)


def _cell(cell: Cell, name: str) -> str:
    value = "" if cell.value is None else f' data-value="{cell.value!r}"'
    best = ' class="best"' if cell.best else ""
    detail = f" <small>{escape(cell.detail)}</small>" if cell.detail else ""
    return f'<td data-name="{escape(name)}"{value}{best}>{escape(cell.text)}{detail}</td>'
