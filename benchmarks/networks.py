"""The networks of the workloads in PyTorch, for every contender that runs on it."""

from torch import nn

from workloads import Workload


def make(work: Workload) -> nn.Module:
    """The workload's network, with weights from torch's default generator."""
    if work.network == "linear":
        return nn.Sequential(nn.Flatten(), nn.Linear(784, 10))
    if work.network == "mlp":
        width = work.width
        return nn.Sequential(
            nn.Flatten(),
            nn.Linear(784, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, 10),
        )
    channels, padding = {"lenet5-28": (1, 2), "lenet5-32": (3, 0)}[work.network]
    return nn.Sequential(
        nn.Conv2d(channels, 6, 5, padding=padding),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(400, 120),
        nn.ReLU(),
        nn.Linear(120, 84),
        nn.ReLU(),
        nn.Linear(84, 10),
    )
