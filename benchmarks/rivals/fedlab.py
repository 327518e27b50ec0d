"""FedLab as a contender: its serial trainer and its synchronous server."""

# ruff: noqa: E402

import sys
import time
from contextlib import suppress
from types import ModuleType

import torch
from torch.utils.data import DataLoader, TensorDataset

import networks
import turns
from workloads import Workload

# FedLab imports torchvision for data sets that nobody uses here, and it has no build for CPUs
# where PyTorch has one: an empty module will do.
for name in ("torchvision", "torchvision.transforms"):
    sys.modules[name] = ModuleType(name)
sys.modules["torchvision"].transforms = sys.modules["torchvision.transforms"]

from fedlab.contrib.algorithm.basic_client import SGDSerialClientTrainer
from fedlab.contrib.algorithm.basic_server import SyncServerHandler
from fedlab.core.standalone import StandalonePipeline


class Clients:
    """What FedLab asks for a client's batches."""

    def __init__(self, work: Workload) -> None:
        self._data = work.holder(torch.from_numpy)

    def get_dataloader(self, client: int, batch_size: int) -> DataLoader:
        return DataLoader(TensorDataset(*self._data(client)), batch_size, shuffle=True)


class Pipeline(StandalonePipeline):
    """Calls at the end of a round, where FedLab would evaluate."""

    turn: turns.Turns

    def evaluate(self) -> None:
        self.turn()


def main() -> None:
    given = turns.arguments(__doc__).parse_args()
    work, turn = turns.workload(given), turns.Turns()
    torch.set_num_threads(2)
    started = time.perf_counter()
    clients = Clients(work)
    turn.ready(["fedlab", "torch", "numpy"], time.perf_counter() - started)
    network = networks.make(work)
    trainer = SGDSerialClientTrainer(network, work.clients)
    trainer.setup_dataset(clients)
    trainer.setup_optim(work.epochs, work.batch_size, work.lr)
    # Rounded down, the ratio could lose a client.
    handler = SyncServerHandler(network, turns.FOREVER, (work.cohort + 0.5) / work.clients)
    pipeline = Pipeline(handler, trainer)
    pipeline.turn = turn
    pipeline.main()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        main()
