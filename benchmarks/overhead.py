"""What the library costs over a loop that somebody writes by hand: `python benchmarks/overhead.py`.

The same clients, cohorts, steps, mini-batch sizes and threads (one), FedAvg, no evaluation; the
two take turns in one process, repetition by repetition. The figure is the median of the ratios.
`benchmarks/run.py` compares more, with more processes; this is the quick check of a change.
"""

import argparse
import itertools
import statistics
import time
from collections.abc import Callable

import torch

import networks
import ours
from bellwether import participation, train
from bellwether.engines import Local
from plain import Data, Trainer, rounds
from workloads import WORKLOADS, Workload

ROUNDS = 5


def by_hand(work: Workload) -> Callable[[], list[float]]:
    """FedAvg as one writes it without a library; the seconds of each round."""
    data: Data = work.holder(torch.from_numpy)

    def run() -> list[float]:
        played = rounds(work, Trainer(work, data, networks.make(work)))
        times = [time.perf_counter()]
        times += [time.perf_counter() for _ in itertools.islice(played, ROUNDS)]
        return [after - before for before, after in itertools.pairwise(times)]

    return run


def by_library(work: Workload) -> Callable[[], list[float]]:
    """The same with `train`, clients one after the other in this process."""
    clients = ours.federation(work)

    def run() -> list[float]:
        result = train(
            ours.method("FedAvg", work),
            clients,
            networks.make(work),
            ROUNDS,
            participation=participation.Uniform(work.cohort),
            engine=Local(),
            eval_every=0,
            device="cpu",
        )
        return [record.seconds for record in result.history]

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=9)
    repetitions = parser.parse_args().repetitions
    torch.set_num_threads(1)
    print(f"torch {torch.__version__}, 1 thread, {repetitions} repetitions, median (min..max)")
    for name in ("A", "C"):
        work = WORKLOADS[name]
        hand: list[float] = []
        library: list[float] = []
        pair = (hand, by_hand(work)), (library, by_library(work))
        for repetition in range(repetitions + 1):
            for results, run in pair if repetition % 2 else reversed(pair):
                seconds = statistics.median(run())
                if repetition:  # the first warms up
                    results.append(seconds)
        ratios = [b / a for a, b in zip(hand, library, strict=True)]
        print(
            f"{work.title.split(',')[0]:30s} by hand {statistics.median(hand) * 1e3:7.1f} ms a"
            f" round, bellwether {statistics.median(library) * 1e3:7.1f} ms, ratio"
            f" {statistics.median(ratios):.3f} ({min(ratios):.3f}..{max(ratios):.3f})"
        )


if __name__ == "__main__":
    main()
