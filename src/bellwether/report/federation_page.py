"""A federation as one HTML file that fetches nothing."""

import math
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from bellwether.core.files import write_atomically
from bellwether.federation.groups import Indices
from bellwether.report.frame import framed, notes_list, script_json, settings_section
from bellwether.report.holdings import COLUMNS, drawn_holdings, holdings_section
from bellwether.report.overview import Overview

BINS = 30
"""The most bars of a histogram."""


def write_federation_page(overview: Overview, path: Path | str) -> Path:
    """Write the page; whoever reads the path sees the old file or the new one, never a part."""
    return write_atomically(Path(path), federation_page(overview))


def federation_page(overview: Overview) -> str:
    """The HTML: who holds what, how much, of how many labels, and who comes."""
    manifest = overview.manifest
    counts = manifest.labels if manifest.labels.size else None
    server = None if manifest.server is None else manifest.drawn_labels
    return framed(
        f"{manifest.dataset}, {overview.population:,} clients",
        "federation.html",
        script_json(
            {
                "holdings": drawn_holdings(counts, server, overview.class_names),
                "sizes": _bars(manifest.sizes),
                "labels": None if counts is None else _bars(overview.labels_each),
                "coming": _coming(overview),
            }
        ),
        ("holdings.js", "federation.js"),
        headline=escape(overview.headline),
        notes=notes_list(manifest.notes),
        holdings=holdings_section(counts, server, manifest.drawn),
        coming=escape(_caption(overview)),
        settings=settings_section(
            {
                "clients": f"{overview.population:,}, {manifest.partition}",
                "server": manifest.server or "no samples",
                "participation": str(overview.participation),
                "seed": str(manifest.seed),
                "held by nobody": f"{len(manifest.left):,} samples",
            }
        ),
    )


def _bars(values: Indices) -> list[tuple[int, int, int]]:
    """A histogram of whole numbers: first, last, how many."""
    low, high = int(values.min()), int(values.max())
    width = math.ceil((high - low + 1) / BINS)
    counts = np.bincount((values - low) // width)
    return [
        (low + width * bar, low + width * (bar + 1) - 1, int(count))
        for bar, count in enumerate(counts)
    ]


def _coming(overview: Overview) -> dict[str, Any]:
    """How many come by round and client; by so many neighbours where clients are very many."""
    width = _width(overview)
    columns = math.ceil(overview.population / width)
    cohorts = overview.cohorts
    rounds = np.repeat(np.arange(len(cohorts)), cohorts.sizes)
    there = np.zeros((len(cohorts), columns), dtype=np.int64)
    np.add.at(there, (rounds, cohorts.samples // width), 1)
    return {"width": width, "there": there.tolist()}


def _caption(overview: Overview) -> str:
    text = overview.coming
    text = f"{text[0].upper()}{text[1:]}. A line for each round, a column for each "
    width = _width(overview)
    return text + ("client." if width == 1 else f"{width:,} clients.")


def _width(overview: Overview) -> int:
    return math.ceil(overview.population / COLUMNS)
