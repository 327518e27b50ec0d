"""The samples of several clients, and their mini-batches side by side."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

import numpy as np
import torch
from torch import Tensor

from bellwether.core.dataset import Samples
from bellwether.core.errors import BellwetherError
from bellwether.core.sgd import SGD
from bellwether.core.streams import Order, permutations


class NotStackable(BellwetherError):
    """These clients cannot be computed side by side; the message says why."""


@dataclass(frozen=True, eq=False)
class StackedBatch:
    """A mini-batch of each client: inputs [m, b, ...], targets [m, b, ...].

    Clients with fewer than b samples are padded with repetitions of their first.
    """

    inputs: Tensor
    targets: Tensor
    sizes: tuple[int, ...]
    """How many samples of each client count."""

    @property
    def even(self) -> bool:
        """Whether all samples count."""
        return min(self.sizes) == self.inputs.shape[1]

    def weights(self, totals: Sequence[int], dtype: torch.dtype) -> Tensor:
        """[m, b]: 1 / total for a client's samples, 0 for padding."""
        width, where = self.inputs.shape[1], self.inputs.device
        counts = torch.tensor(self.sizes, device=where)
        counted = torch.arange(width, device=where) < counts.unsqueeze(1)
        return counted / torch.tensor(totals, device=where, dtype=dtype).unsqueeze(1)

    def of(self, row: int) -> Samples:
        """One client's samples, without padding."""
        size = self.sizes[row]
        return Samples(self.inputs[row, :size], self.targets[row, :size])


@dataclass(frozen=True, eq=False)
class StackedData:
    """The samples of several clients, on the device that computes."""

    clients: tuple[Samples, ...]

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """n_i."""
        return tuple(client.size for client in self.clients)

    @cached_property
    def size(self) -> int:
        """The largest n_i."""
        return max(self.sizes)

    @cached_property
    def whole(self) -> StackedBatch:
        """All samples of each client."""
        return self._stacked([np.arange(size) for size in self.sizes])

    def chunks(self, size: int) -> Iterator[StackedBatch]:
        """The samples in order, at most `size` of each client at a time."""
        for start in range(0, self.size, size):
            rows = [np.arange(min(start, n), min(start + size, n)) for n in self.sizes]
            yield self._stacked(rows)

    def epochs(self, batch_size: int, streams: Sequence[int]) -> Iterator[StackedBatch]:
        """Mini-batches without end; each client's order in an epoch comes from its stream."""
        per_epoch = {-(-n // batch_size) for n in self.sizes}
        if len(per_epoch) > 1:
            raise NotStackable("the clients take different numbers of steps")
        epoch = 0
        while True:
            orders = permutations(streams, epoch, self.sizes)
            for start in range(0, self.size, batch_size):
                yield self._stacked([order[start : start + batch_size] for order in orders])
            epoch += 1

    def _stacked(self, rows: Sequence[Order]) -> StackedBatch:
        """The samples at these places of each client, padded to the same length."""
        sizes = tuple(map(len, rows))
        width = max(sizes)
        padded = [row if len(row) == width else np.pad(row, (0, width - len(row))) for row in rows]
        offsets = np.cumsum((0, *self.sizes[:-1]))[:, None]
        places = torch.from_numpy((np.stack(padded) + offsets).reshape(-1))
        inputs, targets = (
            self._apart(padded)
            if pool is None
            else pool.index_select(0, places.to(pool.device)).unflatten(0, (len(rows), width))
            for pool in self._pools
        )
        return StackedBatch(inputs, targets, sizes)

    def _apart(self, rows: Sequence[Order]) -> Tensor:
        first = self.clients[0].inputs
        stacked = first.new_empty((len(rows), len(rows[0]), *first.shape[1:]))
        for client, row, place in zip(self.clients, rows, stacked, strict=True):
            torch.index_select(client.inputs, 0, torch.from_numpy(row), out=place)
        return stacked

    @cached_property
    def _pools(self) -> tuple[Tensor | None, Tensor]:
        """All inputs and targets end to end, for one call in the place of one a client.

        On a CPU no inputs: copying them first would cost more than the calls.
        """
        inputs, targets = zip(*self.clients, strict=True)
        return None if inputs[0].device.type == "cpu" else torch.cat(inputs), torch.cat(targets)


def batches(data: StackedData, sgd: SGD, streams: Sequence[int]) -> Iterator[StackedBatch]:
    """The mini-batches of one local pass, as `sgd.batches` has them for a single client."""
    steps = {sgd.local_steps(size) for size in data.sizes}
    if len(steps) > 1:
        raise NotStackable("the clients take different numbers of steps")
    (left,) = steps
    if sgd.batch_size is None or sgd.batch_size >= data.size:
        yield from (data.whole for _ in range(left))
    else:
        yield from islice(data.epochs(sgd.batch_size, streams), left)


def bucket(size: int, batch_size: int | None) -> tuple[int, int]:
    """Clients of the same bucket take as many steps, and little of their batches is padding."""
    steps = -(-size // batch_size) if batch_size else 1
    return steps, size.bit_length() if steps == 1 else 0
