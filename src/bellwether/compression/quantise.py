from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from bellwether.compression import checks
from bellwether.core import streams
from bellwether.core.errors import InputError
from bellwether.core.vector import Vector


@dataclass(frozen=True, eq=False)
class Levels:
    """The level of each number, 8 / bits to a byte, and the scale of each bucket."""

    levels: Tensor
    scales: Vector
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Quantise:
    """Each number rounded at random to one of 2L + 1 levels, L = 2^(bits-1) - 1: QSGD.

    In a bucket with M = max |x_i| a number goes to M l / L, l whole, up or down with the
    probabilities that make E C(x) = x (Alistarh et al. 2017, eq. 4, scaled by the maximum and in
    buckets as in their experiments). E|C(x) - x|^2 <= min(b / (4 L^2), sqrt(b) / L) |x|^2 for
    buckets of b. The one code that no level uses says "not finite" and arrives as NaN.
    """

    bits: int = 8
    bucket: int = 512
    form = Levels
    feedback = False

    def __post_init__(self) -> None:
        if type(self.bits) is not int or self.bits not in (2, 4, 8):
            raise InputError(f"Quantise(bits={self.bits!r}): give 2, 4 or 8")
        if type(self.bucket) is not int or self.bucket < 1:
            raise InputError(f"Quantise(bucket={self.bucket!r}): give a whole number, 1 or more")

    @property
    def _top(self) -> int:
        """L."""
        return int(2 ** (self.bits - 1) - 1)

    def compress(self, vector: Vector, key: int) -> Levels:
        x = checks.flat(vector, "Quantise")
        d = len(x)
        buckets = self._buckets(x)
        finite = buckets.isfinite()
        scales = torch.where(finite, buckets, 0).abs().amax(1)
        divisors = torch.where(scales > 0, scales, 1)[:, None]
        wanted = buckets / divisors * self._top
        below = wanted.floor()
        precision = np.float64 if x.dtype == torch.float64 else np.float32
        draws = streams.generator(key, "rounding").random(tuple(buckets.shape), precision)
        level = below + (torch.from_numpy(draws).to(x.device) < wanted - below)
        codes = torch.where(finite, level + self._top, 2 * self._top + 1)
        packed = _pack(codes.reshape(-1)[:d].to(torch.uint8), self.bits)
        return Levels(packed, scales, tuple(vector.shape))

    def decompress(self, packed: Levels) -> Vector:
        d = checks.length(packed.shape, packed)
        levels, scales = packed.levels, packed.scales
        checks.sound(levels.shape == (-(-d * self.bits // 8),), packed)
        checks.sound(scales.shape == (-(-d // self.bucket),), packed)
        checks.sound(levels.dtype == torch.uint8 and scales.is_floating_point(), packed)
        codes = _unpack(levels, self.bits)[:d]
        x = self._buckets((codes.to(scales.dtype) - self._top) / self._top) * scales[:, None]
        x = torch.where(codes > 2 * self._top, torch.nan, x.reshape(-1)[:d])
        return x.reshape(packed.shape)

    def _buckets(self, x: Vector) -> Tensor:
        """The numbers in rows of a bucket, zeros after the last."""
        return functional.pad(x, (0, -len(x) % self.bucket)).reshape(-1, self.bucket)


def _pack(codes: Tensor, bits: int) -> Tensor:
    """Whole numbers below 2^bits, 8 / bits to a byte, the first in the lowest bits."""
    each = 8 // bits
    rows = functional.pad(codes, (0, -len(codes) % each)).reshape(-1, each)
    packed = rows[:, 0].clone()
    for i in range(1, each):
        packed |= rows[:, i] << (bits * i)
    return packed


def _unpack(packed: Tensor, bits: int) -> Tensor:
    shifts = torch.arange(0, 8, bits, dtype=torch.uint8, device=packed.device)
    codes: Tensor = packed[:, None] >> shifts & 2**bits - 1
    return codes.reshape(-1)
