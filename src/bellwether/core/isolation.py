"""Leave the process as it was found: torch's global generators and its threads."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from bellwether.core.streams import random_state, set_random_state


@contextmanager
def isolated() -> Iterator[None]:
    """Compute in a way that fixes the bits, and give back the caller's settings and random state.

    On one thread; on a GPU, by cuDNN's deterministic algorithms.
    """
    threads, state = torch.get_num_threads(), random_state()
    cudnn = torch.backends.cudnn
    chosen = cudnn.deterministic, cudnn.benchmark
    torch.set_num_threads(1)
    cudnn.deterministic, cudnn.benchmark = True, False
    try:
        yield
    finally:
        cudnn.deterministic, cudnn.benchmark = chosen
        torch.set_num_threads(threads)
        set_random_state(state)
