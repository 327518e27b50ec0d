"""The curves of a page: by round, by bytes, by seconds, of one metric or another."""

from collections.abc import Sequence
from string import Template

from bellwether.report.frame import asset


def curves_section(metrics: Sequence[str], band: str, bytes_sent: str) -> str:
    """The section; the first metric is drawn at first, and `charts.js` fills it in."""
    return Template(asset("curves.html")).substitute(
        Metric=metrics[0].capitalize(),
        metrics=_choice(metrics) if len(metrics) > 1 else "",
        band=band,
        bytes=bytes_sent,
    )


def _choice(metrics: Sequence[str]) -> str:
    buttons = "".join(
        f'<button type="button" value="{name}" aria-pressed="{str(not at).lower()}">{name}</button>'
        for at, name in enumerate(metrics)
    )
    return (
        f'<div class="choose" role="group" aria-label="Metric" data-choice="metric">{buttons}</div>'
    )
