from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Generic, Self

from typing_extensions import TypeVar

from bellwether.algorithms.fedavgm import MomentumState
from bellwether.core.algorithm import Algorithm, Replies
from bellwether.core.blocks import Block, Named, check_cover, locate
from bellwether.core.errors import InputError
from bellwether.core.sgd import SGD
from bellwether.core.vector import Layers

StateT = TypeVar("StateT", bound=MomentumState, default=MomentumState)


@dataclass(frozen=True)
class BlockCoordinates(Algorithm[StateT], Generic[StateT]):
    """What FedBCGD and FedBCGD+ share: who sends which part of the vector.

    `blocks` and `shared` are slices of the vector or names of layers; the member of the cohort
    at position p sends block p mod N_b and the shared block.
    """

    client: SGD
    _: KW_ONLY
    blocks: tuple[Named, ...]
    shared: Named = ()
    momentum: float = 0.9

    def laid_out(self, layers: Layers) -> Self:
        blocks, shared = tuple(locate(b, layers) for b in self.blocks), locate(self.shared, layers)
        check_cover([*blocks, shared], layers)
        return replace(self, blocks=blocks, shared=shared)

    def part(self, position: int) -> Block:
        """What the member at this position sends."""
        return (*self.blocks[position % len(self.blocks)], *self.shared)  # type: ignore[misc]

    def check_cohort(self, replies: Replies[Any]) -> None:
        if len(replies.cohort) < len(self.blocks):
            raise InputError(
                f"{len(self.blocks)} blocks need a cohort of as many clients or more,"
                f" not {len(replies.cohort)}"
            )
