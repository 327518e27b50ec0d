"""The comparison as one HTML file that fetches nothing."""

from html import escape
from pathlib import Path

from bellwether.core.files import write_atomically
from bellwether.experiments.results import Comparison
from bellwether.experiments.summary import Summary, summarise
from bellwether.report.embedded import embedded
from bellwether.report.frame import framed, notes_list, settings_section
from bellwether.report.headline import headline
from bellwether.report.holdings import holdings_section
from bellwether.report.rows import Cell, caption, headers, rows


def write_page(comparison: Comparison, path: Path | str) -> Path:
    """Write the page; whoever reads the path sees the old file or the new one, never a part."""
    return write_atomically(Path(path), page(comparison))


def page(comparison: Comparison) -> str:
    """The HTML; every text of the user is escaped, every chart is drawn from the embedded JSON."""
    summary = summarise(comparison)
    sentence = headline(summary)
    metric = summary.metric.value
    return framed(
        comparison.title,
        "page.html",
        embedded(comparison, summary, sentence),
        ("holdings.js", "charts.js", "csv.js", "page.js"),
        headline=escape(sentence).replace(" %", "&nbsp;%"),
        metric=metric,
        Metric=metric.capitalize(),
        notes=notes_list(summary.notes),
        band=_band(summary),
        bytes=_bytes(summary),
        table=_table(summary),
        caption=escape(caption(summary)),
        holdings=holdings_section(
            comparison.histogram, comparison.server_histogram, comparison.server_draws
        ),
        settings=settings_section(comparison.settings),
    )


def _band(summary: Summary) -> str:
    if all(len(method.seeds) < 2 for method in summary.methods):
        return "One seed, so no band of spread."
    return "Mean over seeds; the band is one sample standard deviation to either side."


def _bytes(summary: Summary) -> str:
    text = "Down and up together, from the start of a run."
    if any(method.rounds and not method.bytes_down + method.bytes_up for method in summary.methods):
        text += f" A method that sends nothing is the dashed line at its final {summary.metric}."
    return text


def _table(summary: Summary) -> str:
    names = headers(summary)
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in ("method", *names))
    body = "".join(
        f'<tr><th scope="row">{escape(row.algorithm)}</th>'
        + "".join(_cell(cell, name) for cell, name in zip(row.cells, names, strict=True))
        + "</tr>"
        for row in rows(summary)
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(cell: Cell, name: str) -> str:
    value = "" if cell.value is None else f' data-value="{cell.value!r}"'
    best = ' class="best"' if cell.best else ""
    detail = f" <small>{escape(cell.detail)}</small>" if cell.detail else ""
    return f'<td data-name="{escape(name)}"{value}{best}>{escape(cell.text)}{detail}</td>'
