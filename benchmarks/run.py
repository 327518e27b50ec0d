"""Measures Bellwether beside loops written by hand and other libraries: one command for all.

    python benchmarks/run.py

writes `benchmarks/results.json`, `docs/performance.md` and its picture. Give it a quiet machine.
Other libraries take part when `sh benchmarks/environments.sh` has made their environments; the
plain loops always do.
"""

import argparse
import json
import os
import platform
import signal
import sys
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import contenders
import methods
import page
import peak
import referee
import scaling
from bellwether.algorithms import CATALOGUE
from contenders import OURS
from referee import Entry, Failed, Plan
from workloads import WORKLOADS

RESULTS = Path(__file__).parent / "results.json"
START_SECONDS = 7.0
"""That a contender takes to start and to warm up, on the average."""
PARTS = ("contenders", "methods", "scaling", "peak")
DEFAULT_WORKLOADS = ("A", "C", "D")


def compare(workload: str, entries: list[Entry], plan: Plan) -> dict[str, Any]:
    """One workload: every entry in turns with Bellwether."""
    own: dict[str, Any] = {"title": OURS.title, "seconds": []}
    table = {entry.name: {"title": entry.title, "seconds": [], "ours": []} for entry in entries}
    for _ in range(plan.repetitions):
        with referee.running(OURS, workload) as ours:
            own = ours.facts | own
            for entry in entries:
                row = table[entry.name]
                if "failed" in row:
                    continue
                started = time.perf_counter()
                try:
                    with referee.running(entry, workload) as theirs:
                        pairs = referee.compare(ours, theirs, plan)
                        row.update(theirs.facts | row)
                except Failed as failure:
                    if not ours.alive:
                        raise
                    row["failed"] = str(failure)
                    say(f"  {entry.title:40s} {failure}")
                    continue
                row["ours"] += [a for a, _ in pairs]
                row["seconds"] += [b for _, b in pairs]
                own["seconds"] += row["ours"][-len(pairs) :]
                a, b = pairs[-1]
                took = time.perf_counter() - started
                say(f"  {entry.title:40s} {b:8.4f} s, ours {a / b:6.3f} x ({took:.0f} s)")
        if not entries:
            break
    return {"title": WORKLOADS[workload].title, "measured": now(), "entries": {"ours": own} | table}


def machine() -> dict[str, Any]:
    """Where this was measured."""
    cpu = platform.processor()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        cpu = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "processor": cpu,
        "cores": cores,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "torch": version("torch"),
        "load_before": os.getloadavg()[0],
    }


def _of_methods(workloads: Sequence[str]) -> list[str]:
    """The workloads on which every method is measured."""
    return [name for name in workloads if name in ("A", "C")]


def _minutes(parts: Sequence[str], workloads: Sequence[str], entries: int, plan: Plan) -> float:
    """How long it will take, from what starts and blocks take."""
    pair = START_SECONDS + plan.blocks * 3 * plan.block_seconds
    pairs = {
        "contenders": len(workloads) * entries * plan.repetitions,
        "methods": len(_of_methods(workloads)) * len(CATALOGUE),
        "scaling": sum(len(c.values) * (1 + c.beside_plain) for c in scaling.CURVES.values()),
    }
    return sum(pairs.get(part, 0) for part in parts) * pair / 60


def now() -> str:
    return time.strftime("%Y-%m-%d")


def say(line: str) -> None:
    print(line, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workloads", nargs="+", choices=WORKLOADS, default=DEFAULT_WORKLOADS)
    parser.add_argument("--rivals", nargs="*", choices=contenders.names(), help="only these")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--repetitions", type=int, help="fresh starts of every process")
    parser.add_argument("--quick", action="store_true", help="only see that everything runs")
    parser.add_argument("--out", type=Path, default=RESULTS, help="other parts of it are kept")
    given = parser.parse_args()
    plan = referee.QUICK if given.quick else referee.NORMAL
    if given.repetitions is not None:
        if given.repetitions < 1:
            parser.error("--repetitions must be at least 1")
        plan = Plan(given.repetitions, plan.blocks, plan.block_seconds)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that no contender outlives us
    started = time.perf_counter()
    place = machine()
    if place["load_before"] > 0.5:
        say(f"the machine is busy (load {place['load_before']:.1f}): do not trust the figures")
    entries = contenders.present(given.rivals)
    minutes = _minutes(given.parts, given.workloads, len(entries), plan)
    say(f"on a quiet machine with two cores this takes about {minutes:.0f} minutes")
    results = json.loads(given.out.read_text()) if given.out.exists() else {}
    results["machine"] = place | {"quick": given.quick}

    def keep(part: str, key: str, measure: Callable[[], Any]) -> None:
        """Measure, and write at once: a later failure loses nothing."""
        say(f"{part}, {key}")
        results.setdefault(part, {})[key] = measure()
        given.out.write_text(json.dumps(results, indent=1) + "\n")

    if "contenders" in given.parts:
        for name in given.workloads:
            keep("contenders", name, lambda name=name: compare(name, entries, plan))
    if "methods" in given.parts:
        for name in _of_methods(given.workloads):
            keep("methods", name, lambda name=name: methods.measure(name, plan))
    if "scaling" in given.parts:
        for name in scaling.CURVES:
            keep("scaling", name, lambda name=name: scaling.measure(name, plan))
    if "peak" in given.parts:
        keep("peak", "machine", lambda: peak.measure(plan.block_seconds))
        keep("peak", "workloads", peak.arithmetic)
    if given.out == RESULTS:
        page.write(results)
    say(f"{given.out} in {(time.perf_counter() - started) / 60:.1f} minutes")


if __name__ == "__main__":
    try:
        main()
    except Failed as failure:
        sys.exit(f"Bellwether itself failed: {failure}")
