"""Checks of what the user gives."""

import math
import numbers
import operator
from collections.abc import Sequence
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


def probability(value: Any, name: str) -> float:
    """The value as a plain float between 0 and 1; anything else is the user's mistake."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise InputError(f"{name} must be a number, got {value!r}")
    if not 0 <= float(value) <= 1:
        raise InputError(f"{name} must lie between 0 and 1, got {value}")
    return float(value)


def is_list(value: Any) -> bool:
    """Whether the value is a sequence of things, rather than text or one thing."""
    return isinstance(value, Sequence | np.ndarray) and not isinstance(value, str | bytes)


def distinct(ids: Any, name: str) -> tuple[int, ...]:
    """Clients' ids as plain ints, none twice."""
    checked = tuple(whole(client, f"a client id in {name}") for client in ids)
    if len(set(checked)) < len(checked):
        twice = next(client for client in checked if checked.count(client) > 1)
        raise InputError(f"client {twice} is twice in {name}")
    return checked
