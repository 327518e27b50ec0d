"""Memory that several processes share. It has no name, so no crash can leave it behind."""

import mmap
import os
import tempfile
from bisect import insort

from bellwether.core.dataset import ALIGNMENT

PAGE = 4096


def aligned(size: int, to: int = ALIGNMENT) -> int:
    """The size, rounded up."""
    return -(-size // to) * to


class SharedMemory:
    """A file that nobody can open, mapped by every process that holds its descriptor."""

    def __init__(self, descriptor: int | None = None) -> None:
        self.descriptor = _nameless() if descriptor is None else descriptor
        self._map: mmap.mmap | None = None

    def upto(self, end: int) -> mmap.mmap:
        """A mapping that reaches at least so far; what was mapped before stays valid."""
        if self._map is None or len(self._map) < end:
            # Never closed by hand: tensors may still lie in it. It goes with the last of them.
            self._map = mmap.mmap(self.descriptor, os.fstat(self.descriptor).st_size)
        return self._map

    def close(self) -> None:
        """Give the memory back, once the last mapping is gone."""
        self._map = None
        os.close(self.descriptor)


class Arena(SharedMemory):
    """Shared memory that one process parcels out in blocks."""

    def __init__(self) -> None:
        super().__init__()
        self._end = 0
        self._taken: dict[int, int] = {}
        self._free: list[tuple[int, int]] = []
        """(start, size), by start; no two of them touch."""

    @property
    def taken(self) -> int:
        """How many bytes are given out."""
        return sum(self._taken.values())

    def take(self, size: int) -> int:
        """Where a block of this size starts: the first gap that fits, or the end."""
        size = aligned(max(size, 1), PAGE)
        for index, (start, gap) in enumerate(self._free):
            if gap >= size:
                rest = [(start + size, gap - size)] if gap > size else []
                self._free[index : index + 1] = rest
                break
        else:
            start, self._end = self._end, self._end + size
            os.ftruncate(self.descriptor, self._end)  # a page costs nothing until it is written to
        self._taken[start] = size
        return start

    def give_back(self, start: int) -> None:
        """The block that starts here is free again."""
        insort(self._free, (start, self._taken.pop(start)))
        joined: list[tuple[int, int]] = []
        for begin, size in self._free:
            if joined and sum(joined[-1]) == begin:
                joined[-1] = joined[-1][0], joined[-1][1] + size
            else:
                joined.append((begin, size))
        self._free = joined


def _nameless() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("bellwether")
    with tempfile.TemporaryFile() as file:  # its name is gone before anybody sees it
        return os.dup(file.fileno())
