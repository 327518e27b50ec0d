"""The rounds of runs in a folder as they are written, to be asked for piece by piece."""

import os
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bellwether.experiments.recorded import Recorded, find_runs
from bellwether.experiments.run_directory import read_record


@dataclass
class Position:
    """How far a file has been read."""

    inode: int
    offset: int = 0


class Growing:
    """What has been recorded in a folder; every round has a number by which it can be asked for.

    Only `environment.json` and `metrics.jsonl` of runs are read, and only where they lie in the
    folder: a link that leads out of it is not followed.
    """

    def __init__(self, folder: Path) -> None:
        self._root = folder.resolve()
        self._positions: dict[str, Position] = {}
        self._rounds: list[list[Any]] = []
        self._epoch = time.time_ns() // 1_000_000
        """Also another one than that of a server before this one."""
        self._lock = threading.Lock()
        self.runs()  # a folder without runs is said at once

    def runs(self) -> list[Recorded]:
        """The runs that lie in the folder."""
        return [run for run in find_runs([self._root]) if self._inside(run.path)]

    def since(self, epoch: int, seen: int) -> dict[str, Any]:
        """The runs, and their rounds from this number on.

        When a run was resumed, and rounds were taken back, a new epoch begins: then all is told.
        """
        with self._lock:
            runs = self.runs()
            self._read(runs)
            fresh = epoch != self._epoch or not 0 <= seen <= len(self._rounds)
            return {
                "epoch": self._epoch,
                "next": len(self._rounds),
                "fresh": fresh,
                "runs": [
                    {
                        "key": self._key(run),
                        "method": run.name,
                        "seed": run.seed,
                        "finished": run.finished,
                    }
                    for run in runs
                ],
                "rounds": self._rounds[0 if fresh else seen :],
            }

    def _read(self, runs: list[Recorded]) -> None:
        if any(self._rewritten(run) for run in runs):
            self._positions, self._rounds = {}, []
            self._epoch += 1
        for run in runs:
            self._read_on(run)

    def _rewritten(self, run: Recorded) -> bool:
        position = self._positions.get(self._key(run))
        if position is None:
            return False
        try:
            status = (run.path / "metrics.jsonl").stat()
        except FileNotFoundError:
            return True
        return status.st_ino != position.inode or status.st_size < position.offset

    def _read_on(self, run: Recorded) -> None:
        """Complete lines only: the last one may be on its way."""
        metrics, key = run.path / "metrics.jsonl", self._key(run)
        if not metrics.is_file() or not self._inside(metrics):
            return
        with metrics.open("rb") as file:
            inode = os.fstat(file.fileno()).st_ino
            position = self._positions.setdefault(key, Position(inode))
            file.seek(position.offset)
            whole, end, _ = file.read().rpartition(b"\n")
        position.offset += len(whole) + len(end)
        for line in whole.splitlines():
            record = read_record(line.decode())
            measured = [record.metrics.get(name) for name in ("accuracy", "loss")]
            self._rounds.append(
                [key, record.round, *measured, record.bytes_down, record.bytes_up, record.seconds]
            )

    def _key(self, run: Recorded) -> str:
        return run.path.relative_to(self._root).as_posix()

    def _inside(self, path: Path) -> bool:
        files = (path, path / "environment.json") if path.is_dir() else (path,)
        return all(file.resolve().is_relative_to(self._root) for file in files)
