"""Fields <-> bytes: exact round trips, exact sizes, and one error for every bad message."""

import contextlib
import struct
import tracemalloc
import zlib
from dataclasses import dataclass, fields
from typing import Any

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from bellwether.core.algorithm import Sent, Upload
from bellwether.core.errors import WireError
from bellwether.core.wire import decode, encode, size, tensor_size

EMPTY = torch.empty(0)
DTYPES = [
    torch.float32, torch.float64, torch.float16, torch.bfloat16,
    torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool,
]  # fmt: skip
NUMBERS = [0.0, -0.0, 1.5, float("nan"), float("inf"), -float("inf"), 5e-324, 1e308, 1, -1, 127]


@dataclass(frozen=True)
class Anything:
    value: Any
    vector: Tensor = EMPTY
    count: int = 0
    rate: float = 0.0
    pair: tuple[Any, ...] = (1, 0.0)
    note: str | None = None


@dataclass(frozen=True)
class Named:
    name: str


@dataclass(frozen=True)
class Guide:
    vector: Tensor


@st.composite
def tensors(draw: st.DrawFn) -> Tensor:
    shape = draw(st.lists(st.integers(0, 3), max_size=4) | st.just([1] * 8))
    length = int(torch.Size(shape).numel())
    values = draw(st.lists(st.sampled_from(NUMBERS), min_size=length, max_size=length))
    dtype = draw(st.sampled_from(DTYPES))
    whole = [0 if v != v or abs(v) > 127 else v for v in values]
    return torch.tensor(values if dtype.is_floating_point else whole).to(dtype).reshape(shape)


LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=True)
    | st.text()
    | tensors()
)
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=4).map(tuple), max_leaves=12)


def same(a: Any, b: Any) -> bool:
    """Equal to the last bit, and of one type."""
    if type(a) is not type(b):
        return False
    if isinstance(a, Tensor):
        raw = [t.contiguous().reshape(-1).view(torch.uint8) for t in (a, b)]
        return a.dtype == b.dtype and a.shape == b.shape and torch.equal(*raw)
    if isinstance(a, float):
        return struct.pack("<d", a) == struct.pack("<d", b)
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


def same_fields(a: Any, b: Any) -> bool:
    return type(a) is type(b) and all(
        same(getattr(a, f.name), getattr(b, f.name)) for f in fields(a)
    )


HEAD = encode(Anything(None))[:-7]
"""What comes before the number of fields, the field's index, its value `n` and the checksum."""


def sealed(body: bytes, fields_count: int = 1) -> bytes:
    """A message with the right head and the right checksum around any content."""
    content = HEAD + bytes([fields_count]) + body
    return content + struct.pack("<I", zlib.crc32(content))


@settings(deadline=None, max_examples=120)
@given(VALUES)
def test_what_is_sent_arrives(value):
    message = Anything(value)
    data = encode(message)
    assert size(message) == len(data)
    assert same_fields(decode(Anything, data), message)


@settings(deadline=None, max_examples=60)
@given(tensors(), st.integers(-2, 2), st.sampled_from(NUMBERS[:6]), st.none() | st.text())
def test_whatever_the_other_fields_hold(vector, count, rate, note):
    message = Anything(vector, vector, count, rate, note=note)
    if vector.numel():  # an unused vector is not sent; see below
        assert same_fields(decode(Anything, encode(message)), message)
    assert size(message) == len(encode(message))


@pytest.mark.parametrize(
    "message",
    [
        Anything(None, rate=-0.0),
        Anything(None, pair=(True, 0.0)),
        Anything(None, pair=(1.0, 0.0)),
        Anything(None, pair=(1, -0.0)),
        Anything(None, count=False),
        Anything(None, rate=0),
    ],
)
def test_what_only_resembles_a_default_is_sent(message):
    assert same_fields(decode(Anything, encode(message)), message)


def test_an_empty_vector_does_not_turn_into_a_full_default():
    @dataclass(frozen=True)
    class Started:
        vector: Tensor = torch.ones(3)  # noqa: RUF009

    assert decode(Started, encode(Started(EMPTY))).vector.numel() == 0


def test_defaults_cost_nothing():
    nothing = len(HEAD) + 1 + 4  # the head, the number of fields and the checksum
    assert size(Upload(EMPTY)) == len(encode(Upload(EMPTY))) == nothing + 1 + 3 + 8
    vector = torch.zeros(10)
    assert tensor_size(vector) == 1 + 1 + 1 + 8 + 40
    assert tensor_size(EMPTY) == 0
    assert size(Sent(vector)) == nothing + 1 + tensor_size(vector)
    assert size(Sent(vector, vector)) == nothing + 2 * (1 + tensor_size(vector))
    assert size(Upload(vector, steps=4)) == nothing + 1 + tensor_size(vector) + 1 + 9
    back = decode(Upload, encode(Upload(vector, steps=4)))
    assert (back.gradient.numel(), back.steps, back.lr) == (0, 4, 0.0)


def test_the_bytes_of_version_1():
    data = encode(Upload(torch.tensor([1.0, -2.0]), steps=3))
    vector = "76000102000000000000000000803f000000c0"
    assert data[:3] == b"BW\x01"
    assert data[len(HEAD) : -4].hex() == "0200" + vector + "02690300000000000000"
    assert data[-4:] == struct.pack("<I", zlib.crc32(data[:-4]))


def test_received_vectors_can_be_written_to_and_share_nothing():
    data = encode(Sent(torch.ones(4).t()))
    first, second = decode(Sent, data), decode(Sent, data)
    first.model.add_(1)
    assert second.model.tolist() == [1.0] * 4


def test_strided_vectors_and_lists_are_taken():
    matrix = torch.arange(6.0).reshape(2, 3).T.requires_grad_()
    back = decode(Anything, encode(Anything([matrix, [1]]))).value
    assert back[0].tolist() == [[0, 3], [1, 4], [2, 5]]
    assert back[1] == (1,)


@pytest.mark.parametrize(
    "value",
    [
        object(),
        {"a": 1},
        b"bytes",
        2**63,
        -(2**63) - 1,
        torch.ones(1, dtype=torch.complex64),
        torch.ones([1] * 9),
        "\ud800",
        (1, [2**64]),
    ],
)
def test_what_a_message_cannot_hold_is_refused_by_the_sender(value):
    with pytest.raises(WireError):
        encode(Anything(value))


MESSAGE = encode(Anything((1, 2.5, "text", None, torch.arange(3)), torch.ones(2, 2), 7))


def test_every_truncation_and_every_changed_byte_is_noticed():
    decode(Anything, MESSAGE)
    broken = [MESSAGE[:end] for end in range(len(MESSAGE))] + [MESSAGE + b"\0"]
    for place in range(len(MESSAGE)):
        for flip in (0x01, 0x80, 0xFF):
            copy = bytearray(MESSAGE)
            copy[place] ^= flip
            broken.append(bytes(copy))
    for data in broken:
        with pytest.raises(WireError):
            decode(Anything, data)


@settings(deadline=None, max_examples=150)
@given(st.binary(max_size=80), st.integers(0, 255))
@example(b"", 0)
def test_random_bytes_are_no_message_and_random_content_is_harmless(content, count):
    with pytest.raises(WireError):
        decode(Anything, content)
    with pytest.raises(WireError):
        decode(Anything, HEAD + content)
    with contextlib.suppress(WireError):  # by chance it may be a message
        decode(Anything, sealed(content, count))


@settings(deadline=None, max_examples=150)
@given(VALUES, st.data())
def test_content_that_was_changed_before_it_was_sealed_is_harmless(value, data):
    content = bytearray(encode(Anything(value))[len(HEAD) + 1 : -4])
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(content) - 1))
        content[place] = data.draw(
            st.sampled_from([0, 1, 2, 8, 9, 127, 128, 255]) | st.integers(0, 255)
        )
    with contextlib.suppress(WireError):
        decode(Anything, sealed(bytes(content)))


def vector_head(dtype: int, *shape: int, rank: int | None = None) -> bytes:
    rank = len(shape) if rank is None else rank
    return b"\x00v" + bytes([dtype, rank]) + b"".join(struct.pack("<Q", n) for n in shape)


ABSURD = {
    "a vector longer than the message": vector_head(0, 2**40),
    "a vector of 2^64 bytes": vector_head(1, 2**61),
    "sizes whose product has 128 bits": vector_head(0, 2**63, 2**63),
    "an axis of 2^63 beside an empty one": vector_head(0, 0, 2**63),
    "axes of 2^62 beside an empty one": vector_head(0, 0, 2**62, 2**62),
    "rank 9": vector_head(0, *[1] * 9) + b"\0\0\0\0",
    "rank 255": vector_head(0, rank=255),
    "an unknown type of numbers": vector_head(10, 1) + b"\0",
    "a text longer than the message": b"\x00s\xff\xff\xff\xff",
    "a tuple longer than the message": b"\x00t\xff\xff\xff\xff" + b"n" * 10_000,
    "tuples in tuples, 100,000 deep": b"\x00" + b"t\x01\0\0\0" * 100_000 + b"n",
    "an unknown kind": b"\x00x",
    "text that is no UTF-8": b"\x00s\x01\0\0\0\xff",
    "a field that the schema lacks": b"\x06n",
    "bytes after the last field": b"\x00nn",
    "no content": b"",
}


@pytest.mark.parametrize("content", ABSURD.values(), ids=ABSURD.keys())
def test_absurd_content_under_a_right_checksum_is_refused_before_it_costs_memory(content):
    message = sealed(content)
    tracemalloc.start()
    try:
        with pytest.raises(WireError):
            decode(Anything, message)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2 * len(message) + 100_000


def test_fields_that_come_twice_or_not_at_all_are_refused():
    with pytest.raises(WireError, match="unexpected field 0"):
        decode(Anything, sealed(b"\x00n\x00n", fields_count=2))
    with pytest.raises(WireError, match="no Anything"):
        decode(Anything, sealed(b"", fields_count=0))  # `value` has no default


@pytest.mark.parametrize(
    ("message", "schema"),
    [
        (Upload(torch.ones(2), steps=3), Sent),  # more fields
        (Upload(torch.ones(2), torch.ones(2)), Sent),  # the same fields under other names
        (Named("me"), Guide),  # text where a vector belongs
        (Named("me"), Upload),
    ],
)
def test_a_message_of_another_schema_is_refused(message, schema):
    with pytest.raises(WireError):
        decode(schema, encode(message))
