"""How a participant descends: the settings, the mini-batches and the one local loop."""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from numbers import Integral, Real
from typing import Any

from torch import Tensor

from bellwether.core.dataset import Samples
from bellwether.core.errors import InputError
from bellwether.core.streams import permutation, random_state, set_random_state
from bellwether.core.vector import Vector
from bellwether.core.workspace import Space


@dataclass(frozen=True)
class SGD:
    """Stochastic gradient descent: y <- y - rate (g(y; batch) + weight_decay y + correction).

    Give exactly one of `epochs` and `steps`. An epoch has ceil(n / batch_size) steps, the last
    batch may be short; `batch_size=None` takes all n samples in every step. In round t = 0, 1, ...
    the rate is min(lr, max(lr decay^t, min_lr)).
    """

    lr: float
    epochs: int | None = None
    steps: int | None = None
    batch_size: int | None = None
    decay: float = 1.0
    min_lr: float = 0.0
    weight_decay: float = 0.0

    def __post_init__(self) -> None:
        if (self.epochs is None) == (self.steps is None):
            given = "neither" if self.epochs is None else "both"
            raise InputError(f"SGD needs exactly one of epochs and steps, got {given}")
        for name in ("lr", "min_lr", "weight_decay", "decay"):
            value = getattr(self, name)
            if not (isinstance(value, Real) and math.isfinite(value) and float(value) >= 0):
                raise InputError(f"SGD({name}={value!r}): must be a finite number, 0 or more")
            object.__setattr__(self, name, float(value))
        if not 0 < self.decay <= 1:
            raise InputError(f"SGD(decay={self.decay}): must be above 0 and at most 1")
        for name, least in (("epochs", 0), ("steps", 0), ("batch_size", 1)):
            value = getattr(self, name)
            if value is None:
                continue
            whole = isinstance(value, Integral) and not isinstance(value, bool)
            if not whole or int(value) < least:
                raise InputError(f"SGD({name}={value!r}): must be a whole number, at least {least}")
            object.__setattr__(self, name, int(value))

    def __repr__(self) -> str:
        shown = (f for f in fields(self) if getattr(self, f.name) != f.default)
        return f"SGD({', '.join(f'{f.name}={getattr(self, f.name)!r}' for f in shown)})"

    def rate(self, round: int) -> float:
        """The learning rate of a round, counted from 1."""
        return min(self.lr, max(self.lr * self.decay ** (round - 1), self.min_lr))

    def local_steps(self, samples: int) -> int:
        """K, the steps that a participant with so many samples takes."""
        if self.steps is not None:
            return self.steps
        assert self.epochs is not None
        return self.epochs * math.ceil(samples / (self.batch_size or samples))


def check_moves(sgd: SGD) -> None:
    """Raise `InputError` for a descent that stays put, where a method divides by its travel."""
    if not sgd.lr or sgd.steps == 0 or sgd.epochs == 0:
        raise InputError(f"this method's clients must move: {sgd} has no steps, or rate 0")


@dataclass(frozen=True)
class Descent:
    """Where a participant's descent began and ended, and how it went."""

    start: Vector
    end: Vector
    steps: int
    lr: float

    @cached_property
    def change(self) -> Vector:
        """Delta = end - start."""
        return self.end - self.start

    @property
    def travel(self) -> float:
        """steps x rate: how far the model went along its mean direction."""
        return self.steps * self.lr


@dataclass(frozen=True)
class Batch:
    """A mini-batch as a correction function sees it."""

    space: Space
    samples: Any
    random: tuple[Tensor, ...]

    def gradient(self, x: Vector) -> Vector:
        """g(x; this batch), with the random state (dropout masks) that the step will use."""
        set_random_state(self.random)
        with self.space.uncommitted():
            self.space.parameters.copy_(x)
            self.space.backward(self.samples)
            return self.space.gradient.clone()


Correction = Vector | Callable[[Vector, Batch], Vector]
"""Added to every step's gradient: a constant vector, or a function of (y, batch)."""


def batches(data: Samples, sgd: SGD, stream: int) -> Iterator[Samples]:
    """The mini-batches of one local pass; each epoch has its own order from the stream."""
    left = sgd.local_steps(data.size)
    if sgd.batch_size is None or sgd.batch_size >= data.size:
        yield from (data for _ in range(left))
        return
    epoch = 0
    while left > 0:
        order = permutation(stream, epoch, data.size).to(data.inputs.device)
        for indices in order.split(sgd.batch_size)[:left]:
            yield data.take(indices)
            left -= 1
        epoch += 1


def descend(
    space: Space,
    batches: Iterable[Any],
    sgd: SGD,
    rate: float,
    correction: Correction | None = None,
) -> int:
    """The one local loop: move the loaded model down; return K, the steps taken."""
    y, g = space.parameters, space.gradient
    steps = 0
    for batch in batches:
        if callable(correction):
            random = random_state()
            push: Vector | None = correction(y.clone(), Batch(space, batch, random))
            set_random_state(random)
        else:
            push = correction
        space.backward(batch)
        if sgd.weight_decay:
            g.add_(y, alpha=sgd.weight_decay)
        if push is not None:
            g.add_(push)
        y.add_(g, alpha=-rate)
        steps += 1
    return steps
