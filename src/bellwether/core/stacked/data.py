"""The samples of several clients, and their mini-batches side by side."""

from collections.abc import Callable, Iterator, Sequence
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

Take = Callable[[Sequence[Order]], Samples]
"""Samples [m, b, ...] at these rows of each client's own."""


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


class StackedData:
    """The samples of several clients, on the device that computes."""

    def __init__(self, sizes: Sequence[int], take: Take) -> None:
        self.sizes = tuple(sizes)
        """n_i."""
        self.size = max(sizes)
        """The largest n_i."""
        self._take = take

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
        padded = [np.pad(row, (0, width - len(row))) if len(row) < width else row for row in rows]
        return StackedBatch(*self._take(padded), sizes)


def of_each(clients: Sequence[Samples]) -> StackedData:
    """Clients that each hold their own samples."""
    sizes = [client.size for client in clients]
    starts = np.cumsum([0, *sizes[:-1]])[:, None]
    targets = torch.cat([client.targets for client in clients])

    def take(rows: Sequence[Order]) -> Samples:
        # Each client's inputs are read where they lie: to put them together first costs more.
        first = clients[0].inputs
        inputs = first.new_empty((len(rows), len(rows[0]), *first.shape[1:]))
        for client, row, place in zip(clients, rows, inputs, strict=True):
            where = torch.from_numpy(row).to(first.device)
            torch.index_select(client.inputs, 0, where, out=place)
        return Samples(inputs, _at(targets, np.stack(rows) + starts))

    return StackedData(sizes, take)


def of_one(
    gathered: Samples, places: Sequence[Order], admit: Callable[[Samples], Samples]
) -> StackedData:
    """Clients whose samples are at these places of one data set; `admit` is the workspace's."""

    def take(rows: Sequence[Order]) -> Samples:
        where = np.stack([place[row] for place, row in zip(places, rows, strict=True)])
        return admit(Samples(_at(gathered.inputs, where), _at(gathered.targets, where)))

    return StackedData([len(place) for place in places], take)


def _at(held: Tensor, rows: Order) -> Tensor:
    where = torch.from_numpy(rows.reshape(-1)).to(held.device, non_blocking=True)
    return held.index_select(0, where).view(*rows.shape, *held.shape[1:])


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
