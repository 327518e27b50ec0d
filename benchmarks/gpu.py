"""Bellwether on a GPU beside a loop written by hand there: `python benchmarks/gpu.py`.

FedAvg, no evaluation; all data lie on the GPU from the beginning, for both. Prints a table:
seconds of a median round, and what share of the loop's they are.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from bellwether import (
    SGD,
    Algorithm,
    FedAvg,
    FedCLGC,
    FedDyn,
    Federation,
    Scaffold,
    models,
    participation,
    train,
)
from bellwether.engines import Local

SETTLING = 4
"""Rounds that do not count: kernels are recorded in them."""


@dataclass(frozen=True)
class Workload:
    title: str
    network: Callable[[], nn.Module]
    shape: tuple[int, ...]
    clients: int
    samples: int
    cohort: int
    epochs: int
    batch_size: int

    def data(self) -> list[tuple[Tensor, Tensor]]:
        draw = torch.Generator().manual_seed(0)
        return [
            (
                torch.randn(self.samples, *self.shape, generator=draw),
                torch.randint(10, (self.samples,), generator=draw),
            )
            for _ in range(self.clients)
        ]


WORKLOADS = [
    Workload("A: LeNet-5, 28x28, cohort 4", models.lenet5, (1, 28, 28), 200, 150, 4, 5, 64),
    Workload("B: LeNet-5, 3x32x32, cohort 10", models.lenet5_32, (3, 32, 32), 200, 200, 10, 1, 128),
    Workload("C: logistic regression, cohort 100", models.logistic_regression, (784,), 1000, 60,
             100, 1, 20),
    Workload("ResNet-18, 3x32x32, cohort 4", models.resnet18, (3, 32, 32), 20, 250, 4, 1, 64),
]  # fmt: skip
ONE_BY_ONE, TOGETHER = "one by one", "side by side"


def by_hand(work: Workload, rounds: int) -> float:
    """FedAvg as one writes it without a library."""
    clients = [(x.cuda(), y.cuda()) for x, y in work.data()]
    network = work.network().cuda()
    parameters = list(network.parameters())
    optimizer = torch.optim.SGD(parameters, lr=0.05)
    seconds = []
    for _ in range(rounds):
        torch.cuda.synchronize()
        started = time.perf_counter()
        model = [p.detach().clone() for p in parameters]
        total = [torch.zeros_like(p) for p in model]
        for client in torch.randperm(work.clients)[: work.cohort].tolist():
            x, y = clients[client]
            with torch.no_grad():
                for p, value in zip(parameters, model, strict=True):
                    p.copy_(value)
            for _ in range(work.epochs):
                for batch in torch.randperm(len(y), device="cuda").split(work.batch_size):
                    optimizer.zero_grad()
                    functional.cross_entropy(network(x[batch]), y[batch]).backward()
                    optimizer.step()
            for t, p in zip(total, parameters, strict=True):
                t += p.detach()
        with torch.no_grad():
            for p, t in zip(parameters, total, strict=True):
                p.copy_(t / work.cohort)
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds[SETTLING:])


def by_library(work: Workload, rounds: int, method: Algorithm, engine: Local) -> float:
    """The same with `train`; a round ends with a look at the GPU, so its seconds are all there."""
    data = work.data()
    result = train(
        method, Federation.from_arrays(data, server=data[0]), work.network, rounds,
        participation=participation.Uniform(work.cohort), engine=engine, eval_every=0,
        device="cuda",
    )  # fmt: skip
    return statistics.median(record.seconds for record in result.history[SETTLING:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=14)
    given = parser.parse_args()
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__},"
          f" {given.repetitions} repetitions in turns, medians\n")  # fmt: skip
    titles = ["by hand", f"FedAvg, {ONE_BY_ONE}", f"FedAvg, {TOGETHER}",
              f"SCAFFOLD, {TOGETHER}", f"FedCLG-C, {TOGETHER}", f"FedDyn, {TOGETHER}"]  # fmt: skip
    print("|", " | ".join(["workload", *titles]), "|")
    print("|---" * (len(titles) + 1) + "|")
    for work in WORKLOADS:
        sgd = SGD(lr=0.05, epochs=work.epochs, batch_size=work.batch_size)
        loop, stacked = Local(), Local(batch_clients="auto")
        ours = [(FedAvg(sgd), loop), (FedAvg(sgd), stacked), (Scaffold(sgd), stacked),
                (FedCLGC(sgd, sgd), stacked), (FedDyn(sgd), stacked)]  # fmt: skip
        rows = [
            [by_hand(work, given.rounds), *(by_library(work, given.rounds, *o) for o in ours)]
            for _ in range(given.repetitions)
        ]
        hand = statistics.median(row[0] for row in rows)
        cells = [f"{hand * 1e3:.1f} ms"]
        for column in range(1, len(titles)):
            mine = statistics.median(row[column] for row in rows)
            share = statistics.median(row[column] / row[0] for row in rows)
            cells.append(f"{mine * 1e3:.1f} ms ({share:.2f} x)")
        print("|", " | ".join([work.title, *cells]), "|", flush=True)


if __name__ == "__main__":
    main()
