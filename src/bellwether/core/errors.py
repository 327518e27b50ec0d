"""The errors that Bellwether raises on purpose: one clear line each, saying what to do."""

import difflib
import math
from collections.abc import Iterable
from numbers import Real


class BellwetherError(Exception):
    """Base of every error that Bellwether raises on purpose."""


class InputError(BellwetherError, ValueError):
    """What the user gave cannot work; the message says what to change."""


class WireError(BellwetherError):
    """Bytes that are no message: truncated, corrupt, or of another schema."""


class ClientFailed(BellwetherError):
    """A client's work raised; the cause is chained."""


class WorkerLost(ClientFailed):
    """A client's work ended the process that did it, or took more memory than there is."""


class Diverged(BellwetherError):
    """A number that is not finite appeared in an update or a model."""


def unknown(kind: str, name: str, known: Iterable[str]) -> InputError:
    """The error for a name that is not in a catalogue, with the closest names."""
    names = sorted(known)
    close = difflib.get_close_matches(name.lower(), names, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(close)}?" if close else f"known: {', '.join(names)}"
    return InputError(f"unknown {kind} {name!r}; {hint}")


def check_positive(**settings: float) -> None:
    """Raise `InputError` unless each setting is a finite number above 0."""
    for name, value in settings.items():
        if not (_is_finite(value) and value > 0):
            raise InputError(f"{name} must be a finite number above 0, not {value!r}")


def check_not_negative(**settings: float) -> None:
    """Raise `InputError` unless each setting is a finite number, 0 or more."""
    for name, value in settings.items():
        if not (_is_finite(value) and value >= 0):
            raise InputError(f"{name} must be a finite number, 0 or more, not {value!r}")


def check_fraction(**settings: float) -> None:
    """Raise `InputError` unless each setting is at least 0 and below 1."""
    for name, value in settings.items():
        if not (_is_finite(value) and 0 <= value < 1):
            raise InputError(f"{name} must be at least 0 and below 1, not {value!r}")


def check_probability(**settings: float) -> None:
    """Raise `InputError` unless each setting is a number between 0 and 1."""
    for name, value in settings.items():
        if not (_is_finite(value) and 0 <= value <= 1):
            raise InputError(f"{name} is a probability, between 0 and 1, not {value!r}")


def _is_finite(value: object) -> bool:
    return isinstance(value, Real) and math.isfinite(value)
