"""The picture of the contenders' seconds, as SVG."""

import statistics
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib import pyplot


def draw(workloads: dict[str, Any], path: Path) -> None:
    """Bars on a logarithmic axis, one panel a workload; the same bytes from the same results."""
    matplotlib.use("svg")
    matplotlib.rcParams |= {"svg.hashsalt": "performance", "svg.fonttype": "none", "font.size": 8}
    if not workloads:
        return
    figure, panels = pyplot.subplots(
        1, len(workloads), figsize=(2.2 * len(workloads) + 1.5, 2.6), sharey=True, squeeze=False
    )
    order = list(dict.fromkeys(n for work in workloads.values() for n in work["entries"]))[::-1]
    for panel, (name, work) in zip(panels[0], workloads.items(), strict=True):
        for row, contender in enumerate(order):
            entry = work["entries"].get(contender, {})
            if entry.get("seconds"):
                colour = "#c1440e" if contender == "ours" else "#8a94a6"
                panel.barh(row, statistics.median(entry["seconds"]), color=colour)
        panel.set(title=name, xlabel="seconds a round", xscale="log")
        panel.spines[["top", "right"]].set_visible(False)
    titles = {n: e["title"] for work in workloads.values() for n, e in work["entries"].items()}
    panels[0][0].set_yticks(range(len(order)), [titles[name] for name in order])
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
