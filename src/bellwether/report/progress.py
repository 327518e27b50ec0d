"""Progress of a comparison in the terminal, live or as a few plain lines."""

import time
from datetime import timedelta
from types import TracebackType
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from bellwether.core.records import RoundRecord
from bellwether.experiments.summary import Metric
from bellwether.report.words import value_text

LINES = 20
"""How many lines a whole comparison prints where nothing can be redrawn."""


class Progress:
    """`with Progress(runs=15, rounds=60) as progress: ... progress.update(name, seed, record)`.

    Rounds done before a resume count as done, but not in the speed that tells the time left.
    """

    def __init__(
        self,
        runs: int,
        rounds: int,
        *,
        total: int | None = None,
        quiet: bool = False,
        console: Console | None = None,
    ) -> None:
        """total: of all runs' rounds, where they are not alike."""
        self._rounds, self._quiet = rounds, quiet
        self._total = max(1, runs * rounds if total is None else total)
        self._console = console or Console()
        self._reached: dict[tuple[str, int], int] = {}
        self._done = self._updates = 0
        self._run: tuple[str, int] | None = None
        self._started = time.monotonic()
        self._status = "starting"
        self._latest = ""
        self._live = Live(
            console=self._console, get_renderable=self._view, refresh_per_second=4, transient=True
        )

    def __enter__(self) -> Self:
        self._started = time.monotonic()
        if self._draws:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._draws:
            self._live.stop()

    def update(self, algorithm: str, seed: int, record: RoundRecord) -> None:
        """A round is done."""
        before = self._share
        run = algorithm, seed
        self._done += record.round - self._reached.get(run, 0)
        self._reached[run] = record.round
        self._updates += 1
        if run != self._run:
            self._run, self._latest = run, ""
        for metric in Metric:
            if metric in record.metrics:
                self._latest = f"  {metric} {value_text(metric, record.metrics[metric])}"
                break
        self._status = f"{algorithm}  seed {seed}  round {record.round}/{self._rounds}"
        crossed = int(self._share * LINES) > int(before * LINES)
        if crossed and not self._quiet and not self._draws:
            times = f"{_clock(self._elapsed)} elapsed, {self._left} left"
            line = f"{self._share:4.0%}  {self._status}{self._latest}  {times}"
            self._console.print(Text(line), soft_wrap=True)

    @property
    def _draws(self) -> bool:
        return self._console.is_terminal and not self._quiet

    @property
    def _share(self) -> float:
        return self._done / self._total

    @property
    def _elapsed(self) -> float:
        return time.monotonic() - self._started

    @property
    def _left(self) -> str:
        if not self._updates:
            return "?"
        left = self._total - self._done
        return _clock(self._elapsed / self._updates * left)

    def _view(self) -> RenderableType:
        bar = Table.grid(padding=(0, 1), expand=True)
        bar.add_column(ratio=1)
        bar.add_row(
            ProgressBar(total=1.0, completed=self._share),
            f"{self._share:4.0%}",
            f"{_clock(self._elapsed)} elapsed",
            f"{self._left} left",
        )
        return Group(Text(self._status + self._latest, no_wrap=True, overflow="ellipsis"), bar)


def _clock(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))
