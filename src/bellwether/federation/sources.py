"""Where samples come from: checked at the boundary, found by a client's id or a round."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from bellwether.core.dataset import Samples, samples
from bellwether.core.errors import InputError
from bellwether.federation.groups import Indices
from bellwether.federation.manifest import Manifest

Pair = tuple[Any, Any]
"""Inputs and targets of equal length, as arrays or tensors."""
Source = Callable[[int], Samples]
"""A client's samples by its id, or the server's by the round."""


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

    def __call__(self, client: int) -> Samples:
        return self.clients[client]


@dataclass(frozen=True, eq=False)
class Same:
    """The same samples in every round."""

    held: Samples

    def __call__(self, _: int) -> Samples:
        return self.held


@dataclass(eq=False)
class Loaded:
    """What a function loads for a client. Without a form, the first client seen gives it."""

    load: Callable[[int], Pair]
    form: Form | None

    def __call__(self, client: int) -> Samples:
        owner = f"client {client}"
        loaded = checked(self.load(client), owner)
        self.form = alike({owner: loaded}, self.form)
        return loaded


@dataclass(frozen=True, eq=False)
class Shared:
    """Private copies from one data set, by its manifest."""

    data: Samples
    manifest: Manifest

    def client(self, client: int) -> Samples:
        return self._take(self.manifest.clients[client])

    def server(self, round: int) -> Samples:
        return self._take(self.manifest.server_samples(round))

    def _take(self, indices: Indices) -> Samples:
        return self.data.take(torch.tensor(indices, device=self.data.inputs.device))


def _compact(tensor: Tensor) -> Tensor:
    """Without the rest of the storage that it is a slice of: pickling would take it along."""
    whole = tensor.untyped_storage().nbytes() == tensor.nbytes
    return tensor if whole else tensor.clone()
