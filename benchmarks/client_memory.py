"""What clients' memories cost: `python benchmarks/client_memory.py`.

SCAFFOLD with 100,000 clients made on demand beside FedAvg with the same: logistic regression
784->10 (d = 7,850), 100 clients a round. Each run has a fresh process of its own, so that its peak
of resident memory is its own; the runs take turns, repetition by repetition.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

from bellwether import SGD, FedAvg, Federation, Scaffold, models, participation, train

CLIENT = SGD(lr=0.05, epochs=1, batch_size=20)
MEGABYTE = 2**20
RUNS = {
    "FedAvg": (FedAvg(CLIENT), False),
    "SCAFFOLD": (Scaffold(CLIENT), False),
    "FedAvg, run_dir": (FedAvg(CLIENT), True),
    "SCAFFOLD, run_dir": (Scaffold(CLIENT), True),
}


def load(client: int) -> tuple[torch.Tensor, torch.Tensor]:
    draw = torch.Generator().manual_seed(client)
    return torch.randn(60, 784, generator=draw), torch.randint(10, (60,), generator=draw)


def run(name: str, clients: int, rounds: int, budget: int) -> dict[str, float]:
    """One run in this process."""
    method, written = RUNS[name]
    seconds, came = [], set()
    with tempfile.TemporaryDirectory(dir=".") as place:
        started = time.perf_counter()
        train(
            method,
            Federation.lazy(clients, load),
            models.logistic_regression,
            rounds,
            participation=participation.Uniform(min(100, clients)),
            run_dir=Path(place) / "run" if written else None,
            memory_budget=budget * MEGABYTE,
            on_round=lambda r: (seconds.append(r.seconds), came.update(r.cohort)),
        )
        whole = time.perf_counter() - started
        disk = sum(file.stat().st_size for file in Path(place).rglob("*") if file.is_file())
    return {
        "round": statistics.median(seconds),
        "last": statistics.median(seconds[-rounds // 4 :]),
        "whole": whole / rounds,
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "kept": len(came) * 7850 * 4 / MEGABYTE,
        "disk": disk / MEGABYTE,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--budget", type=int, default=64, help="memory_budget, in MB")
    parser.add_argument("--repetitions", type=int, default=2)
    parser.add_argument("--only", choices=RUNS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only:
        figures = run(options.only, options.clients, options.rounds, options.budget)
        print(json.dumps(figures))
        return
    results: dict[str, list[dict[str, float]]] = {name: [] for name in RUNS}
    for _ in range(options.repetitions):
        for name, found in results.items():
            command = [sys.executable, *sys.argv, "--only", name]
            found.append(json.loads(subprocess.check_output(command)))
    print(
        f"{options.clients:,} clients, {options.rounds} rounds, budget {options.budget} MB;"
        " medians over repetitions\n"
        f"{'':20}s a round  of the last quarter  with checkpoints  peak MB  kept MB  disk MB"
    )
    for name, found in results.items():
        of = {key: statistics.median(r[key] for r in found) for key in found[0]}
        kept = of["kept"] if "SCAFFOLD" in name else 0
        print(
            f"{name:20}{of['round']:9.4f}{of['last']:21.4f}{of['whole']:18.4f}"
            f"{of['peak']:9.0f}{kept:9.0f}{of['disk']:9.0f}"
        )


if __name__ == "__main__":
    main()
