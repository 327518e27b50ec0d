"""The numbers inside the page: what is drawn, and the records it was computed from."""

import json
import math
from dataclasses import asdict
from typing import Any

from bellwether.experiments.results import Comparison, Run
from bellwether.experiments.summary import Metric, Summary

COLUMNS = 400
"""The most clients drawn in the map of who holds what; more would be thinner than a pixel."""


def embedded(comparison: Comparison, summary: Summary, headline: str) -> str:
    """JSON for a script element: no NaN, and nothing in it can close the element."""
    results = {
        "title": comparison.title,
        "headline": headline,
        "metric": summary.metric,
        "target": summary.target,
        "planned_rounds": summary.planned_rounds,
        "complete": summary.complete,
        "notes": summary.notes,
        "settings": dict(comparison.settings),
        "methods": [
            asdict(method) | {"runs": [_run(run) for run in comparison.runs_of(method.algorithm)]}
            for method in summary.methods
        ],
        "holdings": _holdings(comparison),
    }
    text = json.dumps(_finite(results), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _run(run: Run) -> dict[str, Any]:
    metrics = [metric for metric in Metric if any(metric in r.metrics for r in run.records)]
    return {
        "seed": run.seed,
        "complete": run.complete,
        "rounds": [record.round for record in run.records],
        "metrics": {
            metric: [record.metrics.get(metric) for record in run.records] for metric in metrics
        },
        "bytes_down": [record.bytes_down for record in run.records],
        "bytes_up": [record.bytes_up for record in run.records],
        "seconds": [record.seconds for record in run.records],
    }


def _holdings(comparison: Comparison) -> dict[str, Any] | None:
    """Samples by client and label (every n-th client when there are very many) and in total."""
    counts, server = comparison.histogram, comparison.server_histogram
    if counts is None:
        return None
    every = math.ceil(len(counts) / COLUMNS)
    names = comparison.class_names or tuple(map(str, range(counts.shape[1])))
    return {
        "labels": names[: counts.shape[1]],
        "clients": list(range(0, len(counts), every)),
        "counts": counts[::every].tolist(),
        "population": counts.sum(axis=0).tolist(),
        "server": None if server is None else server.tolist(),
    }


def _finite(value: Any) -> Any:
    """JSON has no NaN and no infinity: they become null."""
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
