"""Who came, as a report shows it: a map of seeds and clients."""

import math
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bellwether.experiments.attendance import Attendance
from bellwether.report.holdings import COLUMNS

ROWS = 30
"""The most rows drawn in the map."""

Lines = dict[str, NDArray[np.int64]]


def drawn_coming(there: Sequence[Attendance]) -> dict[str, Any] | None:
    """How often each client came, or so many neighbours together where clients are very many."""
    lines = dict(list(_lines(there).items())[:ROWS])
    if not lines:
        return None
    population = len(next(iter(lines.values())))
    width = math.ceil(population / COLUMNS)
    starts = np.arange(0, population, width)
    times = [np.add.reduceat(line, starts).tolist() for line in lines.values()]
    return {"width": width, "rows": list(lines), "times": times}


def coming_caption(there: Sequence[Attendance]) -> str:
    """What the map shows."""
    lines = _lines(there)
    counts = np.stack(list(lines.values()))
    population = counts.shape[1]
    column = math.ceil(population / COLUMNS)
    each = "client" if column == 1 else f"{column:,} clients"
    text = f"A row for each seed, a column for each {each}; the strongest colour is"
    text += f" {int(counts.max()):,} times." if column == 1 else " the most often."
    if len({each.times.tobytes() for each in there if each.times.any()}) == 1:
        text += " The same clients came for every method." if len(there) > 1 else ""
    if len(lines) > ROWS:
        text += f" The first {ROWS} of {len(lines)} rows."
    return escape(text)


def _lines(there: Sequence[Attendance]) -> Lines:
    """By seed; by seed and method where not all methods met the same clients."""
    lines: Lines = {}
    asking = [each for each in there if each.times.any()]
    for seed in sorted({seed for each in asking for seed in each.seeds}):
        of_seed = [(e.algorithm, e.times[e.seeds.index(seed)]) for e in asking if seed in e.seeds]
        distinct: dict[bytes, list[str]] = {}
        for name, times in of_seed:
            distinct.setdefault(times.tobytes(), []).append(name)
        for pattern, names in distinct.items():
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            who = f"seed {seed}" if len(distinct) == 1 else f"seed {seed}, {names[0]}{more}"
            lines[who] = np.frombuffer(pattern, dtype=np.int64)
    return lines
