import math
from dataclasses import dataclass

import torch
from torch import Tensor

from bellwether.compression import checks
from bellwether.core.vector import Vector

LARGEST = 15
"""The scaled numbers lie below 2^15; float16 ends just below 2^16, and rounding may go up."""


@dataclass(frozen=True, eq=False)
class Halves:
    """The numbers in float16, and the power of two that they were multiplied by."""

    values: Tensor
    scale: Tensor


@dataclass(frozen=True)
class Half:
    """Numbers in 16 bits: IEEE float16 after scaling the vector by a power of two.

    float16 rather than bfloat16: 11 bits of precision against 8, and with the scale, which is
    exact, nothing overflows whatever its size. The error of a number is at most the larger of
    2^-11 of itself and 2^-39 of the vector's largest number. Rounding is to nearest, so it is
    not unbiased, but it is a contraction that needs no memory. NaN and Inf stay what they are.
    """

    form = Halves
    feedback = False

    def compress(self, vector: Vector, key: int) -> Halves:
        x = checks.flat(vector, "Half")
        largest = float(torch.where(x.isfinite(), x, 0).abs().amax()) if len(x) else 0.0
        _, exponent = math.frexp(largest)
        _, end = math.frexp(torch.finfo(x.dtype).max)
        scale = x.new_tensor(2.0 ** min(LARGEST - exponent, end - 2))  # its inverse is normal too
        return Halves((x * scale).half().reshape(vector.shape), scale)

    def decompress(self, packed: Halves) -> Vector:
        checks.sound(packed.values.dtype == torch.float16, packed)
        checks.sound(packed.scale.ndim == 0 and packed.scale.is_floating_point(), packed)
        return packed.values.to(packed.scale.dtype) / packed.scale
