"""Runs contenders in processes of their own and lets them take turns.

A contender starts, warms up and then waits; two that are compared train in alternate blocks of
rounds, so whatever else the machine does meets both. While one trains the other sleeps.
"""

import contextlib
import json
import os
import queue
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import memory

HERE = Path(__file__).parent
START_SECONDS = 180.0
ROUND_SECONDS = 90.0
LONG = 2.0
"""A round of more seconds than this gets no round to settle in, and few repetitions."""


class Failed(Exception):
    """A contender did not do its part; the message says why."""


@dataclass(frozen=True)
class Entry:
    """A contender: how it is called and started, with the workload to be added at the end."""

    name: str
    title: str
    module: str
    arguments: tuple[str, ...] = ()
    python: str = sys.executable
    environment: Mapping[str, str] = field(default_factory=dict)

    def command(self, workload: str, changes: tuple[str, ...]) -> list[str]:
        sets = ["--set", *changes] if changes else []
        return [self.python, "-m", self.module, workload, *self.arguments, *sets]


@dataclass(frozen=True)
class Plan:
    """How long to measure."""

    repetitions: int
    """How often all processes are started anew."""
    blocks: int
    """Turns that two contenders take in one repetition."""
    block_seconds: float


NORMAL = Plan(repetitions=2, blocks=3, block_seconds=0.6)
QUICK = Plan(repetitions=1, blocks=2, block_seconds=0.2)


class Contender:
    """A running entry."""

    def __init__(self, entry: Entry, workload: str, changes: tuple[str, ...] = ()) -> None:
        self.entry = entry
        self.mark = memory.new_mark()
        self.facts: dict[str, Any] = {}
        """What is known of it: versions, seconds to the first round, peak memory in bytes."""
        self.estimate = 0.0
        """Seconds of a round, roughly."""
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed in close()
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._started = time.perf_counter()
        self._process = subprocess.Popen(
            entry.command(workload, changes),
            cwd=HERE,
            env=os.environ | dict(entry.environment) | {memory.MARK: self.mark},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            start_new_session=True,  # Ctrl-C reaches it through the referee, once
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def warm_up(self) -> None:
        """Wait until it is there and let it train a little, watching its memory."""
        with memory.Watch(self.mark) as watch:
            ready = self._line(START_SECONDS)
            started = time.perf_counter() - self._started - ready["data_seconds"]
            first = self.rounds(1, START_SECONDS)[0]
            self.estimate = min(self.rounds(3 if first < LONG else 1))
        self.facts = {
            "versions": ready["versions"],
            "seconds_to_first_round": started + first,
            "peak_bytes": watch.peak,
        }

    def rounds(self, count: int, patience: float = ROUND_SECONDS) -> list[float]:
        """The seconds that each of its next rounds takes."""
        assert self._process.stdin
        try:
            self._process.stdin.write(f"{count}\n")
            self._process.stdin.flush()
        except OSError:
            raise Failed(self._reason("ended")) from None
        return [self._line(patience)["seconds"] for _ in range(count)]

    def block(self, seconds: float) -> float:
        """The median round of a block about this long, after one round to settle in."""
        count = max(1, min(100, round(seconds / max(self.estimate, 1e-4))))
        settle = int(self.estimate < LONG)
        return statistics.median(self.rounds(settle + count)[settle:])

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def close(self) -> None:
        """End it and whatever it started."""
        assert self._process.stdin
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(5)
        if self.alive:
            self._process.kill()
        # Daemons that are still ending would disturb whoever comes next.
        until = time.perf_counter() + 10
        while (left := memory.members(self.mark)) and time.perf_counter() < until:
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.05)
        self._process.wait()
        self._reader.join()
        assert self._process.stdout
        self._process.stdout.close()
        self._log.close()

    def _read(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def _line(self, patience: float) -> dict[str, Any]:
        try:
            line = self._lines.get(timeout=patience)
        except queue.Empty:
            raise Failed(f"no answer within {patience:.0f} seconds") from None
        if line is None:
            raise Failed(self._reason("ended"))
        answer: dict[str, Any] = json.loads(line)
        if "cannot" in answer:
            raise Failed(answer["cannot"])
        return answer

    def _reason(self, what: str) -> str:
        self._log.seek(0)
        words = self._log.read().decode(errors="replace").strip().splitlines()
        return f"{what}: {words[-1].strip()[:200]}" if words else what


@contextmanager
def running(entry: Entry, workload: str, changes: tuple[str, ...] = ()) -> Iterator[Contender]:
    """A contender that is warm, and gone afterwards."""
    contender = Contender(entry, workload, changes)
    try:
        contender.warm_up()
        yield contender
    finally:
        contender.close()


def compare(ours: Contender, theirs: Contender, plan: Plan) -> list[tuple[float, float]]:
    """Seconds a round of both, turn by turn: ours first, theirs right after."""
    blocks = plan.blocks if theirs.estimate < LONG else 1
    return [
        (ours.block(plan.block_seconds), theirs.block(plan.block_seconds)) for _ in range(blocks)
    ]


def spread(values: list[float]) -> dict[str, float]:
    """Median, least and most."""
    return {"median": statistics.median(values), "least": min(values), "most": max(values)}
