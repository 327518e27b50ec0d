from dataclasses import dataclass

import numpy as np
import torch

from bellwether.compression import checks
from bellwether.core import streams
from bellwether.core.errors import InputError
from bellwether.core.vector import Vector


@dataclass(frozen=True, eq=False)
class Drawn:
    """The values that were drawn, and the key of the stream that drew their places."""

    values: Vector
    key: int
    shape: tuple[int, ...]


@dataclass(frozen=True)
class RandomK:
    """k = fraction d numbers at random places, times d/k; both sides draw the places.

    Unbiased: E C(x) = x, with the variance E|C(x) - x|^2 = (d/k - 1) |x|^2 (Stich et al. 2018).
    With `feedback` the values go unscaled and the rest is remembered, as by `TopK`: then
    E|C(x) - x|^2 = (1 - k/d) |x|^2. One number that is not finite, drawn or not, makes all so.
    """

    fraction: float
    feedback: bool = False
    form = Drawn

    def __post_init__(self) -> None:
        object.__setattr__(self, "fraction", checks.fraction(self.fraction, "RandomK"))
        if not isinstance(self.feedback, bool):
            raise InputError(f"RandomK(feedback={self.feedback!r}): give True or False")

    def compress(self, vector: Vector, key: int) -> Drawn:
        x = checks.flat(vector, "RandomK")
        d = len(x)
        k = checks.kept(self.fraction, d)
        values = x[_drawn(key, k, d).to(x.device)]
        if not self.feedback and k < d:
            values = values * (d / k)
        if not torch.isfinite(x).all():
            values = torch.full_like(values, torch.nan)
        return Drawn(values, key, tuple(vector.shape))

    def decompress(self, packed: Drawn) -> Vector:
        d = checks.length(packed.shape, packed)
        k = checks.kept(self.fraction, d)
        checks.sound(packed.values.shape == (k,) and packed.values.is_floating_point(), packed)
        checks.sound(type(packed.key) is int, packed)
        x = packed.values.new_zeros(d)
        x[_drawn(packed.key, k, d).to(x.device)] = packed.values
        return x.reshape(packed.shape)


def _drawn(key: int, count: int, size: int) -> torch.Tensor:
    """`count` of the places 0 .. size-1, all choices equally likely: those of the lowest numbers.

    Raw numbers of the stream are the same in every version of NumPy; `choice` promises no such
    thing, and the two sides may differ in it.
    """
    if count == size:
        return torch.arange(size)
    raw = np.asarray(streams.generator(key, "random-k").bit_generator.random_raw(size))
    highest = np.partition(raw, count - 1)[count - 1]
    return torch.from_numpy(np.flatnonzero(raw <= highest)[:count])
