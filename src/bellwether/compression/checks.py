"""Checks of what compressors are given, by users and by senders."""

from numbers import Real
from typing import Any

from bellwether.core.errors import InputError, WireError
from bellwether.core.vector import Vector


def fraction(value: Any, owner: str) -> float:
    """The value as a plain float in (0, 1]; anything else is the user's mistake."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) <= 1:
        raise InputError(f"{owner}(fraction={value!r}): give a number above 0 and at most 1")
    return float(value)


def kept(fraction: float, size: int) -> int:
    """k, how many of so many numbers are kept: the nearest whole number, one at least."""
    return min(size, max(1, round(fraction * size)))


def flat(vector: Vector, owner: str) -> Vector:
    """The numbers of the vector in one row."""
    if not vector.is_floating_point():
        kind = str(vector.dtype).removeprefix("torch.")
        raise InputError(f"{owner} compresses vectors of real floating numbers, not {kind}")
    return vector.detach().reshape(-1)


def sound(condition: bool, packed: Any) -> None:
    """Refuse what no such compressor has sent, whoever did."""
    if not condition:
        raise WireError(
            f"this {type(packed).__name__} was made by another compressor, or is corrupt"
        )


def length(shape: Any, packed: Any) -> int:
    """How many numbers a vector of the received shape has."""
    sound(
        isinstance(shape, tuple) and all(type(n) is int and 0 <= n < 2**31 for n in shape), packed
    )
    size = 1
    for n in shape:
        size *= n
    sound(size < 2**31, packed)
    return size
