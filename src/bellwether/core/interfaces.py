"""What the core asks of the other rooms: data, cohorts, places to run, compressors."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from bellwether.core.dataset import Gathered, Samples
from bellwether.core.vector import Vector

if TYPE_CHECKING:
    from bellwether.core.evaluation import Evaluation, Score
    from bellwether.core.tasks import Exchange, Outcome, Workplace


class Federation(Protocol):
    """Who holds what. `bellwether.federation.Federation` is the one implementation."""

    @property
    def population(self) -> int:
        """How many clients there are; their ids are 0 .. population-1."""

    @property
    def samples(self) -> int:
        """How many samples all clients hold together; `InputError` where nobody knows."""

    @property
    def test(self) -> Samples | None:
        """Samples that nobody trains on."""

    @property
    def has_server_data(self) -> bool:
        """Whether `server` can be asked."""

    def client(self, client: int) -> Samples:
        """What this client holds."""

    @property
    def gathered(self) -> Gathered | None:
        """All clients' samples, if they lie in one place."""

    def sizes(self, clients: Sequence[int]) -> Sequence[int] | None:
        """How many samples each of them holds; None where that is not known without loading."""

    def server(self, round: int) -> Samples:
        """What the server holds in this round (from 1); 0 is before the first, for pre-training."""


class Participation(Protocol):
    """Who comes. Implementations are in `bellwether.federation.participation`."""

    def check(self, population: int) -> None:
        """Raise `InputError` when such cohorts cannot be drawn from so many clients."""

    def cohort(self, population: int, seed: int, round: int, exchange: int) -> Sequence[int]:
        """The clients of the round's exchange, in the order of their positions."""


class Engine(Protocol):
    """Where clients run. Implementations are in `bellwether.engines`."""

    def start(self, workplace: "Workplace") -> None:
        """Get ready to run clients of one training run."""

    def run(self, exchange: "Exchange") -> "Iterator[Outcome]":
        """Start every task of the exchange; yield the outcomes in cohort order."""

    def stop(self) -> None:
        """Leave nothing behind."""


@runtime_checkable
class Evaluator(Protocol):
    """An engine that can evaluate where clients run, beside other work."""

    def scores(self, evaluation: "Evaluation") -> "Callable[[], Iterable[Score]] | None":
        """Start to evaluate; call the answer for the scores of all pieces. None: do it yourself."""


@runtime_checkable
class Compressor(Protocol):
    """How a vector travels in fewer bytes. Implementations are in `bellwether.compression`."""

    @property
    def form(self) -> type[Any]:
        """The dataclass that travels in the vector's place."""

    @property
    def feedback(self) -> bool:
        """Whether what is left out of one message must be kept and added to the next."""

    def compress(self, vector: Vector, key: int) -> Any:
        """What travels; draws come from the stream of this key, a number of 63 bits."""

    def decompress(self, packed: Any) -> Vector:
        """The vector that the receiver makes of it; a new one, that nobody shares."""
