"""On a GPU: a step's kernels, recorded once and replayed.

Launching the kernels of a small model one by one takes longer than they run.
"""

from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager

import torch
from torch import Tensor

from bellwether.core.streams import random_state, set_random_state

SEEN = 3
"""How often inputs of one shape must come before their kernels are recorded: recording takes
as long as a hundred steps."""
MOST = 16
"""Recordings kept; each holds its own memory for activations."""

Compute = Callable[..., None]


def graphed(
    compute: Compute,
    uncommitted: Callable[[], AbstractContextManager[None]],
    device: torch.device,
) -> Compute:
    """The computation, by replays where it runs on a GPU."""
    return Graphs(compute, uncommitted) if device.type == "cuda" else compute


class Graphs:
    """Replays of one computation that reads its inputs and writes to fixed places.

    `uncommitted` puts back what the computation changes, so that a rehearsal leaves no trace.
    """

    def __init__(
        self, compute: Compute, uncommitted: Callable[[], AbstractContextManager[None]]
    ) -> None:
        self._compute = compute
        self._uncommitted = uncommitted
        self._seen: Counter[tuple[object, ...]] = Counter()
        self._recorded: dict[tuple[object, ...], _Recording] = {}
        self._possible = True

    def __call__(self, *inputs: Tensor) -> None:
        """Compute, by a replay where there is one."""
        key = tuple((t.shape, t.dtype) for t in inputs)
        recording = self._recorded.get(key)
        if recording is None and self._possible and len(self._recorded) < MOST:
            self._seen[key] += 1
            if self._seen[key] > SEEN:
                recording = self._record(key, inputs)
        if recording is None:
            self._compute(*inputs)
        else:
            recording.replay(inputs)

    def _record(self, key: tuple[object, ...], inputs: tuple[Tensor, ...]) -> "_Recording | None":
        state = random_state()
        try:
            with self._uncommitted():
                self._recorded[key] = _Recording(self._compute, inputs)
        except RuntimeError:  # it asks the GPU for a number on its way: only possible step by step
            self._possible = False
            torch.cuda.synchronize()
        finally:
            set_random_state(state)
        return self._recorded.get(key)


class _Recording:
    def __init__(self, compute: Compute, inputs: tuple[Tensor, ...]) -> None:
        self._inputs = tuple(t.clone() for t in inputs)
        side, main = torch.cuda.Stream(), torch.cuda.current_stream()
        side.wait_stream(main)
        with torch.cuda.stream(side):
            for _ in range(2):  # libraries set themselves up in their first calls
                compute(*self._inputs)
        main.wait_stream(side)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            compute(*self._inputs)

    def replay(self, inputs: tuple[Tensor, ...]) -> None:
        torch._foreach_copy_(self._inputs, inputs)
        self._graph.replay()
