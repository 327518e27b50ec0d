"""What the machine could do at most: measured matrix products and convolutions, and the floating
point operations of the workloads' rounds, counted.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

import networks
from workloads import WORKLOADS, Workload


@dataclass(frozen=True)
class Operation:
    """One call, and its floating point operations; a multiplication and an addition are two."""

    title: str
    call: Callable[[], object]
    operations: int


def operations() -> list[Operation]:
    """Large ones, that reach the machine's limit, and one layer as small as LeNet-5's."""
    matrix = torch.randn(512, 512)
    image, filters = torch.randn(8, 64, 28, 28), torch.randn(64, 64, 3, 3)
    small, few = torch.randn(64, 6, 14, 14), torch.randn(16, 6, 5, 5)
    return [
        Operation("matrix product 512^3", lambda: matrix @ matrix, 2 * 512**3),
        Operation(
            "convolution 64->64, 3x3",
            lambda: functional.conv2d(image, filters, padding=1),
            2 * 8 * 28 * 28 * 64 * 64 * 9,
        ),
        Operation(
            "LeNet-5's second convolution",
            lambda: functional.conv2d(small, few),
            2 * 64 * 10 * 10 * 16 * 6 * 25,
        ),
    ]


def measure(seconds: float) -> dict[str, dict[str, float]]:
    """GFLOP/s of each operation with one thread and with two."""
    before = torch.get_num_threads()
    rates: dict[str, dict[str, float]] = {}
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            for operation in operations():
                best = _best(operation.call, seconds)
                rates.setdefault(operation.title, {})[str(threads)] = (
                    operation.operations / best / 1e9
                )
    finally:
        torch.set_num_threads(before)
    return rates


def arithmetic() -> dict[str, float]:
    """Floating point operations of a round of each workload, forward and backward."""
    return {name: _round(work) for name, work in WORKLOADS.items()}


def _round(work: Workload) -> float:
    per_epoch = 0
    x, y = map(torch.from_numpy, work.client(0))
    network = networks.make(work)
    for inputs, targets in zip(x.split(work.batch_size), y.split(work.batch_size), strict=True):
        with FlopCounterMode(display=False) as counter:
            functional.cross_entropy(network(inputs), targets).backward()
        per_epoch += counter.get_total_flops()
    return float(per_epoch * work.epochs * work.cohort)


def _best(call: Callable[[], object], seconds: float) -> float:
    """The quickest of the calls that fit into this time: the limit, not the habit."""
    call()
    quickest, until = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < until:
        started = time.perf_counter()
        call()
        quickest = min(quickest, time.perf_counter() - started)
    return quickest
