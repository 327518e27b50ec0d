"""Leave the process as it was found: torch's global generators and its threads."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from bellwether.core.streams import random_state, set_random_state


@contextmanager
def isolated() -> Iterator[None]:
    """Compute on one thread, which fixes the bits, and give back the caller's random state."""
    threads, state = torch.get_num_threads(), random_state()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        set_random_state(state)
