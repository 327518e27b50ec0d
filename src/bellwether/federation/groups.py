"""Samples as positions in a data set, and many groups of them in one array."""

from collections.abc import Iterable, Sequence
from typing import Any, overload

import numpy as np
import numpy.typing as npt

Indices = npt.NDArray[np.int64]
"""Positions in a data set, or counts of them."""
Counts = npt.NDArray[np.int32]
"""Samples by group and label: half the size, for there are many."""


class Groups(Sequence[Indices]):
    """Each client's samples, client after client: a million cost what their samples cost.

    A group is a view of the one array, made when it is asked for; nothing can be written to it.
    """

    def __init__(self, samples: Any, sizes: Any) -> None:
        self.samples = frozen(samples)
        """All samples, group after group."""
        self.sizes = frozen(sizes)
        """How many each group has."""
        self._ends = np.cumsum(self.sizes)

    @classmethod
    def of(cls, groups: Iterable[Any]) -> "Groups":
        """From groups one by one; what is a `Groups` stays it."""
        if isinstance(groups, cls):
            return groups
        arrays = [np.asarray(group, dtype=np.int64) for group in groups]
        return cls(np.concatenate([np.empty(0, dtype=np.int64), *arrays]), list(map(len, arrays)))

    def __len__(self) -> int:
        return len(self.sizes)

    @overload
    def __getitem__(self, index: int) -> Indices: ...

    @overload
    def __getitem__(self, index: slice) -> "Groups": ...

    def __getitem__(self, index: int | slice) -> "Indices | Groups":
        if isinstance(index, slice):
            return Groups.of([self[number] for number in range(len(self))[index]])
        end = int(self._ends[index])  # past the last: an IndexError, at which iteration ends
        return self.samples[end - int(self.sizes[index]) : end]

    def tolist(self) -> list[list[int]]:
        """Plain lists."""
        return [group.tolist() for group in self]


def frozen(values: Any, dtype: type[np.integer[Any]] = np.int64) -> npt.NDArray[Any]:
    """An array that nobody can write to; a copy of one that somebody can."""
    if isinstance(values, np.ndarray) and values.dtype == dtype and not values.flags.writeable:
        return values
    array = np.array(values, dtype=dtype)
    array.setflags(write=False)
    return array
