"""Keep freed memory for the next step instead of giving it back to the system.

By default glibc returns large blocks at once, so every step's activations are mapped, zeroed and
faulted in anew: a fifth of a LeNet-5's step.
"""

import ctypes
import sys
from functools import cache

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3  # malloc.h
_KEPT = 512 << 20
_BLOCK = 32 << 20  # the most that every version takes for the last


@cache
def keep_heap() -> None:
    """Ask glibc, once a process, to reuse blocks up to 32 MiB and keep up to 512 MiB of them."""
    if not sys.platform.startswith("linux"):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # musl has none
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, _BLOCK)
        mallopt(_TRIM_THRESHOLD, _KEPT)
        mallopt(_TOP_PAD, _BLOCK)
