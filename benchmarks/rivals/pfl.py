"""pfl-research as a contender; two processes by its own way, torch.distributed."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

import networks
import turns
from workloads import Workload

RANK, ADDRESSES = "PFL_WORKER_RANK", "PFL_WORKER_ADDRESSES"


class Network(nn.Module):
    """What pfl wants to be given: a loss, and metrics that nobody will ask for."""

    def __init__(self, work: Workload) -> None:
        super().__init__()
        self.layers = networks.make(work)

    def loss(self, x: Tensor, y: Tensor) -> Tensor:
        return functional.cross_entropy(self.layers(x), y)

    def metrics(self, x: Tensor, y: Tensor) -> dict[str, object]:
        return {}


def main() -> None:
    parser = turns.arguments(__doc__)
    parser.add_argument("--processes", type=int, choices=(1, 2), default=1)
    given = parser.parse_args()
    work = turns.workload(given)
    torch.set_num_threads(3 - given.processes)
    if RANK in os.environ:
        train(work, None)
        return
    turn = turns.Turns()
    with helper(given.processes):
        train(work, turn)


@contextmanager
def helper(processes: int) -> Iterator[None]:
    """The second process is this program again."""
    if processes == 1:
        yield
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    os.environ[ADDRESSES] = f"{address},{address}"
    command = [sys.executable, "-m", "rivals.pfl", *sys.argv[1:]]
    other = subprocess.Popen(command, env=os.environ | {RANK: "1"}, stdin=subprocess.DEVNULL)
    os.environ[RANK] = "0"
    try:
        yield
    finally:
        other.kill()
        other.wait()


def train(work: Workload, turn: turns.Turns | None) -> None:
    """One process's part; only the first takes turns."""
    # Connects to the other process when it is imported.
    from pfl.aggregate.simulate import SimulatedBackend
    from pfl.algorithm.base import NNAlgorithmParams
    from pfl.algorithm.federated_averaging import FederatedAveraging
    from pfl.callback.base import TrainingProcessCallback
    from pfl.data.dataset import Dataset
    from pfl.data.federated_dataset import FederatedDataset
    from pfl.hyperparam import NNTrainHyperParams
    from pfl.metrics import Metrics
    from pfl.model.pytorch import PyTorchModel

    class EndOfRound(TrainingProcessCallback):
        def after_central_iteration(
            self, aggregate_metrics: Metrics, model: PyTorchModel, *, central_iteration: int
        ) -> tuple[bool, Metrics]:
            if turn:
                turn()
            return False, Metrics()

    started = time.perf_counter()
    data = work.holder(torch.from_numpy)
    rng = np.random.RandomState(0)  # the same in both processes
    clients = FederatedDataset(
        lambda user: Dataset(data(user), user_id=user), lambda: int(rng.randint(work.clients))
    )
    network = Network(work)
    model = PyTorchModel(network, torch.optim.SGD, torch.optim.SGD(network.parameters(), lr=1.0))
    if turn:
        turn.ready(["pfl", "torch", "numpy"], time.perf_counter() - started)
    FederatedAveraging().run(
        NNAlgorithmParams(
            central_num_iterations=turns.FOREVER,
            evaluation_frequency=2 * turns.FOREVER,
            train_cohort_size=work.cohort,
            val_cohort_size=None,
        ),
        SimulatedBackend(clients, clients),
        model,
        NNTrainHyperParams(
            local_num_epochs=work.epochs,
            local_learning_rate=work.lr,
            local_batch_size=work.batch_size,
        ),
        callbacks=[EndOfRound()],
        send_metrics_to_platform=False,
    )


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        main()
