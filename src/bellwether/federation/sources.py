"""Where samples come from: checked at the boundary, found by a client's id or a round."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from bellwether.core.dataset import Gathered, Samples, samples
from bellwether.core.errors import InputError
from bellwether.federation.groups import Indices

Pair = tuple[Any, Any]
"""Inputs and targets of equal length, as arrays or tensors."""
Move = Callable[[Samples], Samples]
"""To a device, and in the precision of a model."""


class Source(Protocol):
    """A client's samples by its id, or the server's by the round."""

    def __call__(self, number: int, /) -> Samples:
        """The samples."""

    def moved(self, move: Move) -> "Source":
        """With its samples elsewhere; one that holds none stays as it is."""

    @property
    def gathered(self) -> Gathered | None:
        """All samples in one place, where they are in one."""


class Form(NamedTuple):
    """What a sample looks like, and whose it is."""

    look: str
    owner: str


def checked(pair: Any, owner: str) -> Samples:
    """A pair that a user gave, as samples with labels from 0; `owner` names it in errors."""
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise InputError(
            f"{owner}: expected a pair (inputs, targets), got {type(pair).__name__}"
            + (f" of length {len(pair)}" if isinstance(pair, tuple | list) else "")
        )
    try:
        inputs, targets = pair
        given = samples(inputs, targets, owner)
    except InputError:
        raise
    except (RuntimeError, TypeError, ValueError) as error:  # such as ragged lists
        raise InputError(
            f"{owner}: inputs and targets must be arrays or tensors ({str(error).splitlines()[0]})"
        ) from error
    if given.labelled and int(given.targets.min()) < 0:
        raise InputError(f"{owner} has the label {int(given.targets.min())}; labels count from 0")
    return Samples(_compact(given.inputs), _compact(given.targets))


def alike(parties: Mapping[str, Samples], form: Form | None = None) -> Form | None:
    """Check that all samples look alike, and like those of `form`; return what they look like."""
    for owner, held in parties.items():
        x, y = held
        look = f"inputs {list(x.shape[1:])} {x.dtype}, targets {list(y.shape[1:])} {y.dtype}"
        form = form or Form(look, owner)
        if look != form.look:
            raise InputError(
                f"{owner} and {form.owner} do not fit together: a sample is {look} here but "
                f"{form.look} there"
            )
    return form


def count_classes(parties: Mapping[str, Samples]) -> int | None:
    """The largest label + 1; None when targets are values to regress."""
    if not all(held.labelled for held in parties.values()):
        return None
    return 1 + max(int(held.targets.max()) for held in parties.values())


@dataclass(frozen=True, eq=False)
class Listed:
    """Each client's samples, in a list."""

    clients: tuple[Samples, ...]

    gathered = None

    def __call__(self, client: int) -> Samples:
        return self.clients[client]

    def moved(self, move: Move) -> "Source":
        """In one place there: a GPU takes a whole cohort's samples from it at once."""
        whole = Samples(*(torch.cat(tensors) for tensors in zip(*self.clients, strict=True)))
        ends = np.cumsum([client.size for client in self.clients])
        return Shared(move(whole), _Runs(ends))


@dataclass(frozen=True, eq=False)
class Same:
    """The same samples in every round."""

    held: Samples
    gathered = None

    def __call__(self, _: int) -> Samples:
        return self.held

    def moved(self, move: Move) -> "Source":
        return Same(move(self.held))


@dataclass(eq=False)
class Loaded:
    """What a function loads for a client. Without a form, the first client seen gives it."""

    load: Callable[[int], Pair]
    form: Form | None
    gathered = None

    def moved(self, move: Move) -> "Source":
        return self

    def __call__(self, client: int) -> Samples:
        owner = f"client {client}"
        loaded = checked(self.load(client), owner)
        self.form = alike({owner: loaded}, self.form)
        return loaded


@dataclass(frozen=True, eq=False)
class Shared:
    """Private copies of a data set's samples: those in these rows."""

    data: Samples
    rows: Callable[[int], Indices]

    @property
    def gathered(self) -> Gathered:
        return Gathered(self.data, self.rows)

    def moved(self, move: Move) -> "Source":
        return Shared(move(self.data), self.rows)

    def __call__(self, number: int) -> Samples:
        return self.data.take(torch.tensor(self.rows(number), device=self.data.inputs.device))


@dataclass(frozen=True, eq=False)
class _Runs:
    """The rows of clients that lie end to end."""

    ends: Indices

    def __call__(self, client: int) -> Indices:
        start = self.ends[client - 1] if client else 0
        return np.arange(start, self.ends[client])


def _compact(tensor: Tensor) -> Tensor:
    """Without the rest of the storage that it is a slice of: pickling would take it along."""
    whole = tensor.untyped_storage().nbytes() == tensor.nbytes
    return tensor if whole else tensor.clone()
