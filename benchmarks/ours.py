"""Bellwether as a contender: `python benchmarks/ours.py A --method Scaffold`.

It prints a line for each round asked for on standard input (`benchmarks/turns.py`).
"""

import time
from contextlib import suppress
from typing import Any

import numpy as np
import torch

import networks
import turns
from bellwether import SGD, Algorithm, Federation, participation, train
from bellwether.algorithms import CATALOGUE, create
from bellwether.core.stacked.rule import Wish
from bellwether.engines import Local
from workloads import Workload

WORKERS = 2
TEST_SAMPLES = 10_000


def method(name: str, work: Workload) -> Algorithm[Any]:
    """The method, its server training like a client, its other settings as they are by default."""
    sgd = SGD(lr=work.lr, epochs=work.epochs, batch_size=work.batch_size)
    return create(name, client=sgd, server=sgd)


def federation(work: Workload, tested: bool = False) -> Federation:
    """The workload's clients, a server that holds as much as one of them, and test samples."""
    server = work.draw(work.clients, work.samples)
    test = work.draw(work.clients + 1, TEST_SAMPLES) if tested else None
    if work.on_demand:
        return Federation.lazy(work.clients, work.client, server, test)
    return Federation.from_arrays(map(work.holder(np.asarray), range(work.clients)), server, test)


def _wish(text: str) -> Wish:
    return "auto" if text == "auto" else int(text)


def main() -> None:
    parser = turns.arguments(__doc__)
    parser.add_argument("--method", choices=CATALOGUE, default="FedAvg")
    parser.add_argument("--workers", type=int, default=WORKERS)
    parser.add_argument("--batch-clients", type=_wish, default="auto", help="auto, or a number")
    parser.add_argument("--evaluate", action="store_true", help="10,000 samples in each round")
    given = parser.parse_args()
    work, turn = turns.workload(given), turns.Turns()
    started = time.perf_counter()
    clients = federation(work, given.evaluate)
    turn.ready(["bellwether-fl", "torch", "numpy"], time.perf_counter() - started)
    torch.manual_seed(0)
    train(
        method(given.method, work),
        clients,
        networks.make(work),
        turns.FOREVER,
        participation=participation.Uniform(work.cohort),
        engine=Local(given.workers, batch_clients=given.batch_clients),
        eval_every=int(given.evaluate),
        on_round=turn,
        device="cpu",
    )


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        main()
