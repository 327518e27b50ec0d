"""What workers are asked to do, in parts: the clients of an exchange, or an evaluation."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from bellwether.core.evaluation import CHUNK, Evaluation, count, scores
from bellwether.core.stacked.clients import Stacks, perform_group
from bellwether.core.stacked.rule import groups
from bellwether.core.tasks import Exchange, Workplace
from bellwether.engines.jobs import Group


@dataclasses.dataclass(frozen=True)
class Kept:
    """What clients of some groups keep."""

    memories: dict[int, Any]
    residuals: dict[int, Any]


class Work(Protocol):
    """Positions that can be done in groups, in any order; it travels without what clients keep."""

    def groups(self, workplace: Workplace, size: int) -> Sequence[Group]:
        """The positions, in groups of this size where that matters."""

    def costs(self, workplace: Workplace) -> Sequence[float]:
        """How much work each position is."""

    def kept(self, groups: Sequence[Group]) -> Kept:
        """What the clients of these groups keep."""

    def packed(self, workplace: Workplace) -> "Work":
        """What all its positions share."""

    def unpacked(self, workplace: Workplace) -> "Work":
        """What `packed` made, as it was."""

    def done(self, stacks: Stacks, workplace: Workplace, group: Group, kept: Kept) -> Sequence[Any]:
        """What comes of a group."""

    def name(self, group: Group) -> str:
        """Whose work a group is, for errors."""


@dataclasses.dataclass(frozen=True)
class Clients:
    """The clients of an exchange."""

    exchange: Exchange

    def groups(self, workplace: Workplace, size: int) -> Sequence[Group]:
        return groups(len(self.exchange.cohort), size)

    def costs(self, workplace: Workplace) -> Sequence[float]:
        cohort = self.exchange.cohort
        sizes = workplace.federation.sizes(cohort)
        return [1.0 + size for size in sizes or [0] * len(cohort)]

    def kept(self, groups: Sequence[Group]) -> Kept:
        clients = [self.exchange.cohort[position] for group in groups for position in group]
        stores = self.exchange.memories, self.exchange.residuals
        return Kept(*({c: store[c] for c in clients if c in store} for store in stores))

    def packed(self, workplace: Workplace) -> "Clients":
        """Without what clients keep; a function of the method goes by its name."""
        exchange = dataclasses.replace(self.exchange, memories={}, residuals={})
        name, method = _name(exchange.local), workplace.algorithm
        if method is not None and getattr(method, name, None) == exchange.local:
            exchange = dataclasses.replace(exchange, local=name, memory=None)  # type: ignore[arg-type]
        return Clients(exchange)

    def unpacked(self, workplace: Workplace) -> "Clients":
        local, method = self.exchange.local, workplace.algorithm
        if isinstance(local, str) and method is not None:
            return Clients(
                dataclasses.replace(
                    self.exchange, local=getattr(method, local), memory=method.memory
                )
            )
        # Anew, which counts afresh how often its vectors were written to.
        return Clients(dataclasses.replace(self.exchange))

    def done(self, stacks: Stacks, workplace: Workplace, group: Group, kept: Kept) -> Sequence[Any]:
        exchange = dataclasses.replace(
            self.exchange, memories=kept.memories, residuals=kept.residuals
        )
        return perform_group(stacks, workplace, exchange, group)

    def name(self, group: Group) -> str:
        clients = ", ".join(str(self.exchange.cohort[position]) for position in group)
        return f"client {clients}, round {self.exchange.round}"


@dataclasses.dataclass(frozen=True)
class Pieces:
    """The pieces of the test samples."""

    evaluation: Evaluation

    def groups(self, workplace: Workplace, size: int) -> Sequence[Group]:
        test = workplace.federation.test
        return groups(count(test), 1) if test is not None else []

    def costs(self, workplace: Workplace) -> Sequence[float]:
        return [float(CHUNK)] * len(self.groups(workplace, 1))

    def kept(self, groups: Sequence[Group]) -> Kept:
        return Kept({}, {})

    def packed(self, workplace: Workplace) -> "Pieces":
        return self

    def unpacked(self, workplace: Workplace) -> "Pieces":
        return self

    def done(self, stacks: Stacks, workplace: Workplace, group: Group, kept: Kept) -> Sequence[Any]:
        assert workplace.federation.test is not None
        return scores(stacks.space, workplace.federation.test, self.evaluation, group)

    def name(self, group: Group) -> str:
        return "the evaluation"


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", "")
