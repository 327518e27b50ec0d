"""A method is one frozen dataclass with two short functions, `round` and `local`."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from numbers import Real
from typing import (
    Any,
    ClassVar,
    Generic,
    Literal,
    Protocol,
    Self,
    get_args,
    get_origin,
    get_type_hints,
)

import torch
from typing_extensions import TypeVar

from bellwether.core.blocks import Block
from bellwether.core.errors import InputError
from bellwether.core.fields import values_of
from bellwether.core.participants import Client, Server
from bellwether.core.sgd import SGD
from bellwether.core.vector import Layers, Vector

EMPTY = torch.empty(0)
"""The value of a vector field that a message does not use: it is not sent and costs no byte."""


@dataclass(frozen=True)
class State:
    """What the server keeps between rounds; a method with more declares a subclass."""

    model: Vector


@dataclass(frozen=True)
class Sent:
    """What goes to every client of the cohort."""

    model: Vector
    guide: Vector = EMPTY
    """The server's gradient at the model, grad f_s(x)."""


@dataclass(frozen=True)
class Upload:
    """What one client sends back."""

    change: Vector
    """Delta_i = y_i - x."""
    gradient: Vector = EMPTY
    """grad f_i(x)."""
    steps: int = 0
    """K, the local steps taken."""
    lr: float = 0.0
    """eta, the rate they were taken at."""


S = TypeVar("S")
U = TypeVar("U")
StateT = TypeVar("StateT", bound=State, default=State)


class Reply(Generic[U]):
    """One accepted upload; its fields read as the reply's own, beside who sent it."""

    def __init__(self, upload: U, client: int, position: int, samples: int) -> None:
        self.upload = upload
        self.client = client
        self.position = position
        self.samples = samples

    def __getattr__(self, field: str) -> Any:
        if field.startswith("__"):
            raise AttributeError(field)
        return getattr(self.upload, field)


class Replies(Generic[U]):
    """The replies of one exchange in cohort order, computed while they are read, once."""

    def __init__(self, cohort: tuple[int, ...], replies: Iterator[Reply[U]]) -> None:
        self.cohort = cohort
        self._replies = replies
        self._read = False

    def __iter__(self) -> Iterator[Reply[U]]:
        if self._read:
            raise InputError(
                "replies are read once, as they come in; to use them twice keep list(replies)"
            )
        self._read = True
        return self._replies


class Clients(Protocol):
    """The only door to the clients."""

    @property
    def population(self) -> int:
        """N, the number of all clients."""

    @property
    def samples(self) -> int:
        """n, the samples of all clients together."""

    def run(self, local: Callable[[Client, S], U], sent: S) -> Replies[U]:
        """Draw a cohort and start `local` at each of its members; read the replies later."""


class Fields:
    """Numbers and vectors under the names of an upload's fields; 0 if nobody replied."""

    def __init__(self, values: dict[str, Any]) -> None:
        self._values = values

    def __getattr__(self, field: str) -> Any:
        if field.startswith("_") or (self._values and field not in self._values):
            raise AttributeError(f"the replies have no number or vector {field!r}")
        return self._values.get(field, 0.0)


class Mean(Fields):
    """The mean of every field of the replies, their `count`, and the plain `sum` of each field."""

    def __init__(self, count: int, means: dict[str, Any], sums: dict[str, Any]) -> None:
        super().__init__(means)
        self.count = count
        self.sum = Fields(sums)


Weights = Literal["uniform", "samples"]
"""How replies count in a mean: all the same, or by n_i."""


def mean(
    replies: Iterable[Any],
    weights: Weights | Callable[[Any], float] | None = None,
    of: Callable[[Any], Any] | None = None,
) -> Any:
    """The mean, in one pass, in order, in memory for one reply.

    Of replies: a `Mean`, field by field, or the mean of what the function `of` makes of each. Of
    vectors or numbers: their mean.
    """
    uniform = weights in (None, "uniform")
    sums: dict[str, Any] = {}
    weighted: dict[str, Any] = sums if uniform else {}
    count, mass = 0, 0.0
    fieldwise = of is None and isinstance(replies, Replies)
    for item in replies:
        fieldwise = of is None and isinstance(item, Reply)
        values = _numbers(item.upload) if fieldwise else {"": of(item) if of else item}
        _add(sums, values)
        weight = 1.0
        if not uniform:
            weight = _weight(weights, item)
            _add(weighted, {name: value * weight for name, value in values.items()})
        count, mass = count + 1, mass + weight
    if count and not mass:
        raise InputError("the weights of a mean must not all be 0")
    means = {name: total / mass for name, total in weighted.items()}
    return Mean(count, means, sums) if fieldwise else means.get("", 0.0)


def _add(totals: dict[str, Any], values: dict[str, Any]) -> None:
    for name, value in values.items():
        if name in totals:
            totals[name] += value  # in place where it is a vector
        else:
            totals[name] = value.clone() if isinstance(value, torch.Tensor) else value


def _weight(weights: Any, item: Any) -> float:
    if weights == "samples":
        return float(item.samples)
    if callable(weights):
        return float(weights(item))
    raise InputError(f"weights must be 'uniform' or 'samples', not {weights!r}")


class Algorithm(ABC, Generic[StateT]):
    """A method of federated learning; subclasses are frozen dataclasses.

    They see vectors and participants, nothing else. The settings of a side's descent are the
    fields `client` and `server`, of type `SGD`; their batch sizes are also the chunks in which
    that side computes full gradients.
    """

    memory: ClassVar[type[Any] | None] = None
    """A frozen dataclass of vectors that each client keeps, all zero at first."""
    shares_server_data: ClassVar[bool] = False
    """Whether clients train on the server's samples beside their own."""
    batched: ClassVar[bool] = True
    """Whether `local` runs unchanged for several clients at once, whose vectors are [m, d]."""

    @property
    def needs_server_data(self) -> bool:
        """Whether the server must own samples: it does when it has steps to take."""
        server = side(self, "server")
        return server is not None and bool(server.lr and server.steps != 0 and server.epochs != 0)

    @property
    def smallest_cohort(self) -> int:
        """How many clients must come at least when any are asked."""
        return 0

    def laid_out(self, layers: Layers) -> Self:
        """The method as it suits a model; for methods that name layers."""
        return self

    def part(self, position: int) -> Block | None:
        """What the cohort's member at this position sends of the vector; None: all of it.

        So much of the batch-norm statistics travels too: a layer's go with its first parameter.
        """
        return None

    def start(self, model: Vector, server: Server) -> StateT:
        """The state before the first round; for methods with more state, or pre-training."""
        return State(model)  # type: ignore[return-value]

    @abstractmethod
    def round(self, state: StateT, clients: Clients, server: Server) -> StateT:
        """What the server does in one round."""


def check_cohort(algorithm: Algorithm[Any], clients: int) -> None:
    """Raise `InputError` for a cohort that the method cannot work with."""
    if clients < algorithm.smallest_cohort:
        raise InputError(
            f"{type(algorithm).__name__} with these settings needs a cohort of"
            f" {algorithm.smallest_cohort} clients or more, not {clients}"
        )


def check_settings(algorithm: Algorithm[Any]) -> None:
    """Raise `InputError` for a setting that its type does not allow, or a rate below 0."""
    for name, hint in get_type_hints(type(algorithm)).items():
        value: Any = getattr(algorithm, name, None)
        kinds = get_args(hint) or (hint,)
        if get_origin(hint) is Literal:
            wanted = "" if value in kinds else " or ".join(map(repr, kinds))
        elif value is None and type(None) in kinds:
            wanted = ""
        elif SGD in kinds:
            wanted = "" if isinstance(value, SGD) else "settings such as SGD(lr=0.05, epochs=1)"
        elif float in kinds:
            number = isinstance(value, Real) and math.isfinite(value)
            wanted = "" if number else "a finite number"
            if number and name == "global_lr" and float(value) < 0:
                wanted = "0 or more"
        else:
            continue
        if wanted:
            raise InputError(f"{type(algorithm).__name__}({name}={value!r}): must be {wanted}")


def side(algorithm: Algorithm[Any], name: str) -> SGD | None:
    """The settings of one side's descent, "client" or "server", if the method has that side."""
    value = getattr(algorithm, name, None)
    return value if isinstance(value, SGD) else None


def _numbers(upload: Any) -> dict[str, Any]:
    return {k: v for k, v in values_of(upload).items() if isinstance(v, torch.Tensor | int | float)}
