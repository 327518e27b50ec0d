"""The folder of one training run: metrics, checkpoints, the final model.

config.toml            the experiment, where a file described it; written before anything else
metrics.jsonl          a line a round, flushed
checkpoint/            the last two states, what clients keep, latest.json with their digests
model.safetensors      the final model: the vector and its buffers
environment.json       what ran: method, seed, versions, a fingerprint of the data
"""

import dataclasses
import json
import os
import platform
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Self

import numpy as np
import safetensors.torch
import torch
from torch import Tensor

from bellwether.core.errors import InputError
from bellwether.core.files import make_folder, write_atomically
from bellwether.core.records import RoundRecord
from bellwether.core.rounds import Progress
from bellwether.experiments.checkpoints import Checkpoints
from bellwether.experiments.lock import Lock
from bellwether.version import __version__

CONFIG, ENVIRONMENT = "config.toml", "environment.json"


class RunDirectory:
    """Where a run writes itself down, so that it can go on after any crash."""

    def __init__(self, path: Path | str, identity: dict[str, Any], data: str | None = None) -> None:
        """identity: what must be the same for the run to go on; data: their fingerprint."""
        self.path = Path(path)
        self._data = data
        self._identity = identity
        self._metrics = self.path / "metrics.jsonl"
        self._environment = self.path / ENVIRONMENT
        self._created = False
        self._held = ExitStack()
        self._made: list[Path] = []
        self._checkpoints = Checkpoints(self.path / "checkpoint")
        self._changed: set[int] = set()
        """Clients that came since the last checkpoint: nobody else keeps anything new."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def create(self) -> None:
        """Begin a new run; a folder that already holds one is left alone."""
        self._made = [path for path in (self.path, *self.path.parents) if not path.exists()]
        if self.path.exists() and not self.path.is_dir():
            raise InputError(f"{self.path} is a file; choose another folder")
        make_folder(self.path)
        self._held.enter_context(Lock(self.path))
        if any(file.name != CONFIG for file in self.path.iterdir()):
            raise InputError(
                f"{self.path} is not empty; go on with its run by resume=True,"
                " or choose another folder"
            )
        versions = {
            "bellwether": __version__,
            "python": platform.python_version(),
            "torch": torch.__version__,
            "numpy": np.__version__,
            "machine": platform.platform(),
        }
        environment = {"run": self._identity, "data": self._data, "versions": versions}
        write_atomically(self._environment, json.dumps(environment, indent=2))
        self._created = True

    def forget(self) -> None:
        """Take back what `create` wrote, as long as no round was."""
        if self._created:
            self._environment.unlink()
            with suppress(OSError):  # somebody else's file is in one of them
                for path in self._made:
                    path.rmdir()

    def add(self, record: RoundRecord) -> None:
        """Append one round to the metrics."""
        values = dataclasses.asdict(dataclasses.replace(record, model=None))
        del values["model"]
        size = self._metrics.stat().st_size if self._metrics.exists() else 0
        try:
            with self._metrics.open("a") as file:
                file.write(json.dumps(values) + "\n")
        except OSError as error:
            with suppress(OSError):  # no half of a line
                os.truncate(self._metrics, size)
            raise InputError(
                f"cannot write {self._metrics}: {error.strerror or error}; make room and go on with"
                f" the run by resume=True, or bellwether resume {self.path}"
            ) from error
        self._changed.update(record.cohort)

    def save(self, progress: Progress) -> None:
        """Write a checkpoint of the state after a round."""
        self._checkpoints.save(progress, self._changed)
        self._changed = set()

    def load(self, beginning: Progress, memory: type[Any] | None) -> Progress | None:
        """The newest sound checkpoint in the shape of `beginning`; None when there is none yet."""
        if not self.path.exists():
            raise InputError(f"there is no run in {self.path}; start one without resume=True")
        self._held.enter_context(Lock(self.path))
        self._check_identity()
        progress = self._checkpoints.load(beginning, memory)
        self._forget_after(progress.round if progress else 0)
        return progress

    def records(self) -> list[RoundRecord]:
        """The rounds written down so far, without their models."""
        return read_records(self._metrics)

    def finish(self, model: Tensor, buffers: Tensor) -> None:
        """Write the final model."""
        tensors = {"model": model.cpu(), "buffers": buffers.cpu()}
        write_atomically(self.path / "model.safetensors", safetensors.torch.save(tensors))

    def _check_identity(self) -> None:
        try:
            environment = json.loads(self._environment.read_text())
            ran, versions = environment["run"], environment["versions"]
        except (OSError, ValueError, KeyError):
            raise InputError(f"{self.path} holds no run of this program") from None
        if versions.get("bellwether") != __version__:
            raise InputError(
                f"{self.path} was made by Bellwether {versions.get('bellwether')}, this is"
                f" {__version__}; go on with that version, or start anew in another folder"
            )
        if versions.get("torch") != torch.__version__:
            warnings.warn(
                f"{self.path} was begun with torch {versions.get('torch')}; with"
                f" {torch.__version__} the bits may differ from an undisturbed run's",
                stacklevel=5,  # the call of `train`
            )
        data = environment.get("data")
        if data and data != self._data:
            raise InputError(
                f"{self.path} was made with other data: their fingerprint was {data[:12]},"
                f" now it is {str(self._data)[:12]}; bring them back, or choose"
                " another folder"
            )
        for name, value in json.loads(json.dumps(self._identity)).items():
            if ran.get(name) != value:
                raise InputError(
                    f"{self.path} was made with {name} = {ran.get(name)}, not {value};"
                    " resume with the same or choose another folder"
                )

    def _forget_after(self, round: int) -> None:
        if self._metrics.exists():
            lines = _whole_lines(self._metrics)
            kept = [line for line in lines if json.loads(line)["round"] <= round]
            write_atomically(self._metrics, "".join(kept))


def read_records(metrics: Path) -> list[RoundRecord]:
    """The rounds of a metrics.jsonl, without their models; none where there is no such file."""
    if not metrics.exists():
        return []
    return [read_record(line) for line in _whole_lines(metrics)]


def read_record(line: str) -> RoundRecord:
    """The round of a line of metrics.jsonl."""
    values = json.loads(line)
    return RoundRecord(**{**values, "cohort": tuple(values["cohort"])})


def _whole_lines(metrics: Path) -> Iterator[str]:
    """Complete lines only: a crash may have cut the last one."""
    text = metrics.read_text()
    return (line for line in text.splitlines(keepends=True) if line.endswith("\n"))


@contextmanager
def keeping(text: str, folder: Path) -> Iterator[None]:
    """Write the file of the experiment that begins in a folder; take it back where none did."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    write_atomically(folder / CONFIG, text)
    try:
        yield
    finally:
        if not (folder / ENVIRONMENT).exists():
            with suppress(OSError):
                (folder / CONFIG).unlink()
                for path in missing:
                    path.rmdir()
