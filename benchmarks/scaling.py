"""How Bellwether's round grows with one thing at a time, beside the plain loop in two processes."""

import time
from dataclasses import dataclass
from typing import Any

import referee
from contenders import OURS, PLAIN
from referee import Entry, Failed, Plan
from workloads import WORKLOADS, Workload

PLAIN_2 = PLAIN[1]


@dataclass(frozen=True)
class Curve:
    """One workload with one value changed."""

    title: str
    workload: str
    key: str
    values: tuple[int, ...]
    others: tuple[str, ...] = ()
    beside_plain: bool = True


_MLP = ("network=mlp", "clients=200", "cohort=20")
CURVES = {
    "cohort": Curve("C: clients in a round", "C", "cohort", (10, 50, 200, 500)),
    "population": Curve(
        "D: population, data on demand", "D", "clients", (1000, 10_000, 100_000, 1_000_000)
    ),
    "model": Curve("C with an MLP: its width", "C", "width", (64, 256, 1024), _MLP),
    "large cohort": Curve(
        "C with an MLP of width 2048 (5.8 million parameters): clients in a round",
        "C", "cohort", (10, 50, 100), ("network=mlp", "width=2048", "clients=200", "samples=10"),
        beside_plain=False,
    ),
    "workers": Curve("A: workers", "A", "workers", (1, 2), beside_plain=False),
}  # fmt: skip


def measure(name: str, plan: Plan) -> dict[str, Any]:
    """Seconds and memory at each point of a curve."""
    curve = CURVES[name]
    points = []
    for value in curve.values:
        point: dict[str, Any] = {"value": value}
        if WORKLOADS[curve.workload].on_demand:
            point["data_seconds"] = _making(WORKLOADS[curve.workload])
        for entry in (OURS, PLAIN_2) if curve.beside_plain else (OURS,):
            try:
                point[entry.name] = _point(curve, entry, value, plan)
            except Failed as failure:
                point[entry.name] = {"failed": str(failure)}
        points.append(point)
        found = point[OURS.name]
        words = f"{found['seconds']['median']:.4f} s" if "seconds" in found else found["failed"]
        print(f"  {value:>9,}  {words}", flush=True)
    return {"title": curve.title, "points": points}


def _making(work: Workload) -> float:
    """Seconds that one process takes to make a cohort's data."""
    started = time.perf_counter()
    for client in range(work.cohort):
        work.client(client)
    return time.perf_counter() - started


def _point(curve: Curve, entry: Entry, value: int, plan: Plan) -> dict[str, Any]:
    changes = curve.others
    if curve.key == "workers":
        entry = Entry(entry.name, entry.title, entry.module, ("--workers", str(value)))
    else:
        changes = (*changes, f"{curve.key}={value}")
    with referee.running(entry, curve.workload, changes) as contender:
        blocks = [contender.block(plan.block_seconds) for _ in range(plan.blocks)]
        return {"seconds": referee.spread(blocks), "peak_bytes": contender.facts["peak_bytes"]}
