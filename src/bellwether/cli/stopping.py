"""Ctrl-C once: finish the round, save, stop. Twice: stop now; the run can go on from there."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from rich.console import Console


class Stopping:
    """Whether the user asked to stop."""

    def __init__(self) -> None:
        self._rounds = False
        self._asked = False

    def after(self, on_round: Callable[..., None]) -> Callable[..., None]:
        """What is told of every round, and stops after one where that was asked."""

        def told(*arguments: object) -> None:
            self._rounds = True
            on_round(*arguments)
            if self._asked:
                raise KeyboardInterrupt

        return told

    def ask(self, _: int, frame: FrameType | None) -> None:
        """Ctrl-C. Before the first round there is nothing to finish."""
        if self._asked or not self._rounds:
            raise KeyboardInterrupt
        self._asked = True
        Console(stderr=True).print("Finishing the round; Ctrl-C again stops now.")


@contextmanager
def stopping() -> Iterator[Stopping]:
    """Within it Ctrl-C asks first."""
    asked = Stopping()
    before = signal.signal(signal.SIGINT, asked.ask)
    try:
        yield asked
    finally:
        signal.signal(signal.SIGINT, before)
