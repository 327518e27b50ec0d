"""Parts of a vector: blocks of coordinates, given as slices or by the names of layers."""

from collections.abc import Sequence

import torch

from bellwether.core.errors import InputError, unknown
from bellwether.core.vector import Layers, Vector

Block = tuple[slice, ...]
"""Stretches of the vector that belong together."""
Named = slice | str | Sequence[slice | str]
"""A block as people write it: slices, layers' names, or several of them."""


def locate(block: Named, layers: Layers) -> Block:
    """Where the block lies; the name "conv1" means conv1.weight and conv1.bias."""
    if isinstance(block, slice | str):
        block = [block]
    found: list[slice] = []
    for part in block:
        if isinstance(part, slice):
            found.append(part)
            continue
        here = [s for n, s in layers.items() if n == part or n.startswith(f"{part}.")]
        if not here:
            raise unknown("layer", part, {n.rpartition(".")[0] or n for n in layers})
        found.extend(here)
    return tuple(found)


def divide(count: int, shared: Block, layers: Layers) -> tuple[Block, ...]:
    """What is not shared, in so many stretches of even length."""
    size = max((s.stop for s in layers.values()), default=0)
    taken = torch.zeros(size)
    add(taken, shared, 1)
    free = torch.nonzero(taken == 0).flatten()
    if not 1 <= count <= len(free):
        raise InputError(f"{count} blocks cannot be made of {len(free)} parameters")
    return tuple(_runs(piece) for piece in free.tensor_split(count))


def _runs(indices: Vector) -> Block:
    """Ascending indices as slices of neighbours."""
    cuts = (torch.nonzero(indices.diff() > 1).flatten() + 1).tolist()
    pieces = indices.tensor_split(cuts)
    return tuple(slice(int(piece[0]), int(piece[-1]) + 1) for piece in pieces)


def check_cover(blocks: Sequence[Block], layers: Layers) -> None:
    """Raise `InputError` unless every coordinate lies in exactly one block."""
    size = max((s.stop for s in layers.values()), default=0)
    count = torch.zeros(size)
    for block in blocks:
        add(count, block, 1)
    for name, where in layers.items():
        if (count[where] != 1).any():
            often = "no block" if (count[where] == 0).any() else "more than one block"
            raise InputError(f"{name} lies in {often}; each parameter needs exactly one")


def take(x: Vector, block: Block) -> Vector:
    """The coordinates of the block, end to end."""
    return torch.cat([x[..., part] for part in block], dim=-1) if block else x[..., :0]


def add(x: Vector, block: Block, values: Vector | float) -> None:
    """Add values, as `take` gives them, to the coordinates of the block."""
    if not isinstance(values, torch.Tensor):
        for part in block:
            x[..., part] += values
        return
    start = 0
    for part in block:
        piece = x[..., part]
        piece += values[..., start : start + piece.shape[-1]]
        start += piece.shape[-1]
