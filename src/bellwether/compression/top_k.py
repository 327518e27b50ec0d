from dataclasses import dataclass

import numpy as np
import torch

from bellwether.compression import checks
from bellwether.core.vector import Vector


@dataclass(frozen=True, eq=False)
class Largest:
    """The values that were kept, in their order, and where they stood."""

    values: Vector
    where: torch.Tensor
    """A bit for each number of the vector, or their places if that is shorter; empty: all."""
    shape: tuple[int, ...]


@dataclass(frozen=True)
class TopK:
    """The k = fraction d largest numbers, as they are; the rest is remembered and sent later.

    |C(x) - x|^2 <= (1 - k/d) |x|^2 for every x (Stich et al. 2018, Lemma A.1). C is biased and
    alone it need not converge; with the memory of what was left out it does (Karimireddy et al.
    2019). Upwards each client keeps its memory until it comes again. That is right for changes,
    which add up; a method that sends parts of the vector in turn (FedBCGD) cannot use it.

    Downwards the model itself travels, and k numbers of it are no model: so the server sends the
    difference to what the clients hold, the first time all of it. Who misses one message cannot
    use the next, so all clients must take part in every exchange; Half and Quantise have no such
    need, and cost a client no stored copy.
    """

    fraction: float
    form = Largest

    def __post_init__(self) -> None:
        object.__setattr__(self, "fraction", checks.fraction(self.fraction, "TopK"))

    @property
    def feedback(self) -> bool:
        return self.fraction < 1  # else nothing is left out

    def compress(self, vector: Vector, key: int) -> Largest:
        x = checks.flat(vector, "TopK")
        d = len(x)
        k = checks.kept(self.fraction, d)
        if k == d:
            return Largest(x.clone(), torch.empty(0, dtype=torch.uint8), tuple(vector.shape))
        chosen = torch.zeros(d, dtype=torch.bool, device=x.device)
        chosen[x.abs().topk(k, sorted=False).indices] = True  # NaN counts as the largest
        where = chosen.nonzero()[:, 0].int().cpu()
        if where.nbytes > (d + 7) // 8:
            where = torch.from_numpy(np.packbits(chosen.cpu().numpy()))
        return Largest(x[chosen], where, tuple(vector.shape))

    def decompress(self, packed: Largest) -> Vector:
        d = checks.length(packed.shape, packed)
        k = checks.kept(self.fraction, d)
        checks.sound(packed.values.shape == (k,) and packed.values.is_floating_point(), packed)
        if k == d:
            return packed.values.reshape(packed.shape).clone()
        places = _places(packed, d)
        checks.sound(len(places) == k and 0 <= int(places.min()) <= int(places.max()) < d, packed)
        x = packed.values.new_zeros(d)
        x[places.to(x.device)] = packed.values
        return x.reshape(packed.shape)


def _places(packed: Largest, size: int) -> torch.Tensor:
    if packed.where.dtype == torch.int32:
        return packed.where.long()
    checks.sound(packed.where.dtype == torch.uint8 and packed.where.ndim == 1, packed)
    bits = np.unpackbits(packed.where.numpy())
    return torch.from_numpy(np.flatnonzero(bits))
