"""Dataclass fields <-> bytes: what a message is on a network, and exactly how long it is.

    message: magic "BW", version, fields, CRC-32
    fields:  fingerprint of the schema, count; count times (index of the field, value)
    value:   kind, then its payload; a vector is dtype, rank, sizes, raw little-endian numbers;
             a dataclass within a message is its fields

Fields that still have their default are not sent. Nothing is ever unpickled.
"""

import dataclasses
import math
import struct
import zlib
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor

from bellwether.core.errors import WireError
from bellwether.core.fields import fields_of

T = TypeVar("T")

_HEAD = b"BW\x01"
_DTYPES = [
    torch.float32, torch.float64, torch.float16, torch.bfloat16,
    torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool,
]  # fmt: skip
_CODES = {dtype: code for code, dtype in enumerate(_DTYPES)}
_MAX_RANK = 8
_MAX_DEPTH = 16


def size(message: Any) -> int:
    """How many bytes `encode` makes of the message, without making them."""
    return len(_HEAD) + _fields_size(message) + 4


def tensor_size(tensor: Tensor) -> int:
    """How many bytes a vector takes within a message; none if it is empty."""
    return _size(tensor) if tensor.numel() else 0


def encode(message: Any) -> bytes:
    """The fields of a dataclass as bytes."""
    body = _HEAD + _encode_fields(message)
    return body + struct.pack("<I", zlib.crc32(body))


def decode(schema: type[T], data: bytes, *within: type[Any]) -> T:
    """The message of this dataclass that the bytes hold, or `WireError`.

    `within` are the dataclasses that its fields may hold.
    """
    if len(data) < len(_HEAD) + 5 or data[: len(_HEAD)] != _HEAD:
        raise WireError(f"these {len(data)} bytes are no message of this version")
    body, (checksum,) = data[:-4], struct.unpack("<I", data[-4:])
    if zlib.crc32(body) != checksum:
        raise WireError(f"a {schema.__name__} of {len(data)} bytes is truncated or corrupt")
    reader = _Reader(body, len(_HEAD), within)
    if reader.take(4) != _fingerprint(schema):
        raise WireError(f"the message is no {schema.__name__}")
    message = reader.fields(schema, depth=0)
    if reader.left:
        raise WireError(f"{reader.left} bytes too many in a {schema.__name__}")
    return message


def _fields_size(message: Any) -> int:
    return 4 + 1 + sum(1 + _size(v) for _, v in _sent(message))


def _encode_fields(message: Any) -> bytes:
    fields = list(_sent(message))
    head = _fingerprint(type(message)) + bytes([len(fields)])
    return b"".join([head, *(bytes([i]) + _encode(v) for i, v in fields)])


def _fingerprint(schema: Any) -> bytes:
    names = ",".join([schema.__name__, *(name for name, _ in fields_of(schema))])
    return struct.pack("<I", zlib.crc32(names.encode()))


def _sent(message: Any) -> Iterator[tuple[int, Any]]:
    for index, (name, default) in enumerate(fields_of(type(message))):
        value = getattr(message, name)
        if value is default:
            continue
        if isinstance(value, Tensor):
            if value.numel() == 0 and isinstance(default, Tensor) and default.numel() == 0:
                continue
        elif type(value) is type(default) and _same(value, default):
            continue
        yield index, value


def _same(value: Any, default: Any) -> bool:
    """Equal to the last bit: -0.0 is not 0.0, nor True 1."""
    return _encode(value) == _encode(default)


def _size(value: Any) -> int:
    if isinstance(value, Tensor):
        return 3 + 8 * value.ndim + value.numel() * value.element_size()
    if isinstance(value, tuple | list):
        return 5 + sum(_size(v) for v in value)
    if _is_message(value):
        return 1 + _fields_size(value)
    return len(_encode(value))


def _is_message(value: Any) -> bool:
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def _encode(value: Any) -> bytes:
    match value:
        case Tensor():
            if value.dtype not in _CODES or value.ndim > _MAX_RANK:
                raise WireError(
                    f"a message cannot hold numbers of type {value.dtype} with {value.ndim} axes"
                )
            flat = value.detach().cpu().contiguous().reshape(-1)
            head = struct.pack(
                f"<cBB{value.ndim}Q", b"v", _CODES[value.dtype], value.ndim, *value.shape
            )
            return head + flat.view(torch.uint8).numpy().tobytes()
        case None:
            return b"n"
        case bool():
            return b"b" + bytes([value])
        case int():
            if not -(2**63) <= value < 2**63:
                raise WireError(f"a message cannot hold {value}: more than 64 bits")
            return b"i" + struct.pack("<q", value)
        case float():
            return b"f" + struct.pack("<d", value)
        case str():
            try:
                text = value.encode()
            except UnicodeEncodeError:
                raise WireError(f"a message cannot hold the text {value!r}") from None
            return b"s" + struct.pack("<I", len(text)) + text
        case tuple() | list():
            return b"t" + struct.pack("<I", len(value)) + b"".join(_encode(v) for v in value)
        case _ if _is_message(value):
            return b"m" + _encode_fields(value)
    raise WireError(
        "a message holds vectors, numbers, text and tuples or dataclasses of them,"
        f" no {type(value).__name__}"
    )


class _Reader:
    def __init__(self, data: bytes, position: int, within: Sequence[type[Any]]) -> None:
        self._data = data
        self._position = position
        self._schemas = {_fingerprint(schema): schema for schema in within}

    @property
    def left(self) -> int:
        return len(self._data) - self._position

    def take(self, count: int) -> bytes:
        if count > self.left:
            raise WireError(f"the message ends {count - self.left} bytes too early")
        start = self._position
        self._position += count
        return self._data[start : self._position]

    def byte(self) -> int:
        return self.take(1)[0]

    def number(self, code: str) -> Any:
        return struct.unpack("<" + code, self.take(struct.calcsize("<" + code)))[0]

    def fields(self, schema: type[T], depth: int) -> T:
        names = [name for name, _ in fields_of(schema)]
        values: dict[str, Any] = {}
        for _ in range(self.byte()):
            index = self.byte()
            if index >= len(names) or names[index] in values:
                raise WireError(f"the message is no {schema.__name__}: unexpected field {index}")
            values[names[index]] = self.value(depth)
        try:
            return schema(**values)
        except (TypeError, ValueError) as error:
            raise WireError(f"the message is no {schema.__name__}: {error}") from None

    def value(self, depth: int) -> Any:
        match self.take(1):
            case b"v":
                return self._vector()
            case b"n":
                return None
            case b"b":
                return bool(self.byte())
            case b"i":
                return self.number("q")
            case b"f":
                return self.number("d")
            case b"s":
                try:
                    return self.take(self.number("I")).decode()
                except UnicodeDecodeError:
                    raise WireError("the message holds text that is no UTF-8") from None
            case b"t" | b"m" if depth == _MAX_DEPTH:
                raise WireError(f"the message holds values more than {_MAX_DEPTH} deep")
            case b"m":
                schema = self._schemas.get(self.take(4))
                if schema is None:
                    raise WireError("the message holds a dataclass that nobody expects in it")
                return self.fields(schema, depth + 1)
            case b"t":
                return tuple(self.value(depth + 1) for _ in range(self.number("I")))
            case kind:
                raise WireError(f"the message holds a value of unknown kind {kind!r}")

    def _vector(self) -> Tensor:
        code, rank = self.byte(), self.byte()
        if code >= len(_DTYPES) or rank > _MAX_RANK:
            raise WireError(f"the message holds a vector of unknown type {code} or rank {rank}")
        shape = [self.number("Q") for _ in range(rank)]
        if max(shape, default=0) >= 2**31:
            raise WireError("the message holds a vector of absurd size")
        raw = self.take(math.prod(shape) * _DTYPES[code].itemsize)
        if not raw:
            return torch.empty(shape, dtype=_DTYPES[code])
        return torch.frombuffer(bytearray(raw), dtype=_DTYPES[code]).reshape(shape)
