"""One process at a time in a folder."""

import os
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from bellwether.core.errors import InputError

TRIES, PAUSE = 20, 0.05
"""A killed run's workers hold its folder until they notice, some milliseconds later."""


class Lock:
    """`with Lock(folder): ...`; the system lets go of it with the process, however that ends."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._handle: int | None = None

    def __enter__(self) -> Self:
        try:
            import fcntl
        except ImportError:  # no such locks on Windows
            return self
        handle = os.open(self._folder, os.O_RDONLY)
        for left in reversed(range(TRIES)):
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if not left:
                    os.close(handle)
                    raise InputError(
                        f"{self._folder} is in use by another process; wait for its end, or"
                        " choose another folder"
                    ) from None
                time.sleep(PAUSE)
            except OSError:  # some network file systems have no locks
                break
        self._handle = handle
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._handle is not None:
            import fcntl

            # Workers may have inherited it, so closing alone would not let go.
            fcntl.flock(self._handle, fcntl.LOCK_UN)
            os.close(self._handle)
            self._handle = None
