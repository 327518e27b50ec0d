"""The loop that somebody writes by hand: one process, or two that share the cohort.

    python benchmarks/plain.py A --processes 2

prints a line for each round asked for on standard input (`benchmarks/turns.py`).
"""

import multiprocessing
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection

import torch
from torch import Tensor, nn
from torch.nn import functional

import networks
import turns
from workloads import Workload

Data = Callable[[int], tuple[Tensor, Tensor]]
Values = list[Tensor]


class Trainer:
    """Trains clients one after the other, and adds up what comes out."""

    def __init__(self, work: Workload, data: Data, network: nn.Module) -> None:
        self._work, self._data, self._network = work, data, network
        self.parameters = list(network.parameters())
        self._optimizer = torch.optim.SGD(network.parameters(), lr=work.lr)

    def train(self, model: Values, clients: list[int], total: Values) -> None:
        """Set `total` to the sum of these clients' models."""
        for t in total:
            t.zero_()
        for client in clients:
            x, y = self._data(client)
            with torch.no_grad():
                for p, value in zip(self.parameters, model, strict=True):
                    p.copy_(value)
            for _ in range(self._work.epochs):
                for batch in torch.randperm(len(y)).split(self._work.batch_size):
                    self._optimizer.zero_grad()
                    functional.cross_entropy(self._network(x[batch]), y[batch]).backward()
                    self._optimizer.step()
            for t, p in zip(total, self.parameters, strict=True):
                t += p.detach()


def rounds(work: Workload, trainer: Trainer) -> Iterator[Values]:
    """FedAvg in this process; yields the model after each round."""
    model = [p.detach().clone() for p in trainer.parameters]
    total = [torch.zeros_like(p) for p in model]
    while True:
        trainer.train(model, cohort(work), total)
        model = [t / work.cohort for t in total]
        yield model


def shared_rounds(work: Workload, trainer: Trainer) -> Iterator[Values]:
    """The same in two processes: the other one trains every second client of the cohort."""
    model = [p.detach().clone().share_memory_() for p in trainer.parameters]
    theirs = [torch.zeros_like(p).share_memory_() for p in model]
    ours = [torch.zeros_like(p) for p in model]
    with helper(trainer, model, theirs) as pipe:
        while True:
            clients = cohort(work)
            pipe.send(clients[1::2])
            trainer.train(model, clients[::2], ours)
            pipe.recv()
            for value, a, b in zip(model, ours, theirs, strict=True):
                torch.add(a, b, out=value).div_(work.cohort)
            yield model


@contextmanager
def helper(trainer: Trainer, model: Values, total: Values) -> Iterator[Connection]:
    """A process that trains the clients it is sent, and answers when `total` is there."""
    here, there = multiprocessing.Pipe()

    def serve() -> None:
        here.close()
        try:
            while True:
                trainer.train(model, there.recv(), total)
                there.send(None)
        except (EOFError, KeyboardInterrupt):
            pass

    # Forked, so that it has the data without a copy; no thread pool exists yet.
    process = multiprocessing.get_context("fork").Process(target=serve, daemon=True)
    process.start()
    there.close()
    try:
        yield here
    finally:
        here.close()
        process.join()


def cohort(work: Workload) -> list[int]:
    """Some clients, none twice; cheap whatever the population."""
    if work.clients <= 10_000:
        return torch.randperm(work.clients)[: work.cohort].tolist()
    chosen: dict[int, None] = {}
    while len(chosen) < work.cohort:
        chosen[int(torch.randint(work.clients, ()))] = None
    return list(chosen)


def main() -> None:
    parser = turns.arguments(__doc__)
    parser.add_argument("--processes", type=int, choices=(1, 2), default=1)
    given = parser.parse_args()
    work, turn = turns.workload(given), turns.Turns()
    torch.set_num_threads(3 - given.processes)
    started = time.perf_counter()
    data = work.holder(torch.from_numpy)
    turn.ready(["torch"], time.perf_counter() - started)
    trainer = Trainer(work, data, networks.make(work))
    for _ in (rounds if given.processes == 1 else shared_rounds)(work, trainer):
        turn()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        main()
