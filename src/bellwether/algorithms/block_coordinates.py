from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Generic, Self

from typing_extensions import TypeVar

from bellwether.algorithms.fedavgm import MomentumState
from bellwether.core.algorithm import Algorithm, Reply, Weights
from bellwether.core.blocks import Block, Named, check_cover, divide, locate
from bellwether.core.errors import check_fraction
from bellwether.core.sgd import SGD
from bellwether.core.vector import Layers

StateT = TypeVar("StateT", bound=MomentumState, default=MomentumState)


@dataclass(frozen=True)
class BlockCoordinates(Algorithm[StateT], Generic[StateT]):
    """What FedBCGD and FedBCGD+ share: who sends which part of the vector.

    `blocks` are slices of the vector or names of layers, or a number: that many even stretches
    of what is not `shared`. The member of the cohort at position p sends block p mod N_b and the
    shared block.
    """

    client: SGD
    _: KW_ONLY
    blocks: int | tuple[Named, ...] = 4
    shared: Named = ()
    momentum: float = 0.9
    weights: Weights = "uniform"
    batched = False  # what a client sends depends on its position

    def __post_init__(self) -> None:
        check_fraction(momentum=self.momentum)

    def laid_out(self, layers: Layers) -> Self:
        shared = locate(self.shared, layers)
        if isinstance(self.blocks, int):
            blocks = divide(self.blocks, shared, layers)
        else:
            blocks = tuple(locate(block, layers) for block in self.blocks)
        check_cover([*blocks, shared], layers)
        return replace(self, blocks=blocks, shared=shared)

    def part(self, position: int) -> Block:
        """Its block and the shared one."""
        assert isinstance(self.blocks, tuple)
        return (*self.blocks[position % len(self.blocks)], *self.shared)  # type: ignore[misc]

    def weight(self, reply: Reply[Any]) -> float:
        """How much the reply counts among those that send the same block."""
        return reply.samples if self.weights == "samples" else 1

    @property
    def smallest_cohort(self) -> int:
        return self.blocks if isinstance(self.blocks, int) else len(self.blocks)
