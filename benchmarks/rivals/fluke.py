"""fluke as a contender; it keeps an object and the data of every client."""

import os
import time

import torch
from fluke import DDict, FlukeENV
from fluke.algorithms.fedavg import FedAVG
from fluke.data import FastDataLoader
from fluke.utils import FederationObserver

import networks
import turns
from workloads import Workload


class Shares:
    """What fluke asks who holds what; there are no test sets."""

    def __init__(self, work: Workload) -> None:
        self._work = work

    def assign(self, clients: int, batch_size: int) -> tuple:
        data = self._work.holder(torch.from_numpy)
        loaders = [
            FastDataLoader(*data(client), num_labels=10, batch_size=batch_size, shuffle=True)
            for client in range(clients)
        ]
        return (loaders, [None] * clients), None


class EndOfRound(FederationObserver):
    """Calls at the end of a round."""

    def __init__(self, turn: turns.Turns) -> None:
        self._turn = turn

    def end_round(self, *_: object, **__: object) -> None:
        try:
            self._turn()
        except KeyboardInterrupt:  # fluke would go on to evaluate
            os._exit(0)


def main() -> None:
    given = turns.arguments(__doc__).parse_args()
    work, turn = turns.workload(given), turns.Turns()
    if work.on_demand:
        turn.cannot("keeps the data of every client from the start")
    torch.set_num_threads(2)
    FlukeENV().set_eval_cfg(server=False)
    settings = DDict(
        model=networks.make(work),
        client=DDict(
            batch_size=work.batch_size,
            local_epochs=work.epochs,
            loss="CrossEntropyLoss",
            optimizer=DDict(name="SGD", lr=work.lr),
            scheduler=DDict(name="StepLR", step_size=turns.FOREVER, gamma=1.0),
            persistency=False,
        ),
        server=DDict(weighted=False),
    )
    started = time.perf_counter()
    method = FedAVG(work.clients, Shares(work), settings)
    method.set_callbacks(EndOfRound(turn))
    turn.ready(["fluke-fl", "torch", "numpy"], time.perf_counter() - started)
    method.run(turns.FOREVER, (work.cohort + 0.5) / work.clients)


if __name__ == "__main__":
    main()
