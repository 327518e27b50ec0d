"""Writes `docs/performance.md` and its picture from results: `python benchmarks/page.py`."""

import json
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "performance.md"
PICTURE = DOCS / "images" / "performance.svg"
START, END = "<!-- results -->", "<!-- /results -->"
THREADS = "2"
"""Of the peak that a workload's arithmetic is held against: both cores."""

Results = dict[str, Any]


def write(results: Results) -> None:
    """The page and the picture."""
    from picture import draw  # only here: the text needs no fonts

    PAGE.write_text(page(PAGE.read_text(), results))
    draw(results.get("contenders", {}), PICTURE)


def page(text: str, results: Results) -> str:
    """The page with these results between its markers."""
    before, rest = text.split(START)
    _, after = rest.split(END)
    return f"{before}{START}\n{block(results)}\n{END}{after}"


def block(results: Results) -> str:
    """Everything that is generated."""
    parts = [_where(results), _contenders(results), _lost(results), _beginnings(results)]
    parts += [_methods(results), _scaling(results), _arithmetic(results)]
    return "\n\n".join(part for part in parts if part)


def _where(results: Results) -> str:
    place = results["machine"]
    lines = [
        f"Measured on {place['cores']} cores of {place['processor']} ({place['system']}), Python"
        f" {place['python']}, PyTorch {place['torch']}; load before the start:"
        f" {place['load_before']:.2f}."
    ]
    if place["quick"]:
        lines.append("**This was a quick run that only checks that everything works.**")
    return "\n\n".join(lines)


def _contenders(results: Results) -> str:
    workloads: Results = results.get("contenders", {})
    if not workloads:
        return ""
    titles: dict[str, str] = {}
    for work in workloads.values():
        titles |= {name: entry["title"] for name, entry in work["entries"].items()}
    rows = [
        [_titled(titles, name, workloads)]
        + [_cell(work["entries"].get(name, {})) for work in workloads.values()]
        for name in titles
    ]
    legend = [
        f"- **{name}** ({work['measured']}): {work['title']}" for name, work in workloads.items()
    ]
    return "\n".join(
        [
            "## Seconds a round",
            "",
            "Medians. In brackets Bellwether's share of that time, measured in turns: median,"
            " least..most. Less than 1 means that Bellwether is faster.",
            "",
            *legend,
            "",
            *_table(["", *workloads], rows),
            "",
            f"![Seconds a round of every contender](images/{PICTURE.name})",
        ]
    )


def _titled(titles: dict[str, str], name: str, workloads: Results) -> str:
    """A contender with its version, where that is not PyTorch's alone."""
    for work in workloads.values():
        versions = work["entries"].get(name, {}).get("versions", {})
        first = next(iter(versions), "torch")
        if first != "torch":
            return f"{titles[name]} ({versions[first]})"
    return titles[name]


def _cell(entry: Results) -> str:
    if not entry or not entry.get("seconds"):
        return "-"
    seconds = _number(statistics.median(entry["seconds"]))
    ratios = list(_ratios(entry))
    if not ratios:
        return f"**{seconds}**"
    middle = statistics.median(ratios)
    return f"{seconds} ({middle:.2f}; {min(ratios):.2f}..{max(ratios):.2f})"


def _ratios(entry: Results) -> Iterator[float]:
    for a, b in zip(entry.get("ours", []), entry["seconds"], strict=False):
        yield a / b


def _lost(results: Results) -> str:
    """Said openly: who is faster, and who could not take part and why."""
    slower, absent = [], []
    for name, work in results.get("contenders", {}).items():
        for entry in work["entries"].values():
            ratio = statistics.median(_ratios(entry)) if entry.get("ours") else 0.0
            if ratio > 1:
                slower.append(f"- {name}: {entry['title']}, by a factor of {ratio:.2f}")
            if "failed" in entry:
                absent.append(f"- {name}: {entry['title']}: {entry['failed']}")
    if not results.get("contenders"):
        return ""
    lines = ["## Where Bellwether loses", "", *(slower or ["Nobody was faster."])]
    if absent:
        lines += ["", "No figures:", "", *absent]
    return "\n".join(lines)


def _beginnings(results: Results) -> str:
    rows = [
        [name, entry["title"], _number(entry["seconds_to_first_round"]), _megabytes(entry)]
        for name, work in results.get("contenders", {}).items()
        for entry in work["entries"].values()
        if "seconds_to_first_round" in entry
    ]
    if not rows:
        return ""
    return "\n".join(
        [
            "## Start and memory",
            "",
            "Seconds from the start of the process to the end of the first round, without the"
            " making of data; and the most memory that all its processes used together (PSS,"
            " while they started and in their first rounds), data included. The plain loops share"
            " PyTorch's pages with Bellwether's waiting process: a part of those is not counted.",
            "",
            *_table(["workload", "", "seconds", "MB"], rows),
        ]
    )


def _methods(results: Results) -> str:
    parts: Results = results.get("methods", {})
    if not parts:
        return ""
    names = list(dict.fromkeys(name for part in parts.values() for name in part["rows"]))
    head = ["method"]
    for name in parts:
        head += [f"{name}: time", f"{name}: gradients"]
    rows = []
    for method in names:
        row = [method]
        for part in parts.values():
            found = part["rows"].get(method, {})
            row.append(_spread(found["ratios"]) if "ratios" in found else "-")
            row.append(f"{found['arithmetic']:.2f}" if "arithmetic" in found else "-")
        rows.append(row)
    return "\n".join(
        [
            "## Every method beside FedAvg",
            "",
            "Time of a round as a multiple of FedAvg's (median, least..most), and the samples whose"
            " gradient it takes as a multiple of FedAvg's: a method whose time is the larger"
            " multiple costs more than its arithmetic. The server holds as many samples as a"
            " client. The last row is FedAvg with an evaluation on 10,000 samples in each round.",
            "",
            *_table(head, rows),
        ]
    )


def _scaling(results: Results) -> str:
    lines = []
    for curve in results.get("scaling", {}).values():
        beside = any("plain-2" in point for point in curve["points"])
        head = [
            "",
            "Bellwether, s",
            "MB",
            *(["plain loop, 2 processes, s", "MB"] if beside else []),
        ]
        rows = []
        for point in curve["points"]:
            row = [f"{point['value']:,}"]
            for name in ("ours", "plain-2") if beside else ("ours",):
                found = point.get(name, {})
                row += [_number(found["seconds"]["median"]) if "seconds" in found else "-"]
                row += [_megabytes(found)]
            rows.append(row)
        lines += ["", f"{curve['title']}:", "", *_table(head, rows)]
        if making := [
            point["data_seconds"] for point in curve["points"] if "data_seconds" in point
        ]:
            seconds = _number(statistics.median(making))
            lines += ["", f"Of a round, {seconds} s of one core make the cohort's data."]
    return "\n".join(["## Growth", *lines]) if lines else ""


def _arithmetic(results: Results) -> str:
    peak: Results = results.get("peak", {})
    if not peak:
        return ""
    rates = peak["machine"]
    limit = max(rate[THREADS] for rate in rates.values())
    rows = [[title, *(f"{rate[n]:.0f}" for n in ("1", "2"))] for title, rate in rates.items()]
    lines = ["## How far from the machine's limit", "", "GFLOP/s reached at best:", ""]
    lines += _table(["", "1 thread", "2 threads"], rows)
    shares = []
    for name, work in results.get("contenders", {}).items():
        seconds = work["entries"]["ours"]["seconds"]
        if seconds and name in peak["workloads"]:
            rate = peak["workloads"][name] / statistics.median(seconds) / 1e9
            shares.append([name, f"{rate:.1f}", f"{100 * rate / limit:.1f} %"])
    if shares:
        lines += ["", "Bellwether's rounds, forward and backward passes counted:", ""]
        lines += _table(["workload", "GFLOP/s", "of the best with 2 threads"], shares)
    return "\n".join(lines)


def _table(head: list[str], rows: list[list[str]]) -> list[str]:
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(line) + " |" for line in lines]


def _spread(values: list[float]) -> str:
    return f"{statistics.median(values):.2f} ({min(values):.2f}..{max(values):.2f})"


def _megabytes(found: Results) -> str:
    size = found.get("peak_bytes")
    return f"{size / 1e6:,.0f}" if size else "-"


def _number(value: float) -> str:
    return f"{value:.4f}" if value < 0.1 else f"{value:.3f}" if value < 1 else f"{value:.1f}"


if __name__ == "__main__":
    write(json.loads((Path(__file__).parent / "results.json").read_text()))
