"""Checks of what the user gives."""

import math
import numbers
import operator
from typing import Any

import numpy as np

from bellwether.core.errors import InputError


def whole(value: Any, name: str, least: int = 0) -> int:
    """The value as a plain int of at least `least`; anything else is the user's mistake."""
    try:
        if isinstance(value, bool | np.bool_):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise InputError(f"{name} must be a whole number, got {value!r}") from None
    if number < least:
        raise InputError(f"{name} must be at least {least}, got {number}")
    return number


def positive(value: Any, name: str) -> float:
    """The value as a plain float, finite and above 0; anything else is the user's mistake."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise InputError(f"{name} must be a number, got {value!r}")
    number = float(value)
    if not (math.isfinite(number) and number > 0):
        raise InputError(f"{name} must be finite and above 0, got {value}")
    return number
