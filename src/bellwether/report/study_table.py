"""What a study found, as a table for the terminal."""

from collections.abc import Iterator

from rich import box
from rich.table import Table
from rich.text import Text

from bellwether.experiments.study.results import Over, Results, Row
from bellwether.report.words import bytes_text

_UNITS = {
    "rounds-to-target": "rounds",
    "rise-time": "rounds",
    "bytes-to-target": "bytes",
}


def study_table(results: Results) -> Table:
    """A row a combination of the axes, mean ± spread over the seeds."""
    table = Table(
        box=box.SIMPLE_HEAD, pad_edge=False, title=results.title, caption=_caption(results)
    )
    table.caption_justify = "left"
    for axis in results.axes:
        table.add_column(_short(axis), overflow="fold")
    tuned = list(dict.fromkeys(key for row in results.rows for key in row.tuned))
    for key in tuned:
        table.add_column(f"tuned {_short(key)}", overflow="fold")
    for kind, settings in results.questions.items():
        table.add_column(_title(kind, dict(settings)), justify="right")
    table.add_column("final accuracy", justify="right")
    for row in results.rows:
        cells = [row.labels[axis] for axis in results.axes]
        cells += [str(row.tuned.get(key, "")) for key in tuned]
        cells += [
            over_text(over, _UNITS.get(kind, "accuracy")) for kind, over in row.answers.items()
        ]
        table.add_row(*map(Text, [*cells, over_text(row.final_accuracy, "accuracy")]))
    return table


def over_text(over: Over, unit: str) -> str:
    """ "64.2 ± 3.1", or "2 of 5 never (median 71)" where a run is censored."""
    if not over.runs:
        return "-"
    if over.mean is not None:
        spread = "" if over.spread is None else f" ± {_number(over.spread, unit)}"
        return f"{_number(over.mean, unit)}{spread}{' %' if unit == 'accuracy' else ''}"
    middle = "" if over.median is None else f" (median {_number(over.median, unit)})"
    return f"{over.censored} of {over.runs} never{middle}"


def _number(value: float, unit: str) -> str:
    if unit == "bytes":
        return bytes_text(value)
    return f"{100 * value:.2f}" if unit == "accuracy" else f"{value:,.4g}"


def _title(kind: str, settings: dict[str, object]) -> str:
    named = [
        f"{value}" if kind.endswith(name) else f"{name} {value}" for name, value in settings.items()
    ]
    return " ".join([kind.replace("-", " "), ", ".join(named)]).strip()


def _short(key: str) -> str:
    """ "federation.partition.alpha" as "partition.alpha"."""
    return ".".join(key.split(".")[-2:])


def _caption(results: Results) -> Text:
    return Text("\n").join([Text(_MEANING), *(Text(note, "yellow") for note in _notes(results))])


_MEANING = (
    "Mean ± sample standard deviation over the seeds; where a run never got there, how many, and"
    " the median."
)


def _notes(results: Results) -> Iterator[str]:
    for row in results.rows:
        name = ", ".join(row.labels.values()) or "the run"
        if row.unfinished:
            yield f"{name}: {row.unfinished} of {len(row.measured)} runs are not done."
        yield from _diverged(name, row)


def _diverged(name: str, row: Row) -> Iterator[str]:
    lost = [str(each.seed) for each in row.measured if each.outcome == "diverged"]
    if lost:
        yield f"{name} diverged with seed {', '.join(lost)}: counted as never."
