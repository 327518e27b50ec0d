"""The folder of one training run: metrics, checkpoints, the final model.

metrics.jsonl          a line a round, flushed
checkpoint/            the last two states (safetensors) and latest.json with their digests
model.safetensors      the final model: the vector and its buffers
environment.json       what ran: method, seed, versions
"""

import dataclasses
import hashlib
import json
import platform
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.torch
import torch
from torch import Tensor

from bellwether.core.errors import InputError
from bellwether.core.files import write_atomically
from bellwether.core.records import RoundRecord
from bellwether.core.rounds import Progress
from bellwether.version import __version__

KEPT = 2
"""Checkpoints kept: were the newest ever damaged, the one before it serves."""


class RunDirectory:
    """Where a run writes itself down, so that it can go on after any crash."""

    def __init__(self, path: Path | str, identity: dict[str, Any]) -> None:
        self.path = Path(path)
        self._identity = identity
        self._metrics = self.path / "metrics.jsonl"
        self._latest = self.path / "checkpoint" / "latest.json"
        self._environment = self.path / "environment.json"
        self._created = False
        self._made: list[Path] = []

    def create(self) -> None:
        """Begin a new run; a folder that already holds one is left alone."""
        if self.path.exists() and (not self.path.is_dir() or any(self.path.iterdir())):
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
        environment = {"run": self._identity, "versions": versions}
        self._made = [path for path in (self.path, *self.path.parents) if not path.exists()]
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
        with self._metrics.open("a") as file:
            file.write(json.dumps(values) + "\n")

    def save(self, progress: Progress) -> None:
        """Write a checkpoint of the state after a round."""
        tensors, numbers = _flatten(
            {
                "state": progress.state,
                "buffers": progress.buffers,
                "memory": progress.memories,
                "residuals": progress.residuals,
                "held": progress.held,
            }
        )
        metadata = {"round": str(progress.round), "numbers": json.dumps(numbers)}
        data = safetensors.torch.save(tensors, metadata)
        name = f"round-{progress.round:08d}.safetensors"
        write_atomically(self._latest.parent / name, data)
        digest = hashlib.sha256(data).hexdigest()
        entry = {"round": progress.round, "file": name, "sha256": digest}
        kept = [entry, *(e for e in self._entries() if e["file"] != name)][:KEPT]
        write_atomically(self._latest, json.dumps(kept, indent=2))
        for old in self._latest.parent.glob("round-*.safetensors"):
            if old.name not in {e["file"] for e in kept}:
                old.unlink()

    def load(self, beginning: Progress, memory: type[Any] | None) -> Progress | None:
        """The newest sound checkpoint in the shape of `beginning`; None when there is none yet."""
        if not self.path.exists():
            raise InputError(f"there is no run in {self.path}; start one without resume=True")
        self._check_identity()
        entries = self._entries()
        for entry in entries:
            file = self._latest.parent / entry["file"]
            if not file.exists():
                continue
            data = file.read_bytes()
            if hashlib.sha256(data).hexdigest() == entry["sha256"]:
                self._forget_after(entry["round"])
                return _restore(file, beginning, memory)
        if entries:
            raise InputError(f"every checkpoint in {self._latest.parent} is damaged; start anew")
        self._forget_after(0)
        return None

    def records(self) -> list[RoundRecord]:
        """The rounds written down so far, without their models."""
        if not self._metrics.exists():
            return []
        values = [json.loads(line) for line in self._lines()]
        return [RoundRecord(**{**v, "cohort": tuple(v["cohort"])}) for v in values]

    def finish(self, model: Tensor, buffers: Tensor) -> None:
        """Write the final model."""
        tensors = {"model": model.cpu(), "buffers": buffers.cpu()}
        write_atomically(self.path / "model.safetensors", safetensors.torch.save(tensors))

    def _check_identity(self) -> None:
        try:
            ran = json.loads(self._environment.read_text())["run"]
        except (OSError, ValueError, KeyError):
            raise InputError(f"{self.path} holds no run of this program") from None
        for name, value in json.loads(json.dumps(self._identity)).items():
            if ran.get(name) != value:
                raise InputError(
                    f"{self.path} was made with {name} = {ran.get(name)}, not {value};"
                    " resume with the same or choose another folder"
                )

    def _entries(self) -> list[dict[str, Any]]:
        try:
            entries: list[dict[str, Any]] = json.loads(self._latest.read_text())
        except FileNotFoundError:
            return []
        return entries

    def _lines(self) -> Iterator[str]:
        """Complete lines only: a crash may have cut the last one."""
        text = self._metrics.read_text()
        return (line for line in text.splitlines(keepends=True) if line.endswith("\n"))

    def _forget_after(self, round: int) -> None:
        if self._metrics.exists():
            kept = [line for line in self._lines() if json.loads(line)["round"] <= round]
            write_atomically(self._metrics, "".join(kept))


def _flatten(value: Any, name: str = "") -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The vectors and the plain values of nested dataclasses, dicts and tuples, by path."""
    if isinstance(value, Tensor):
        return {name: value.detach().cpu().contiguous().clone()}, {}
    children = _children(value)
    if children is None:
        return {}, {name: value}
    tensors: dict[str, Tensor] = {}
    numbers: dict[str, Any] = {}
    for key, child in children.items():
        more_tensors, more_numbers = _flatten(child, f"{name}/{key}" if name else key)
        tensors |= more_tensors
        numbers |= more_numbers
    return tensors, numbers


def _rebuild(like: Any, name: str, tensors: dict[str, Tensor], numbers: dict[str, Any]) -> Any:
    """A value of the same shape as `like` with the vectors and numbers found under its path."""
    if isinstance(like, Tensor):
        return tensors[name].to(like.device)
    children = _children(like)
    if children is None:
        return numbers[name]
    values = {k: _rebuild(v, f"{name}/{k}", tensors, numbers) for k, v in children.items()}
    if dataclasses.is_dataclass(like) and not isinstance(like, type):
        return dataclasses.replace(like, **values)
    return values if isinstance(like, dict) else type(like)(values.values())


def _children(value: Any) -> dict[str, Any] | None:
    if dataclasses.is_dataclass(value):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(k): v for k, v in value.items()}
    if isinstance(value, tuple | list):
        return {str(i): v for i, v in enumerate(value)}
    return None


def _restore(file: Path, beginning: Progress, memory: type[Any] | None) -> Progress:
    with safetensors.safe_open(file, "pt") as stored:
        metadata = stored.metadata()
        tensors = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118
    numbers = json.loads(metadata["numbers"])
    state = _rebuild(beginning.state, "state", tensors, numbers)
    buffers = _rebuild(beginning.buffers, "buffers", tensors, numbers)
    device = beginning.buffers.device
    memories: dict[int, Any] = {}
    if memory is not None:
        names = [f.name for f in dataclasses.fields(memory)]
        for client in {int(n.split("/")[1]) for n in tensors if n.startswith("memory/")}:
            values = [tensors[f"memory/{client}/{n}"].to(device) for n in names]
            memories[client] = memory(*values)
    residuals: dict[int, dict[str, Tensor]] = {}
    held: dict[str, Tensor] = {}
    for name, vector in tensors.items():
        match name.split("/"):
            case ["residuals", client, field]:
                residuals.setdefault(int(client), {})[field] = vector.to(device)
            case ["held", field]:
                held[field] = vector.to(device)
    return Progress(int(metadata["round"]), state, buffers, memories, residuals, held)
