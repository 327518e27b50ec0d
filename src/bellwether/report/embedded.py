"""The numbers inside the page: what is drawn, and the records it was computed from."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from bellwether.experiments.attendance import attendance
from bellwether.experiments.results import Comparison, Run
from bellwether.experiments.summary import Metric, Summary
from bellwether.report.coming import drawn_coming
from bellwether.report.export import Format, exported
from bellwether.report.frame import script_json
from bellwether.report.holdings import drawn_holdings
from bellwether.report.tables import Table


def embedded(
    comparison: Comparison, summary: Summary, headline: str, tables: Sequence[Table]
) -> str:
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
        "tables": {table.name: _files(table) for table in tables},
        "coming": drawn_coming(attendance(comparison)),
        "holdings": drawn_holdings(
            comparison.histogram, comparison.server_histogram, comparison.class_names
        ),
    }
    return script_json(results)


def _files(table: Table) -> dict[str, str]:
    """The table as files, by the endings of their names."""
    endings = {"csv": Format.CSV, "md": Format.MARKDOWN, "tex": Format.LATEX}
    return {ending: exported(table, format) for ending, format in endings.items()}


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
