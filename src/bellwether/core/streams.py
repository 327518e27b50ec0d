"""Every random number comes from a stream named by (seed, purpose, address).

A stream depends on its name alone: not on how many draws came before it elsewhere, nor on which
process draws it, nor in which order. So results are the same bits on any number of workers.
"""

import hashlib
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Order = NDArray[np.int64]

SERVER = -1
"""The server's id in addresses; clients count from 0."""


def key(seed: int, purpose: str, *address: int) -> int:
    """128 bits that name a stream; an address is, say, (round, exchange, client)."""
    name = repr((int(seed), purpose, tuple(map(int, address)))).encode()
    return int.from_bytes(hashlib.blake2b(name, digest_size=16).digest(), "little")


def generator(seed: int, purpose: str, *address: int) -> np.random.Generator:
    """NumPy's generator at the start of the named stream."""
    return np.random.Generator(np.random.Philox(key=key(seed, purpose, *address)))


def seed_torch(seed: int, purpose: str, *address: int) -> None:
    """Put torch's default generators (dropout, initial weights) at the start of the stream.

    The CPU generator keeps 32 bits of its seed. `torch.manual_seed` would do the same but
    costs sixty times as much, which shows in small models.
    """
    value = key(seed, purpose, *address) & 0x7FFF_FFFF_FFFF_FFFF
    torch.default_generator.manual_seed(value)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(value)


def random_state() -> tuple[Tensor, ...]:
    """The state of torch's default generators."""
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []
    return (torch.default_generator.get_state(), *cuda)


def set_random_state(state: tuple[Tensor, ...]) -> None:
    """Put torch's default generators back."""
    torch.default_generator.set_state(state[0])
    if len(state) > 1:
        torch.cuda.set_rng_state_all(list(state[1:]))


def permutation(stream: int, epoch: int, count: int) -> Tensor:
    """The order in which samples come in an epoch: 0 .. count-1, sorted by their hashes.

    The hashes are SplitMix64 of (stream, epoch, sample): no state to carry, half the price of
    a NumPy generator for one client, and a whole cohort's orders can be drawn at once. No two
    samples have the same: the hash is one-to-one.
    """
    return torch.from_numpy(_orders([stream], epoch, count)[0])


def permutations(streams: Sequence[int], epoch: int, counts: Sequence[int]) -> list[Order]:
    """`permutation` for each of several streams."""
    if len(set(counts)) == 1:
        return list(_orders(streams, epoch, counts[0]))
    return [_orders([s], epoch, n)[0] for s, n in zip(streams, counts, strict=True)]


def _orders(streams: Sequence[int], epoch: int, count: int) -> Order:
    starts = [(stream + epoch * _EPOCH) & _MASK for stream in streams]
    z = np.arange(1, count + 1, dtype=np.uint64) * _GOLDEN
    z = z + np.array(starts, dtype=np.uint64)[:, None]
    z ^= z >> _30
    z *= _MIX1
    z ^= z >> _27
    z *= _MIX2
    z ^= z >> _31
    return np.argsort(z, axis=1)


_MASK = 0xFFFF_FFFF_FFFF_FFFF
_EPOCH = 0xD1B5_4A32_D192_ED03
_GOLDEN = np.uint64(0x9E37_79B9_7F4A_7C15)
_MIX1, _MIX2 = np.uint64(0xBF58_476D_1CE4_E5B9), np.uint64(0x94D0_49BB_1331_11EB)
_30, _27, _31 = np.uint64(30), np.uint64(27), np.uint64(31)
