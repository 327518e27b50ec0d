"""What tells whether a run goes on with the data it began with."""

import hashlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from bellwether.core.dataset import Samples
from bellwether.core.interfaces import Federation

WHOLE = 2**30
"""Bytes of inputs up to which all of them count; of more, ROWS rows."""
ROWS = 1024
CLIENTS = 1000
"""How many clients count, where each has samples of its own."""


def fingerprint(federation: Federation) -> str:
    """SHA-256 of the samples: all that clients share, the test set, the server's of round 1.

    Clients that load their samples when they come are known by client 0.
    """
    digest = hashlib.sha256()
    for samples in _parts(federation):
        for tensor in samples:
            digest.update(f"{tensor.dtype} {tuple(tensor.shape)};".encode())
            digest.update(_bytes(tensor))
    return digest.hexdigest()


def _parts(federation: Federation) -> Iterator[Samples]:
    gathered = federation.gathered
    if gathered is not None:
        yield gathered.samples
    if gathered is not None or federation.sizes([0]) is None:
        yield federation.client(0)
    else:
        yield from map(federation.client, range(min(federation.population, CLIENTS)))
    if federation.has_server_data:
        yield federation.server(1)
    if federation.test is not None:
        yield federation.test


def _bytes(tensor: Tensor) -> Any:
    """What it holds, as a buffer."""
    if tensor.nbytes > WHOLE:
        tensor = tensor[torch.linspace(0, len(tensor) - 1, ROWS).long()]
    return tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy()
