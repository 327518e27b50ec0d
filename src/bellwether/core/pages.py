"""Bytes on disk for what is not to stay in RAM."""

import os
import tempfile
import weakref
from collections import defaultdict
from pathlib import Path

import torch
from torch import Tensor

from bellwether.core.errors import InputError


class Pages:
    """Pieces of a file without a name: the system removes it with the process, however that ends.

    It is read and written at a place, not mapped: a mapped page would count as memory of this
    process for as long as it is mapped, and a disk that is full would kill it.
    """

    def __init__(self, folder: Path | None) -> None:
        try:
            self._file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115
        except OSError as error:
            raise _cannot("make a file for", error) from error
        weakref.finalize(self, self._file.close)
        self._end = 0
        self._free: dict[int, list[int]] = defaultdict(list)

    def write(self, data: Tensor) -> int:
        """Where the bytes now are."""
        size = data.numel()
        place = self._free[size].pop() if self._free[size] else self._end
        self._end = max(self._end, place + size)
        rest, at = data.numpy().data, place
        try:
            while rest:
                count = os.pwrite(self._file.fileno(), rest, at)
                rest, at = rest[count:], at + count
        except OSError as error:
            self.free(place, size)
            raise _cannot("write down", error) from error
        return place

    def read(self, place: int, size: int) -> Tensor:
        """A copy of what was written there, as aligned as any vector of torch."""
        data = torch.empty(size, dtype=torch.uint8)
        rest, at = data.numpy().data, place
        while rest:
            count = os.preadv(self._file.fileno(), [rest], at)
            if not count:
                raise InputError("the file of what clients keep was cut short; resume the run")
            rest, at = rest[count:], at + count
        return data

    def free(self, place: int, size: int) -> None:
        """Let something else of this size be written there."""
        self._free[size].append(place)


def _cannot(what: str, error: OSError) -> InputError:
    return InputError(
        f"cannot {what} what clients keep: {error.strerror or error}; raise memory_budget, or"
        " choose a run_dir (without one: a TMPDIR) with more room"
    )
