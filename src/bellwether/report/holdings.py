"""Who holds what, as every page shows it."""

import math
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bellwether.federation.labels import cosine

COLUMNS = 400
"""The most clients drawn in a map of clients; more would be thinner than a pixel."""

Counts = NDArray[np.integer]


def drawn_clients(population: int) -> range:
    """The clients that a map draws: every n-th when there are very many."""
    return range(0, population, math.ceil(population / COLUMNS))


def drawn_holdings(
    counts: Counts | None, server: Counts | None, names: Sequence[str]
) -> dict[str, Any] | None:
    """Samples by client and label, and in total."""
    if counts is None:
        return None
    clients = drawn_clients(len(counts))
    names = tuple(names) or tuple(map(str, range(counts.shape[1])))
    return {
        "labels": names[: counts.shape[1]],
        "clients": list(clients),
        "counts": counts[:: clients.step].tolist(),
        "population": counts.sum(axis=0).tolist(),
        "server": None if server is None else server.tolist(),
    }


def holdings_section(counts: Counts | None, server: Counts | None, draws: int | None) -> str:
    """The map of clients and labels with the server beside it, explained."""
    if counts is None:
        return ""
    text = f"{int(counts.sum()):,} samples at {len(counts):,} clients, a column each"
    if len(counts) > COLUMNS:
        text += " (evenly chosen ones)"
    text += f"; the strongest colour is {int(counts.max()):,}. Beside it, each label's share."
    if server is not None and server.sum():
        owned = int(server.sum())
        holds = f"holds {owned:,}"
        if draws:
            holds = f"draws {draws:,}{f' of {owned:,}' if owned > draws else ''} each round"
        text += (
            f" The server {holds}; the cosine similarity of its labels with the population's is"
            f" {cosine(server, counts.sum(axis=0)):.3f}."
        )
    return (
        '<section class="holdings"><h2>Who holds what</h2><figure><div id="holdings"></div>'
        f"<figcaption>{escape(text)}</figcaption></figure></section>"
    )
