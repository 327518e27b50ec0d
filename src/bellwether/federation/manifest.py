"""The manifest: a readable, replayable account of who holds what."""

import json
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from bellwether.core.errors import InputError
from bellwether.core.files import write_atomically
from bellwether.core.streams import generator
from bellwether.federation.groups import Counts, Groups, Indices, frozen
from bellwether.federation.labels import cosine, draw, draw_by_label


@dataclass(frozen=True, eq=False)
class Manifest:
    """Who holds which samples of a data set, and how that was decided."""

    dataset: str
    partition: str
    server: str | None
    """How the server's data were chosen; None: it has none."""
    seed: int
    clients: Sequence[Indices]
    """Each client's samples."""
    pool: Indices
    """The server's samples, or what it draws from."""
    drawn: int | None
    """How many the server draws from the pool in each round; None: it has the whole pool."""
    quotas: Indices | None
    """How many of them of each label; None: as it happens."""
    source: str | None
    """The data set that the pool's samples are from; None: the one that the clients share."""
    left: Indices
    """What neither clients nor pool contain."""
    labels: Counts
    """Samples by client and label; no columns when the targets are not class labels."""
    server_labels: Indices
    """The pool's samples by label."""
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "labels", frozen(self.labels, np.int32))
        for name in ("pool", "left", "server_labels"):
            object.__setattr__(self, name, frozen(getattr(self, name)))
        if self.quotas is not None:
            object.__setattr__(self, "quotas", frozen(self.quotas))
        object.__setattr__(self, "clients", Groups.of(self.clients))
        object.__setattr__(self, "notes", tuple(self.notes))

    @property
    def sizes(self) -> Indices:
        """How many samples each client holds."""
        return Groups.of(self.clients).sizes

    @property
    def population_labels(self) -> Indices:
        """All clients' samples by label."""
        return np.asarray(self.labels.sum(axis=0))

    @property
    def drawn_labels(self) -> Indices:
        """The label counts of the server's data; the pool's, where draws from it are uniform."""
        return self.server_labels if self.quotas is None else self.quotas

    @property
    def similarity(self) -> float | None:
        """The cosine between the label counts of the server's data and of all clients together."""
        value = cosine(self.drawn_labels, self.population_labels)
        return None if math.isnan(value) else value

    def server_samples(self, round: int) -> Indices:
        """The server's samples in this round (from 1)."""
        if self.drawn is None:
            return self.pool
        rng = generator(self.seed, "server data", round)
        if self.quotas is None:
            return draw(self.pool, self.drawn, rng)
        groups = np.split(self.pool, np.cumsum(self.server_labels)[:-1])
        return draw_by_label(groups, self.quotas, rng)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Manifest) and self._document() == other._document()

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        lines = [
            f"{self.dataset}: {len(self.clients)} clients, {self.partition}, seed {self.seed}",
            f"samples a client: {spread(self.sizes)}",
        ]
        if self.labels.size:
            present = (self.labels > 0).sum(axis=1)
            lines.append(f"labels a client: {spread(present)} of {self.labels.shape[1]}")
        lines.append(f"server: {self.server_line}")
        lines.append(f"held by nobody: {len(self.left)} samples")
        return "\n".join(lines + [f"note: {note}" for note in self.notes])

    @property
    def server_line(self) -> str:
        """What the server holds, in a line."""
        if self.server is None:
            return "no data"
        size = f"{len(self.pool)} samples{f' of {self.source}' if self.source else ''}"
        if self.drawn is not None:
            how = "" if self.quotas is None else "with the same label counts "
            size = f"{self.drawn} of {size}, drawn anew {how}in each round"
        similarity = self.similarity
        cosine = "" if similarity is None else f"; cosine with the clients' labels {similarity:.4f}"
        return f"{size}, {self.server}{cosine}"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write as JSON; the file is there in full or not at all."""
        write_atomically(Path(path), json.dumps(self._document()))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Manifest":
        """Read what `save` wrote."""
        try:
            return cls(**json.loads(Path(path).read_text(encoding="utf-8")))
        except OSError as error:
            raise InputError(f"cannot read the manifest {path}: {error.strerror}") from error
        except (TypeError, ValueError) as error:
            raise InputError(f"{path} is not a manifest of this version") from error

    def _document(self) -> dict[str, Any]:
        return {field.name: _plain(getattr(self, field.name)) for field in fields(self)}


def spread(values: Indices) -> str:
    """The value, or the smallest, the median and the largest."""
    low, middle, high = values.min(), np.median(values), values.max()
    return f"{low}" if low == high else f"min {low}, median {middle:g}, max {high}"


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray | Groups) else value
