"""Messages in compressed form: their floating vectors packed, with a memory of what was left out.

Numbers, text and whole-number vectors stay as they are; so do batch-norm statistics, which travel
beside the message: they are few, and a variance must not be rounded below 0.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from itertools import count
from typing import Any

from torch import Tensor

from bellwether.core import streams
from bellwether.core.errors import InputError
from bellwether.core.interfaces import Compressor
from bellwether.core.vector import Vector

Kept = Mapping[str, Vector]
"""Vectors by the exchange, the message and the field that they belong to."""

KEY = 2**63 - 1
"""The bits of a key: it travels as one signed number of 8 bytes."""


def pack(
    compressor: Compressor, message: Any, residuals: Kept, size: int, seed: int, *address: int
) -> tuple[Any, dict[str, Vector]]:
    """A client's message in compressed form, and the residuals that it then keeps.

    With error feedback it sends C(v + e) and keeps e <- v + e - C(v + e), field by field, so that
    the vectors that it ever sent and e add up to those that it was to send (Stich et al. 2018,
    Algorithm 1; Karimireddy et al. 2019, Algorithm 2). That is right for what the receiver adds
    up over the rounds. `size` is d; the address is (round, exchange, client).
    """
    left: dict[str, Vector] = {}

    def squeeze(name: str, vector: Vector, key: int) -> Any:
        if not compressor.feedback:
            return compressor.compress(vector, key)
        residual = residuals.get(name)
        if vector.shape[-1] != size or (residual is not None and residual.shape != vector.shape):
            raise InputError(
                f"{compressor} keeps what it leaves out of {name.partition('.')[2]} for the next"
                f" round, but a vector of shape {tuple(vector.shape)} beside a model of {size}"
                " numbers may then be another part of it; use RandomK, Quantise or Half"
            )
        wanted = vector if residual is None else vector + residual
        packed = compressor.compress(wanted, key)
        left[name] = wanted - compressor.decompress(packed)
        return packed

    return _squeezed(message, squeeze, seed, *address), left


def announce(
    compressor: Compressor, message: Any, held: Kept, seed: int, *address: int
) -> tuple[Any, dict[str, Vector]]:
    """The server's message to all in compressed form, and what every client then holds of it.

    The server sends a model, not a change of it, so error feedback works on the difference to
    what the clients hold: it sends C(x - h) and both sides keep h <- h + C(x - h); the first
    message goes in full. The address is (round, exchange, the server).
    """
    holds: dict[str, Vector] = {}

    def squeeze(name: str, vector: Vector, key: int) -> Any:
        if not compressor.feedback:
            return compressor.compress(vector, key)
        before = held.get(name)
        if before is None or before.shape != vector.shape:
            holds[name] = vector.clone()
            return holds[name]
        packed = compressor.compress(vector - before, key)
        holds[name] = before + compressor.decompress(packed)
        return packed

    return _squeezed(message, squeeze, seed, *address), holds


def unpack(compressor: Compressor, message: Any, exchange: int, held: Kept | None = None) -> Any:
    """The message in its usual form, as who receives it sees it.

    `held` is what a receiver of differences held before this message.
    """

    def expand(name: str, value: Any) -> Any:
        if not isinstance(value, compressor.form):
            return value
        vector = compressor.decompress(value)
        return held[name] + vector if held and name in held else vector

    return _mapped(message, expand, exchange)


def _squeezed(
    message: Any, squeeze: Callable[[str, Vector, int], Any], seed: int, *address: int
) -> Any:
    numbers = count()

    def change(name: str, value: Any) -> Any:
        if not isinstance(value, Tensor) or not value.numel() or not value.ndim:
            return value
        if not (value.is_floating_point() or value.is_complex()):
            return value
        key = streams.key(seed, "compression", *address, next(numbers)) & KEY
        return squeeze(name, value, key)

    return _mapped(message, change, address[1])


def _mapped(message: Any, change: Callable[[str, Any], Any], exchange: int) -> Any:
    """The message with every value of its fields, and of tuples in them, changed."""

    def walk(name: str, value: Any) -> Any:
        if isinstance(value, tuple | list):
            return tuple(walk(f"{name}.{i}", v) for i, v in enumerate(value))
        return change(name, value)

    # Named by the exchange too: two exchanges of a round may overlap, so they share no memory.
    start = f"{exchange}.{type(message).__name__}"
    named = {f.name: walk(f"{start}.{f.name}", getattr(message, f.name)) for f in fields(message)}
    return replace(message, **named)
