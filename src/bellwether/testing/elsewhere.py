"""An engine that treats every task as if it ran on another machine, at any time."""

import copy
import dataclasses
from collections.abc import Iterator
from typing import Any

from bellwether.core import wire
from bellwether.core.streams import generator, seed_torch
from bellwether.core.tasks import Exchange, Outcome, Workplace, perform


class Elsewhere:
    """Tasks run in a shuffled order, each in a new workspace with a copy of the method.

    Messages and memories go through bytes, and torch's generators hold something else each time:
    what `local` leaves behind in the process, or finds there, makes a difference here.
    """

    def start(self, workplace: Workplace) -> None:
        self._workplace = workplace

    def run(self, exchange: Exchange) -> Iterator[Outcome]:
        address = exchange.round, exchange.exchange
        order = generator(0, "order", *address).permutation(len(exchange.cohort)).tolist()
        if order == sorted(order):
            order.reverse()
        done: dict[int, Outcome] = {}
        for place, position in enumerate(order):
            seed_torch(0, "elsewhere", *address, place)
            there = dataclasses.replace(
                exchange,
                local=copy.deepcopy(exchange.local),
                sent=_through_bytes(exchange.sent),
                memories={c: _through_bytes(m) for c, m in exchange.memories.items()},
            )
            outcome = perform(self._workplace.workspace(), self._workplace, there, position)
            memory = outcome.memory
            done[position] = dataclasses.replace(
                outcome,
                upload=_through_bytes(outcome.upload),
                memory=None if memory is None else _through_bytes(memory),
            )
        return iter([done[position] for position in sorted(done)])

    def stop(self) -> None:
        del self._workplace


def _through_bytes(message: Any) -> Any:
    return wire.decode(type(message), wire.encode(message))
