"""Checkpoints: the last states of a run, and what its clients keep, written as it changes.

round-R.safetensors      state and buffers after round R
clients-R-P.safetensors  part P of the segment of round R: what some clients kept after it
latest.json              the checkpoints, newest first: their files and segments with digests

A client's newest segment counts. A new segment takes in those before it that are not more than
twice its size, so that each is less than half of the one before: all of them hold at most twice
what the clients keep, and a record is rewritten a logarithmic number of times (O'Neil et al. 1996,
"The log-structured merge-tree").
"""

import hashlib
import json
import re
import warnings
from collections.abc import Iterator, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor

from bellwether.core.errors import InputError
from bellwether.core.files import write_atomically
from bellwether.core.rounds import Progress
from bellwether.experiments.trees import flatten, rebuild

KEPT = 2
"""Checkpoints kept: were the newest ever damaged, the one before it serves."""

PART = 2**25
"""About the bytes of a part: as many pass through RAM at once."""

OURS = re.compile(r"((round|clients)-.*\.safetensors.*|latest\.json.*\.tmp)")

Entry = dict[str, Any]
"""A checkpoint, or one of its files, as latest.json has it."""


@dataclass(frozen=True)
class Segment:
    """What some clients kept at a checkpoint."""

    clients: Set[int]
    files: list[Entry]


class Checkpoints:
    """The checkpoints of one run; `latest.json` decides at every instant what they are."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._latest = folder / "latest.json"
        self._entries: list[Entry] = []
        """The checkpoint that this run stands on, and those before it."""
        self._segments: list[Segment] = []
        """What that checkpoint is made of, the oldest first."""

    def save(self, progress: Progress, changed: Set[int]) -> None:
        """Write the state after a round, and what those clients keep that may have changed."""
        kept = progress.memories, progress.residuals
        clients: Set[int] = {client for client in changed if any(client in k for k in kept)}
        segments = list(self._segments)
        while clients and segments and len(segments[-1].clients) <= 2 * len(clients):
            clients |= segments.pop().clients
        if clients:
            parts = enumerate(_parts(progress, sorted(clients)))
            stem = f"clients-{progress.round:08d}"
            files = [self._write(f"{stem}-{n:04d}.safetensors", data) for n, data in parts]
            segments.append(Segment(clients, files))
        tensors, numbers = flatten(_state(progress))
        metadata = {"round": str(progress.round), "numbers": json.dumps(numbers)}
        data = safetensors.torch.save(tensors, metadata)
        entry = {
            "round": progress.round,
            **self._write(f"round-{progress.round:08d}.safetensors", data),
            "segments": [segment.files for segment in segments],
        }
        entries = [entry, *self._entries][:KEPT]
        write_atomically(self._latest, json.dumps(entries, indent=1))
        self._entries, self._segments = entries, segments
        self._remove_all_but({file["file"] for entry in entries for file in _files(entry)})

    def load(self, beginning: Progress, memory: type[Any] | None) -> Progress | None:
        """The newest sound checkpoint in the shape of `beginning`; None when there is none yet."""
        entries, damaged = self._listed(), []
        for number, entry in enumerate(entries):
            try:
                progress, self._segments = self._restore(entry, beginning, memory)
            except _Damaged as damage:
                damaged.append(str(damage))
                continue
            self._entries = entries[number:]
            if damaged:
                warnings.warn(
                    f"{' and '.join(damaged)} in {self._folder} cannot be read as written;"
                    f" the run goes on from the checkpoint before, of round {progress.round}",
                    stacklevel=5,  # the call of `train`
                )
            return progress
        if entries:
            raise InputError(f"every checkpoint in {self._folder} is damaged; start anew")
        return None

    def _restore(
        self, entry: Entry, beginning: Progress, memory: type[Any] | None
    ) -> tuple[Progress, list[Segment]]:
        self._read(entry)
        with safetensors.safe_open(self._folder / entry["file"], "pt") as stored:
            numbers = json.loads(stored.metadata()["numbers"])
            names = stored.keys()
            tensors = {name: stored.get_tensor(name).clone() for name in names}
        device = beginning.buffers.device
        memories, residuals = beginning.memories.draft(), beginning.residuals.draft()
        segments: list[Segment] = []
        seen: set[int] = set()
        for files in reversed(entry["segments"]):
            clients: set[int] = set()
            for file in files:
                for client, kept in _by_client(self._read(file), device).items():
                    clients.add(client)
                    if client in seen:  # a newer segment has this client
                        continue
                    if memory is not None and "memory" in kept:
                        memories[client] = memory(**kept["memory"])
                    if "residuals" in kept:
                        residuals[client] = kept["residuals"]
            seen |= clients
            segments.insert(0, Segment(clients, files))
        held = {n.removeprefix("held/"): t for n, t in tensors.items() if n.startswith("held/")}
        progress = Progress(
            entry["round"],
            rebuild(beginning.state, "state", tensors, numbers),
            rebuild(beginning.buffers, "buffers", tensors, numbers),
            memories.commit(),
            residuals.commit(),
            {name: vector.to(device) for name, vector in held.items()},
        )
        return progress, segments

    def _write(self, name: str, data: bytes) -> Entry:
        write_atomically(self._folder / name, data)
        return {"file": name, "sha256": hashlib.sha256(data).hexdigest()}

    def _read(self, file: Entry) -> bytes:
        try:
            data: bytes = (self._folder / file["file"]).read_bytes()
        except OSError:
            raise _Damaged(file["file"]) from None
        if hashlib.sha256(data).hexdigest() != file["sha256"]:
            raise _Damaged(file["file"])
        return data

    def _listed(self) -> list[Entry]:
        try:
            entries: list[Entry] = json.loads(self._latest.read_text())
        except FileNotFoundError:
            return []
        except ValueError:
            raise InputError(f"{self._latest} is damaged; start anew") from None
        return entries

    def _remove_all_but(self, needed: Set[str]) -> None:
        """Files of no checkpoint: replaced ones, and what a killed process left half-written."""
        for file in self._folder.iterdir():
            if OURS.fullmatch(file.name) and file.name not in needed:
                file.unlink()


class _Damaged(Exception):
    """A file is missing, or is not what was written."""


def _files(entry: Entry) -> Iterator[Entry]:
    yield entry
    for files in entry["segments"]:
        yield from files


def _state(progress: Progress) -> dict[str, Any]:
    return {"state": progress.state, "buffers": progress.buffers, "held": progress.held}


def _parts(progress: Progress, clients: list[int]) -> Iterator[bytes]:
    """What these clients keep, in files of bounded size."""
    tensors: dict[str, Tensor] = {}
    size = 0
    for client in clients:
        for name, snapshot in ("memory", progress.memories), ("residuals", progress.residuals):
            if client in snapshot:
                new, _ = flatten(snapshot[client], f"{name}/{client}")
                size += sum(tensor.nbytes for tensor in new.values())
                tensors |= new
        if size >= PART:
            yield safetensors.torch.save(tensors)
            tensors, size = {}, 0
    if tensors:
        yield safetensors.torch.save(tensors)


def _by_client(data: bytes, device: torch.device) -> dict[int, dict[str, dict[str, Tensor]]]:
    """What each client keeps, its memory and its residuals, by field."""
    found: dict[int, dict[str, dict[str, Tensor]]] = {}
    for name, tensor in safetensors.torch.load(data).items():
        kind, client, field = name.split("/", 2)
        # A copy is aligned as every vector of torch is.
        vector = tensor.clone().to(device)
        found.setdefault(int(client), {}).setdefault(kind, {})[field] = vector
    return found
