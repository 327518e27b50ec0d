"""The frame of every page: one HTML file that fetches nothing."""

import json
import math
from collections.abc import Iterable, Mapping
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from plotly.offline import get_plotlyjs


def framed(
    title: str, body: str, results: str, scripts: Iterable[str], connect: str = "", **texts: str
) -> str:
    """A page: the body's template with its texts, the numbers, and the scripts that draw them.

    The texts are HTML; the title is plain. `connect` is what its policy allows scripts to fetch.
    """
    return Template(asset("frame.html")).substitute(
        title=escape(title),
        connect=connect,
        body=Template(asset(body)).substitute(title=escape(title), **texts),
        results=results,
        style=asset("page.css"),
        plotly=get_plotlyjs(),
        scripts="\n".join(f"<script>\n{asset(name)}</script>" for name in ("canvas.js", *scripts)),
    )


def script_json(results: Any) -> str:
    """JSON for a script element: no NaN, and nothing in it can close the element."""
    text = json.dumps(_finite(results), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def notes_list(notes: Iterable[str]) -> str:
    """What a reader should know before the numbers."""
    items = "".join(f"<li>{escape(note)}</li>" for note in notes)
    return f'<ul class="notes">{items}</ul>' if items else ""


def settings_section(settings: Mapping[str, str]) -> str:
    """Settings by name."""
    if not settings:
        return ""
    items = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>"
        for name, value in settings.items()
    )
    return f'<section class="settings"><h2>Settings</h2><dl>{items}</dl></section>'


def asset(name: str) -> str:
    """A template, a style sheet or a script of this room."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _finite(value: Any) -> Any:
    """JSON has no NaN and no infinity: they become null."""
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
