"""A method is one frozen dataclass with two short functions, `round` and `local`."""

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import torch

from bellwether.core.errors import InputError
from bellwether.core.participants import Client, Server
from bellwether.core.sgd import SGD
from bellwether.core.vector import Vector

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

    def run(self, local: Callable[[Client, S], U], sent: S) -> Replies[U]:
        """Draw a cohort and start `local` at each of its members; read the replies later."""


class Mean:
    """The mean of replies: `count`, and the mean of every field of their uploads."""

    def __init__(self, count: int, fields: dict[str, Any]) -> None:
        self.count = count
        self._fields = fields

    def __getattr__(self, field: str) -> Any:
        if field.startswith("__") or (self.count and field not in self._fields):
            raise AttributeError(f"the replies have no number or vector {field!r}")
        return self._fields[field] if self.count else 0.0  # nobody replied: no change


def mean(replies: Iterable[Any], weights: Callable[[Any], float] | None = None) -> Any:
    """The mean, in one pass, in order, in memory for one reply.

    Of replies: a `Mean`, field by field. Of vectors or numbers: their mean. `weights` gives the
    weight of an item, such as `by_samples`; without it all count the same.
    """
    totals: dict[str, Any] = {}
    count, mass, of_replies = 0, 0.0, isinstance(replies, Replies)
    for item in replies:
        of_replies = isinstance(item, Reply)
        weight = 1.0 if weights is None else float(weights(item))
        for name, value in (_numbers(item.upload) if of_replies else {"": item}).items():
            term = value if weight == 1.0 else value * weight
            if not count:
                totals[name] = term.clone() if isinstance(term, torch.Tensor) else term
            else:
                totals[name] += term  # in place where it is a vector
        count, mass = count + 1, mass + weight
    if count and not mass:
        raise InputError("the weights of a mean must not all be 0")
    if not of_replies:
        return totals[""] / mass if count else 0.0
    return Mean(count, {name: total / mass for name, total in totals.items()})


def by_samples(reply: Reply[Any]) -> float:
    """The weight n_i, for `mean`."""
    return reply.samples


class Algorithm(ABC):
    """A method of federated learning; subclasses are frozen dataclasses.

    They see vectors and participants, nothing else. The settings of a side's descent are the
    fields `client` and `server`, of type `SGD`; their batch sizes are also the chunks in which
    that side computes full gradients.
    """

    memory: ClassVar[type[Any] | None] = None
    """A frozen dataclass of vectors that each client keeps, all zero at first."""

    def start(self, model: Vector, server: Server) -> State:
        """The state before the first round; for methods with more state, or pre-training."""
        return State(model)

    @abstractmethod
    def round(self, state: State, clients: Clients, server: Server) -> State:
        """What the server does in one round."""


def side(algorithm: Algorithm, name: str) -> SGD | None:
    """The settings of one side's descent, "client" or "server", if the method has that side."""
    value = getattr(algorithm, name, None)
    return value if isinstance(value, SGD) else None


def _numbers(upload: Any) -> dict[str, Any]:
    values = {f.name: getattr(upload, f.name) for f in dataclasses.fields(upload)}
    return {k: v for k, v in values.items() if isinstance(v, torch.Tensor | int | float)}
