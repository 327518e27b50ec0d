"""How many clients are computed side by side."""

import warnings
from collections.abc import Sequence
from numbers import Integral
from typing import Literal

import torch
from torch import nn

from bellwether.core.dataset import Samples
from bellwether.core.errors import InputError
from bellwether.core.stacked.data import of_each
from bellwether.core.stacked.space import StackedSpace
from bellwether.core.tasks import Workplace
from bellwether.core.workspace import Workspace

Wish = int | Literal["auto"]

MOST = 25
"""Clients of a group on a CPU, ..."""
NUMBERS = 2**20
"""... and numbers in its [m, d]: with more of either it leaves the caches."""
GPU_BYTES = 4 * 2**30
"""Bytes of a group's [m, d] on a GPU; a descent needs some five times as many."""
TOLERANCE = 1e-3
"""How far a stacked gradient may be from the loop's, relatively, before it is another one."""


def check_wish(wish: object, name: str = "batch_clients") -> Wish:
    """A number that a user may leave to "auto", or `InputError`."""
    if wish == "auto":
        return "auto"
    if not isinstance(wish, Integral) or isinstance(wish, bool) or int(wish) < 1:
        raise InputError(f"{name} must be 'auto' or a number from 1, not {wish!r}")
    return int(wish)


def groups(cohort: int, size: int) -> list[tuple[int, ...]]:
    """The positions of a cohort in groups: a rule of the two numbers, so that bits are too."""
    return [tuple(range(start, min(start + size, cohort))) for start in range(0, cohort, size)]


def group_size(wish: Wish, space: Workspace, workplace: Workplace) -> int:
    """How many clients form a group; 1, and a warning if more were wished, where none can.

    "auto" on a CPU: 25 at most and d m at most 2^20 numbers, for linear layers and activations;
    other models gain nothing there. On a GPU as many as take 4 GiB.
    """
    if wish == 1:
        return 1
    reason = unstackable(space, workplace)
    if reason:
        if wish != "auto":
            warnings.warn(
                f"batch_clients={wish}: {reason}; clients are computed one by one", stacklevel=4
            )
        return 1
    if wish != "auto":
        return wish
    if space.device.type != "cpu":
        return max(1, GPU_BYTES // space.parameters.nbytes)
    by_hand = StackedSpace(space, 1).by_hand
    return max(1, min(MOST, NUMBERS // space.size)) if by_hand else 1


def unstackable(space: Workspace, workplace: Workplace) -> str:
    """Why these clients cannot be computed side by side; empty if they can. It tries two."""
    if workplace.algorithm is not None and not workplace.algorithm.batched:
        return f"{type(workplace.algorithm).__name__} looks at clients one by one"
    if space.size < 2:
        return f"a model of {space.size} parameters leaves nothing to stack"
    if any(isinstance(part, nn.modules.batchnorm._NormBase) for part in space.module.modules()):
        return "batch-norm keeps statistics of each client's own"
    held = space.admit(workplace.federation.client(0))
    first, last = (held.take(torch.tensor([i], device=space.device)) for i in (0, held.size - 1))
    with space.uncommitted():
        try:
            return _compare(space, (first, last))
        except Exception as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            return f"the model cannot be stacked ({reason})"


def _compare(space: Workspace, samples: Sequence[Samples]) -> str:
    stacked = StackedSpace(space, len(samples))
    buffers = space.read_buffers()
    stacked.load(space.parameters.clone(), buffers)
    stacked.backward(of_each(samples).whole)
    if not torch.equal(space.read_buffers(), buffers):
        return "the model keeps statistics of each client's own"
    for row, batch in zip(stacked.gradient, samples, strict=True):
        space.backward(batch)
        if (row - space.gradient).norm() > TOLERANCE * (1 + space.gradient.norm()):
            return "the model computes something else when it is stacked"
    return ""
