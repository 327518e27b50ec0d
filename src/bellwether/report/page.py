"""The comparison as one HTML file that fetches nothing."""

from collections.abc import Mapping
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template

from plotly.offline import get_plotlyjs

from bellwether.core.files import write_atomically
from bellwether.experiments.results import Comparison
from bellwether.experiments.summary import Summary, summarise
from bellwether.federation.labels import cosine
from bellwether.report.embedded import COLUMNS, embedded
from bellwether.report.headline import headline
from bellwether.report.rows import Cell, caption, headers, rows


def write_page(comparison: Comparison, path: Path | str) -> Path:
    """Write the page; whoever reads the path sees the old file or the new one, never a part."""
    return write_atomically(Path(path), page(comparison))


def page(comparison: Comparison) -> str:
    """The HTML; every text of the user is escaped, every chart is drawn from the embedded JSON."""
    summary = summarise(comparison)
    sentence = headline(summary)
    metric = summary.metric.value
    return Template(_asset("page.html")).substitute(
        title=escape(comparison.title),
        headline=escape(sentence).replace(" %", "&nbsp;%"),
        metric=metric,
        Metric=metric.capitalize(),
        notes=_notes(summary),
        band=_band(summary),
        bytes=_bytes(summary),
        table=_table(summary),
        caption=escape(caption(summary)),
        holdings=_holdings(comparison),
        settings=_settings(comparison.settings),
        results=embedded(comparison, summary, sentence),
        style=_asset("page.css"),
        charts=_asset("charts.js"),
        script=_asset("page.js"),
        plotly=get_plotlyjs(),
    )


def _asset(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _notes(summary: Summary) -> str:
    if not summary.notes:
        return ""
    items = "".join(f"<li>{escape(note)}</li>" for note in summary.notes)
    return f'<ul class="notes">{items}</ul>'


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


def _holdings(comparison: Comparison) -> str:
    counts, server = comparison.histogram, comparison.server_histogram
    if counts is None:
        return ""
    text = f"{int(counts.sum()):,} samples at {len(counts):,} clients, a column each"
    if len(counts) > COLUMNS:
        text += " (evenly chosen ones)"
    text += f"; the strongest colour is {int(counts.max()):,}. Beside it, each label's share."
    if server is not None and server.sum():
        owned, draws = f"{int(server.sum()):,}", comparison.server_draws
        holds = f"draws {draws:,} of {owned} each round" if draws else f"holds {owned}"
        text += (
            f" The server {holds}; the cosine similarity of its labels with the population's is"
            f" {cosine(server, counts.sum(axis=0)):.3f}."
        )
    return (
        '<section class="holdings"><h2>Who holds what</h2><figure><div id="holdings"></div>'
        f"<figcaption>{escape(text)}</figcaption></figure></section>"
    )


def _settings(settings: Mapping[str, str]) -> str:
    if not settings:
        return ""
    items = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>"
        for name, value in settings.items()
    )
    return f'<section class="settings"><h2>Settings</h2><dl>{items}</dl></section>'
