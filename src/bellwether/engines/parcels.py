"""Objects as bytes for the next process: the vectors in shared memory, the rest pickled.

For processes of one program on one machine; what goes over a network is `core/wire.py`.
"""

import io
import math
import pickle
from typing import Any, NamedTuple

import torch
from torch import Tensor

from bellwether.engines.arena import aligned

Buffer = Any
"""What `torch.frombuffer` takes: a memory map, or bytes."""


class Unfit(Exception):
    """Why something cannot go to another process."""


class Place(NamedTuple):
    """Where a parcel lies: vectors first, then the skeleton with their offsets."""

    start: int
    vectors: int
    skeleton: int

    @property
    def size(self) -> int:
        """How many bytes it takes."""
        return self.vectors + self.skeleton


class Parcel:
    """An object ready to be written."""

    def __init__(self, content: Any, kind: "type[Packer] | None" = None) -> None:
        file = io.BytesIO()
        packer = (kind or Packer)(file)
        try:
            packer.dump(content)
        except (pickle.PicklingError, AttributeError, TypeError, RecursionError) as error:
            raise Unfit(str(error).splitlines()[0]) from error
        self._vectors, self._skeleton = packer.vectors, file.getbuffer()
        self.size = packer.size + len(self._skeleton)

    def write(self, buffer: Buffer, start: int = 0) -> Place:
        """Put it there; the start must be aligned."""
        for offset, vector in self._vectors:
            target = torch.frombuffer(
                buffer, dtype=vector.dtype, count=vector.numel(), offset=start + offset
            )
            target.view(vector.shape).copy_(vector)
        vectors = self.size - len(self._skeleton)
        memoryview(buffer)[start + vectors : start + self.size] = self._skeleton
        return Place(start, vectors, len(self._skeleton))


def opened(buffer: Buffer, place: Place, *, copy: bool) -> Any:
    """The object again; without a copy its vectors stay where they are, whoever writes there."""
    begin = place.start + place.vectors
    skeleton = memoryview(buffer)[begin : begin + place.skeleton]
    return _Opener(io.BytesIO(skeleton), buffer, place.start, copy).load()


class Packer(pickle.Pickler):
    """Plain tensors are set aside; a `Parameter` is pickled around the plain one that it holds."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, protocol=5)
        self.vectors: list[tuple[int, Tensor]] = []
        self.size = 0
        self._known: dict[int, tuple[Tensor, tuple[Any, ...]]] = {}
        """By identity, and kept alive: an identity is free again once its object is gone."""
        self._empty: dict[tuple[Any, ...], tuple[Any, ...]] = {}

    def persistent_id(self, value: Any) -> tuple[Any, ...] | None:
        if type(value) is not Tensor or value.layout is not torch.strided or value.is_quantized:
            return None
        if id(value) in self._known:
            return self._known[id(value)][1]
        device = None if value.device.type == "cpu" else str(value.device)
        place: tuple[Any, ...] = self.size, tuple(value.shape), value.dtype, device
        if value.numel():
            self.vectors.append((self.size, value.detach()))
            self.size = aligned(self.size + value.nbytes)
        else:
            place = self._empty.setdefault(place[1:], (0, *place[1:]))  # one object, pickled once
        self._known[id(value)] = value, place
        return place


class _Opener(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, buffer: Buffer, start: int, copy: bool) -> None:
        super().__init__(file)
        self._buffer, self._start, self._copy = buffer, start, copy
        self._known: dict[tuple[Any, ...], Tensor] = {}

    def persistent_load(self, place: Any) -> Tensor:
        known = self._known.get(place)
        if known is not None:
            return known
        offset, shape, dtype, device = place
        if count := math.prod(shape):
            vector = torch.frombuffer(
                self._buffer, dtype=dtype, count=count, offset=self._start + offset
            ).view(shape)
        else:
            vector = torch.empty(shape, dtype=dtype)
        if device is not None:
            vector = vector.to(device)
        elif self._copy:
            vector = vector.clone()
        self._known[place] = vector
        return vector
