"""Where values made of vectors are kept: the newest in RAM, beyond a budget on disk."""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from bellwether.core.errors import InputError
from bellwether.core.pages import Pages

BUDGET = 2**30
"""Bytes of RAM, if nobody says otherwise."""

ALIGNMENT = 64


@dataclass(frozen=True)
class Form:
    """How a value is made of its vectors; a record holds them end to end, each aligned."""

    kind: type[Any]
    vectors: tuple[tuple[str, torch.dtype, torch.Size, torch.device], ...]

    @cached_property
    def size(self) -> int:
        """The bytes of a record."""
        return sum(_padded(shape.numel() * dtype.itemsize) for _, dtype, shape, _ in self.vectors)

    def pack(self, value: Any) -> Tensor:
        """The value's record."""
        data, start = torch.zeros(self.size, dtype=torch.uint8), 0
        for vector in vectors_of(value).values():
            raw = vector.cpu().contiguous().reshape(-1).view(torch.uint8)
            data[start : start + raw.numel()] = raw
            start += _padded(raw.numel())
        return data

    def unpack(self, data: Tensor) -> Any:
        """The value of this record."""
        vectors, start = {}, 0
        for name, dtype, shape, device in self.vectors:
            length = shape.numel() * dtype.itemsize
            vectors[name] = data[start : start + length].view(dtype).reshape(shape).to(device)
            start += _padded(length)
        return self.kind(**vectors)


class Record:
    """One value in a store. Once nobody holds the record, what it took is free again."""

    __slots__ = ("_store", "form")

    def __init__(self, store: "Store", form: Form) -> None:
        self._store = store
        self.form = form

    def __del__(self) -> None:
        self._store.forget(self)

    def value(self) -> Any:
        """What was put; from disk, a copy of it."""
        return self._store.get(self)


class Store:
    """Values by their records; what was put first goes to disk first."""

    def __init__(self, budget: int = BUDGET, folder: Path | None = None) -> None:
        self._budget = budget
        self._folder = folder
        self._forms: dict[Form, Form] = {}
        self._cached: OrderedDict[int, tuple[Form, Any]] = OrderedDict()
        self._places: dict[int, int] = {}
        self.in_ram = 0
        """Bytes of the values that are in RAM."""

    @cached_property
    def _pages(self) -> Pages:
        return Pages(self._folder)

    def put(self, value: Any) -> Record:
        """Keep a dataclass, or a dict, of vectors."""
        value = _alone(value)
        form = Form(
            type(value),
            tuple((n, v.dtype, v.shape, v.device) for n, v in vectors_of(value).items()),
        )
        record = Record(self, self._forms.setdefault(form, form))
        self._cached[id(record)] = record.form, value
        self.in_ram += record.form.size
        while self.in_ram > self._budget:
            self._evict()
        return record

    def get(self, record: Record) -> Any:
        """The value of a record of this store."""
        if (cached := self._cached.get(id(record))) is not None:
            return cached[1]
        # Not cached again: who reads what a client keeps usually replaces it in the same round.
        return record.form.unpack(self._pages.read(self._places[id(record)], record.form.size))

    def forget(self, record: Record) -> None:
        """Free what a record took."""
        if self._cached.pop(id(record), None) is not None:
            self.in_ram -= record.form.size
        if (place := self._places.pop(id(record), None)) is not None:
            self._pages.free(place, record.form.size)

    def _evict(self) -> None:
        number, (form, value) = next(iter(self._cached.items()))
        self._places[number] = self._pages.write(form.pack(value))
        del self._cached[number]  # last, so that Ctrl-C at any point loses no value
        self.in_ram -= form.size


def vectors_of(value: Any) -> dict[str, Tensor]:
    """The vectors of a value by name; `InputError` if it is made of anything else."""
    if is_dataclass(value) and not isinstance(value, type):
        vectors = {f.name: getattr(value, f.name) for f in fields(value)}
    else:
        vectors = dict(value) if isinstance(value, Mapping) else {"": value}
    for name, vector in vectors.items():
        if not name or not isinstance(vector, Tensor):
            what = f"whose {name} is" if name else "not"
            raise InputError(
                "client.memory must be a dataclass of vectors, such as Memory(control=v),"
                f" {what} {type(vector).__name__}"
            )
    return vectors


def _alone(value: Any) -> Any:
    """The value; vectors that are part of something larger, or of a graph, become copies."""
    vectors = vectors_of(value)
    shared = {
        name: vector.detach().clone()
        for name, vector in vectors.items()
        if vector.requires_grad or vector.untyped_storage().nbytes() > vector.nbytes
    }
    return type(value)(**{**vectors, **shared}) if shared else value


def _padded(length: int) -> int:
    return -(-length // ALIGNMENT) * ALIGNMENT
