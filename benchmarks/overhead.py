"""What the library costs over a loop that somebody writes by hand: `python benchmarks/overhead.py`.

The same clients, cohorts, steps, mini-batch sizes and threads (one), FedAvg, no evaluation; the
two take turns in one process, repetition by repetition. The figure is the median of the ratios.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional

from bellwether import SGD, FedAvg, Federation, models, participation, train

Client = tuple[torch.Tensor, torch.Tensor]


@dataclass(frozen=True)
class Workload:
    name: str
    network: Callable[[], nn.Module]
    shape: tuple[int, ...]
    clients: int
    samples: int
    cohort: int
    epochs: int
    batch_size: int
    rounds: int

    def data(self) -> list[Client]:
        draw = torch.Generator().manual_seed(0)
        return [
            (
                torch.randn(self.samples, *self.shape, generator=draw),
                torch.randint(10, (self.samples,), generator=draw),
            )
            for _ in range(self.clients)
        ]


WORKLOADS = [
    Workload("LeNet-5, 28x28", models.lenet5, (1, 28, 28), 200, 150, 4, 5, 64, rounds=5),
    Workload(
        "logistic regression 784->10", models.logistic_regression, (784,), 1000, 60, 100, 1, 20,
        rounds=5,
    ),
]  # fmt: skip


def by_hand(work: Workload, clients: list[Client]) -> list[float]:
    """FedAvg as one writes it without a library; the seconds of each round."""
    network = work.network()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05)
    parameters = list(network.parameters())
    seconds = []
    for _ in range(work.rounds):
        started = time.perf_counter()
        model = [p.detach().clone() for p in parameters]
        total = [torch.zeros_like(p) for p in model]
        for client in torch.randperm(work.clients)[: work.cohort].tolist():
            x, y = clients[client]
            with torch.no_grad():
                for p, value in zip(parameters, model, strict=True):
                    p.copy_(value)
            for _ in range(work.epochs):
                for batch in torch.randperm(work.samples).split(work.batch_size):
                    optimizer.zero_grad()
                    functional.cross_entropy(network(x[batch]), y[batch]).backward()
                    optimizer.step()
            for t, p in zip(total, parameters, strict=True):
                t += p.detach()
        with torch.no_grad():
            for p, t in zip(parameters, total, strict=True):
                p.copy_(t / work.cohort)
        seconds.append(time.perf_counter() - started)
    return seconds


def by_library(work: Workload, clients: list[Client]) -> list[float]:
    """The same with `train`."""
    method = FedAvg(SGD(lr=0.05, epochs=work.epochs, batch_size=work.batch_size))
    result = train(
        method,
        Federation.from_arrays(clients),
        work.network,
        work.rounds,
        participation=participation.Uniform(work.cohort),
        eval_every=0,
    )
    return [record.seconds for record in result.history]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=9)
    repetitions = parser.parse_args().repetitions
    torch.set_num_threads(1)
    print(f"torch {torch.__version__}, 1 thread, {repetitions} repetitions, median (min..max)")
    for work in WORKLOADS:
        clients = work.data()
        hand, library = [], []
        for repetition in range(repetitions + 1):
            pair = (hand, by_hand), (library, by_library)
            for results, run in pair if repetition % 2 else reversed(pair):
                seconds = statistics.median(run(work, clients))
                if repetition:  # the first warms up
                    results.append(seconds)
        ratios = [b / a for a, b in zip(hand, library, strict=True)]
        print(
            f"{work.name:30s} by hand {statistics.median(hand) * 1e3:7.1f} ms a round,"
            f" bellwether {statistics.median(library) * 1e3:7.1f} ms,"
            f" ratio {statistics.median(ratios):.3f} ({min(ratios):.3f}..{max(ratios):.3f})"
        )


if __name__ == "__main__":
    main()
