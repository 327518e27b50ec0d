"""What a large cohort of a large model takes: `python benchmarks/vit_memory.py --workers 1`.

One round of FedAvg on ViT-Base/16 (86 million parameters), 100 clients of one sample each, in a
process tree of its own; the figure is its peak memory (`benchmarks/memory.py`).
"""

import argparse
import os
import subprocess
import sys

import torch

import memory
from bellwether import SGD, FedAvg, Federation, models, participation, train
from bellwether.engines import Local


def load(client: int) -> tuple[torch.Tensor, torch.Tensor]:
    """One picture of noise."""
    draw = torch.Generator().manual_seed(client)
    return torch.randn(1, 3, 224, 224, generator=draw), torch.randint(200, (1,), generator=draw)


def round_of(clients: int, workers: int) -> float:
    """The seconds of a round."""
    result = train(
        FedAvg(SGD(lr=0.01, epochs=1, batch_size=16)),
        Federation.lazy(clients, load),
        models.vit_base,
        rounds=1,
        participation=participation.Uniform(clients),
        engine=Local(workers),
        eval_every=0,
        device="cpu",
    )
    return result.history[0].seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--clients", type=int, default=100)
    given = parser.parse_args()
    if memory.MARK in os.environ:
        seconds = round_of(given.clients, given.workers)
        print(f"{given.clients} clients, {given.workers} workers: a round of {seconds:.0f} s")
        return
    mark = memory.new_mark()
    with memory.Watch(mark) as watch:
        code = subprocess.run(
            [sys.executable, *sys.argv], env=os.environ | {memory.MARK: mark}, check=False
        ).returncode
    peak = "unknown" if watch.peak is None else f"{watch.peak / 1e9:.2f} GB"
    print(f"peak memory of the process tree: {peak}")
    sys.exit(code)


if __name__ == "__main__":
    main()
