"""Several clients at work side by side, and what comes of each."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from bellwether.core import streams
from bellwether.core.errors import InputError
from bellwether.core.fields import values_of
from bellwether.core.participants import Participant
from bellwether.core.sgd import SGD
from bellwether.core.stacked.data import (
    NotStackable,
    StackedBatch,
    StackedData,
    batches,
    bucket,
    of_each,
    of_one,
)
from bellwether.core.stacked.space import StackedSpace
from bellwether.core.tasks import (
    Exchange,
    Outcome,
    Workplace,
    answer,
    memory_of,
    perform,
    reported,
    samples_of,
)
from bellwether.core.vector import Vector
from bellwether.core.workspace import Workspace

KEPT = 4
"""Stacked spaces kept for the next group: most groups are of one or two sizes."""


class StackedClients(Participant):
    """Some clients of a cohort as one: its vectors are [m, d], a row a client."""

    def __init__(
        self,
        space: StackedSpace,
        workplace: Workplace,
        exchange: Exchange,
        identities: Sequence[int],
        data: StackedData,
        memory: Any,
    ) -> None:
        address = (exchange.round, exchange.exchange)
        super().__init__(space, exchange.buffers, exchange.chunk, workplace.seed, *address)
        self.data = data
        self.memory = memory
        self._identities = identities

    @property
    def samples(self) -> Any:
        """n_i: a number, or a column of them."""
        sizes = self.data.sizes
        even = len(set(sizes)) == 1
        return (
            sizes[0] if even else torch.tensor(sizes, device=self._space.parameters.device)[:, None]
        )

    @property
    def position(self) -> int:
        raise InputError(
            "clients that are computed side by side have no single position;"
            " write `batched = False` in the method's class"
        )

    def steps(self, sgd: SGD) -> int:
        return sgd.local_steps(self.data.size)

    def _batches(self, sgd: SGD) -> Iterator[StackedBatch]:
        orders = [
            streams.key(self._seed, "batches", *self._address, identity, self._descents)
            for identity in self._identities
        ]
        return batches(self.data, sgd, orders)

    def _prepare(self, x: Vector) -> None:
        self._space.load(x, self.buffers)  # a model with noise is not stacked


class Stacks:
    """Stacked spaces by their number of clients, made when first needed."""

    def __init__(self, space: Workspace) -> None:
        self.space = space
        self._made: dict[int, StackedSpace] = {}

    def of(self, clients: int) -> StackedSpace:
        """A space for so many clients."""
        if clients not in self._made:
            if len(self._made) == KEPT:
                self._made.clear()
            self._made[clients] = StackedSpace(self.space, clients)
        return self._made[clients]


def perform_group(
    stacks: Stacks, workplace: Workplace, exchange: Exchange, positions: Sequence[int]
) -> list[Outcome]:
    """The tasks of some members of a cohort, in this order; side by side where they can be."""
    if len(positions) == 1:
        return [perform(stacks.space, workplace, exchange, positions[0])]
    sizes, of = _data(stacks.space, workplace, exchange, positions)
    buckets: dict[tuple[int, int], list[int]] = defaultdict(list)
    for place, size in enumerate(sizes):
        buckets[bucket(size, exchange.chunk)].append(place)
    done: dict[int, Outcome] = {}
    for places in buckets.values():
        here = [positions[place] for place in places]
        try:
            if len(here) == 1 or exchange.keeps_statistics:
                raise NotStackable("one client alone, or with statistics of its own")
            outcomes = _together(stacks, workplace, exchange, here, of(places))
        except NotStackable:
            outcomes = [perform(stacks.space, workplace, exchange, p) for p in here]
        done |= {outcome.position: outcome for outcome in outcomes}
    return [done[position] for position in positions]


def _data(
    space: Workspace, workplace: Workplace, exchange: Exchange, positions: Sequence[int]
) -> tuple[Sequence[int], Callable[[Sequence[int]], StackedData]]:
    """How many samples each of them has, and the samples of some of them side by side."""
    identities = [exchange.cohort[p] for p in positions]
    gathered = workplace.federation.gathered
    if gathered and not exchange.shares_server_data:
        rows = [gathered.rows(identity) for identity in identities]
        data = gathered.samples
        return [len(r) for r in rows], lambda places: of_one(
            data, [rows[p] for p in places], space.admit
        )
    each = [space.admit(samples_of(workplace, exchange, identity)) for identity in identities]
    return [data.size for data in each], lambda places: of_each([each[p] for p in places])


def _together(
    stacks: Stacks,
    workplace: Workplace,
    exchange: Exchange,
    positions: Sequence[int],
    data: StackedData,
) -> list[Outcome]:
    identities = [exchange.cohort[p] for p in positions]
    space = stacks.of(len(positions))
    memory = _stacked([memory_of(exchange, i, stacks.space.parameters) for i in identities])
    clients = StackedClients(space, workplace, exchange, identities, data, memory)
    where = f"clients {', '.join(map(str, identities))}, round {exchange.round}"
    uploads = _rows(answer(exchange, clients, where), len(positions), space.size)
    memories = _rows(clients.memory, len(positions), space.size)
    size = space.size
    return [
        reported(workplace, exchange, p, upload, clients.buffers, kept, samples, size)
        for p, upload, kept, samples in zip(positions, uploads, memories, data.sizes, strict=True)
    ]


def _stacked(messages: Sequence[Any]) -> Any:
    """One dataclass with [m, ...] fields of several with [...] fields; None of Nones."""
    if messages[0] is None:
        return None
    names = values_of(messages[0])
    return type(messages[0])(*(torch.stack([getattr(m, n) for m in messages]) for n in names))


def _rows(message: Any, clients: int, size: int) -> list[Any]:
    """Each client's part of a dataclass: its row of what is [m, ...], the rest as it is."""
    if message is None:
        return [None] * clients
    values = values_of(message)
    return [
        type(message)(**{name: _row(value, row, clients, size) for name, value in values.items()})
        for row in range(clients)
    ]


def _row(value: Any, row: int, clients: int, size: int) -> Any:
    if isinstance(value, tuple | list):
        return tuple(_row(item, row, clients, size) for item in value)
    if not isinstance(value, Tensor) or value.ndim < 2 or len(value) != clients:
        return value
    return value[row].reshape(()) if value.shape[1] == 1 != size else value[row]
