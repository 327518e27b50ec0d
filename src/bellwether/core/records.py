"""What is written down of each round."""

from dataclasses import dataclass, field

from torch import Tensor


@dataclass(frozen=True)
class RoundRecord:
    """One round: who came, what it cost, what the model can do now."""

    round: int
    """Counted from 1."""
    cohort: tuple[int, ...]
    """The clients that were asked, in order; empty when the server worked alone."""
    bytes_down: int
    bytes_up: int
    seconds: float
    """Time for the round itself, evaluation not included."""
    metrics: dict[str, float] = field(default_factory=dict)
    """`loss` and, for classes, `accuracy` on the test samples; empty when not evaluated."""
    model: Tensor | None = field(default=None, repr=False, compare=False)
    """The model's vector after the round."""
