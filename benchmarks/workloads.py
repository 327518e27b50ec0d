"""What is measured: FedAvg on random data, the same for every contender. NumPy only.

The environments of other libraries import this file, so it must not import Bellwether.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np

Pair = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Workload:
    """Clients of equal size that train one network; nobody evaluates."""

    title: str
    network: str
    """A name that `networks.make` knows."""
    shape: tuple[int, ...]
    clients: int
    samples: int
    cohort: int
    epochs: int
    batch_size: int
    on_demand: bool = False
    """Whether a client's data are made when it comes, and forgotten afterwards."""
    width: int = 0
    """Of an mlp's two hidden layers."""
    lr: float = 0.05

    def client(self, number: int) -> Pair:
        """What one client holds; the same at every call."""
        return self.draw(number, self.samples)

    def draw(self, number: int, samples: int) -> Pair:
        """Samples from a stream of this number; clients have those from 0."""
        rng = np.random.default_rng([0, number])
        inputs = rng.standard_normal((samples, *self.shape), dtype=np.float32)
        return inputs, rng.integers(10, size=samples)

    def holder(self, convert: Callable[[np.ndarray], object]) -> Callable[[int], tuple]:
        """From a client's id to its data, which are made now unless they are made on demand."""

        def make(number: int) -> tuple:
            inputs, targets = self.client(number)
            return convert(inputs), convert(targets)

        if self.on_demand:
            return make
        return [make(number) for number in range(self.clients)].__getitem__

    def changed(self, changes: Iterable[str]) -> "Workload":
        """With other values, given as "cohort=8"."""
        pairs = (change.split("=", 1) for change in changes)
        return replace(self, **{key: type(getattr(self, key))(value) for key, value in pairs})


_LOGISTIC = Workload(
    "logistic regression 784->10, 1,000 clients x 60, cohort 100, 1 epoch, batch 20",
    "linear", (784,), 1000, 60, 100, 1, 20,
)  # fmt: skip


def _on_demand(clients: int) -> Workload:
    title = f"as C, {clients:,} clients whose data are made on demand"
    return replace(_LOGISTIC, title=title, clients=clients, on_demand=True)


WORKLOADS = {
    "A": Workload(
        "LeNet-5 28x28, 200 clients x 150, cohort 4, 5 epochs, batch 64",
        "lenet5-28", (1, 28, 28), 200, 150, 4, 5, 64,
    ),
    "B": Workload(
        "LeNet-5 3x32x32, 200 clients x 200, cohort 10, 1 epoch, batch 128",
        "lenet5-32", (3, 32, 32), 200, 200, 10, 1, 128,
    ),
    "C": _LOGISTIC,
    "D": _on_demand(100_000),
    "D-million": _on_demand(1_000_000),
}  # fmt: skip
