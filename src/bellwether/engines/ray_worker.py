"""What a Ray actor does, and how things travel to it and back."""

import sys
import time
import warnings
from typing import Any

import numpy as np
import ray
import torch
from numpy.typing import NDArray
from ray.cloudpickle import CloudPickler

from bellwether.core.dataset import ALIGNMENT
from bellwether.engines.in_process import InProcess
from bellwether.engines.parcels import Packer, Parcel, Place, opened
from bellwether.engines.work import Work
from bellwether.engines.worker import performed

Packed = tuple[NDArray[np.uint8], Place]
"""One array: Ray maps it into each process of a node from where it lies, without a copy."""
KEPT = 4
"""Works that may be under way at once."""


class _CloudPacker(Packer, CloudPickler):
    """What another machine cannot import (a notebook's classes, a lambda) travels as code."""


def packed(content: Any) -> Packed:
    """An object for Ray; `Unfit` if it cannot travel."""
    parcel = Parcel(content, _CloudPacker)
    array = np.empty(parcel.size, dtype=np.uint8)
    return array, parcel.write(array)


def unpacked(parcel: Packed, *, copy: bool = False) -> Any:
    """The object again; its vectors stay in Ray's memory unless they are copied."""
    array, place = parcel
    aligned = array.ctypes.data % ALIGNMENT == 0  # small ones are not
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The given buffer is not writable")
        return opened(array, place, copy=copy or not aligned)


class Worker:
    """Performs tasks, one after the other, on one thread."""

    def __init__(self, path: list[str]) -> None:
        # What the program imported from, and this process does not; elsewhere it may be missing.
        sys.path.extend(place for place in path if place not in sys.path)
        self._works: dict[int, Work] = {}

    def prepare(self, theirs: str, luggage: Packed) -> str:
        """Take in what stays the same for all tasks; the reason, where that cannot be."""
        if theirs != (ours := version()):
            return f"torch is {ours} on a node but {theirs} here; bits would differ"
        try:
            settings, self._workplace = unpacked(luggage)
        except Exception as error:
            return (
                "a node cannot load the model, the loss or the data"
                f" ({type(error).__name__}: {error}); install there what they are made of"
            )
        settings.adopt()
        self._works.clear()
        self._here = InProcess(self._workplace)
        return ""

    def perform(self, serial: int, work: list[Any], tasks: Packed) -> tuple[int, Packed]:
        """What comes of a part of some work, and the nanoseconds that it took.

        The work is a reference, in a list so that Ray does not fetch it for each call.
        """
        started = time.perf_counter_ns()
        if serial not in self._works:
            while len(self._works) >= KEPT:
                del self._works[min(self._works)]
            sent: Work = unpacked(ray.get(work[0]))
            self._works[serial] = sent.unpacked(self._workplace)
        content = performed(
            self._here, self._works[serial], unpacked(tasks), self._workplace.profile
        )
        return time.perf_counter_ns() - started, packed(content)


def version() -> str:
    """What must be the same everywhere; Ray itself looks at its own version and Python's."""
    return str(torch.__version__)
