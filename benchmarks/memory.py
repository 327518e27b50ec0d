"""The memory of a whole tree of processes: `python benchmarks/memory.py COMMAND ...`.

A process belongs to the tree when its environment carries the tree's mark, so daemons that left
their parents are found too. Memory that processes share counts once: it is the sum of their
proportional set sizes (PSS). Linux only; elsewhere there is no figure.
"""

import argparse
import os
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path
from types import TracebackType

MARK = "BENCHMARK_TREE"
PROC = Path("/proc")


def new_mark() -> str:
    """To be put into the environment of a tree's first process, under `MARK`."""
    return uuid.uuid4().hex


def members(mark: str) -> list[int]:
    """The living processes that carry the mark."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for folder in PROC.glob("[0-9]*"):
        try:
            if wanted in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
        except OSError:
            continue  # ended meanwhile, or somebody else's
    return found


def used(mark: str) -> int:
    """Bytes of memory that the tree uses now."""
    total = 0
    for pid in members(mark):
        try:
            rollup = (PROC / str(pid) / "smaps_rollup").read_text()
        except OSError:
            continue
        total += sum(
            1024 * int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:")
        )
    return total


class Watch:
    """The most that a tree uses while the watch is on; None where it cannot be known."""

    def __init__(self, mark: str, every: float = 0.1) -> None:
        self.peak: int | None = None
        self._mark, self._every = mark, every
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "Watch":
        if (PROC / "self" / "smaps_rollup").exists():
            self.peak = 0
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None
    ) -> None:
        self._done.set()
        if self._thread.is_alive():
            self._thread.join()

    def _watch(self) -> None:
        while True:
            self.peak = max(self.peak or 0, used(self._mark))
            if self._done.wait(self._every):
                return


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    command = parser.parse_args().command
    if not command:
        parser.error("give a command to run")
    mark, started = new_mark(), time.perf_counter()
    with Watch(mark) as watch:
        code = subprocess.run(command, env=os.environ | {MARK: mark}, check=False).returncode
    seconds = time.perf_counter() - started
    peak = "unknown" if watch.peak is None else f"{watch.peak / 1e6:,.0f} MB"
    print(f"peak memory {peak}, {seconds:.1f} seconds, exit code {code}", file=sys.stderr)
    sys.exit(code)


if __name__ == "__main__":
    main()
