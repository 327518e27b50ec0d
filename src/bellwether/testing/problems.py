"""Small problems on which every promise of a method can be checked within a second."""

import copy
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn

from bellwether.core.dataset import Samples
from bellwether.core.streams import generator, seed_torch
from bellwether.core.workspace import Loss, default_loss
from bellwether.federation import Federation

SEED = 1
LAYERS = ("first", "second", "head")
"""The layers of both built-in models, for methods that name layers."""

_CLIENTS = 6
_MOST = 12
"""Of a federation with more clients, so many are used where a new one is made of it."""


@dataclass(frozen=True)
class Problem:
    """A federation and a model to train on it."""

    name: str
    federation: Federation
    model: nn.Module | Callable[[], nn.Module]
    loss: Loss | None = None
    convex: bool = False
    """Whether any method with a small rate must lower the loss on the test samples."""
    precision: torch.dtype | None = None
    """Of the model; None leaves it as it is made."""

    @property
    def cohort(self) -> int:
        """Clients a round: most, not all."""
        return min(8, -(-2 * self.federation.population // 3))

    @property
    def objective(self) -> Loss:
        """The loss that training uses."""
        return self.loss or default_loss(self.federation.client(0))

    def module(self) -> nn.Module:
        """The model before training; the same one each time."""
        seed_torch(SEED, "model")
        model = self.model if isinstance(self.model, nn.Module) else self.model()
        return copy.deepcopy(model).to(self.precision)

    def without_server_data(self) -> "Problem":
        """The same clients, and a server that holds nothing."""
        return replace(self, federation=Federation.from_arrays(self._clients()))

    def with_one_client(self) -> "Problem":
        """One client that holds what all held."""
        together = self._clients()[0]
        for other in self._clients()[1:]:
            together = together.union(other)
        server = self.federation.server(1) if self.federation.has_server_data else None
        return replace(self, federation=Federation.from_arrays([together], server))

    def _clients(self) -> list[Samples]:
        return [self.federation.client(i) for i in range(min(self.federation.population, _MOST))]


class SideBySide(nn.Module):
    """f(x) = a'x, its coefficients in three layers: least squares is quadratic in them."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(2, 1, bias=False)
        self.second = nn.Linear(2, 1, bias=False)
        self.head = nn.Linear(2, 1, bias=False)
        self.double()

    def forward(self, x: Tensor) -> Tensor:
        return self.first(x[:, :2]) + self.second(x[:, 2:4]) + self.head(x[:, 4:])  # type: ignore[no-any-return]


def quadratics() -> Problem:
    """Least squares in float64; clients disagree in where their minimum is."""
    common = np.linspace(1, 2, 6)
    held = [_linear(i, 5 + i, common, 0.3) for i in range(_CLIENTS)]
    everything = Samples(*(torch.cat(part) for part in zip(*held, strict=True)))
    federation = Federation.from_arrays(held, _linear(_CLIENTS, 12, common, 0.1), everything)
    return Problem("quadratics", federation, SideBySide, convex=True)


def classes() -> Problem:
    """A classifier in float32 with dropout and batch-norm; clients lack some of the labels."""
    held = [_labelled(i, 5 + i, skewed=True) for i in range(_CLIENTS)]
    federation = Federation.from_arrays(held, _labelled(_CLIENTS, 12, skewed=False))
    return Problem("classes", federation, classifier)


def classifier() -> nn.Module:
    """Three linear layers with all that is random or kept beside parameters."""
    layers: list[tuple[str, nn.Module]] = [
        ("first", nn.Linear(4, 6)),
        ("split", nn.Unflatten(1, (2, 3))),  # so that batch-norm can do with one sample
        ("norm", nn.BatchNorm1d(2, affine=False)),
        ("join", nn.Flatten()),
        ("bend", nn.ReLU()),
        ("noise", nn.Dropout(0.3)),
        ("second", nn.Linear(6, 6)),
        ("head", nn.Linear(6, 3)),
    ]
    return nn.Sequential(OrderedDict(layers))


def _linear(owner: int, size: int, common: np.ndarray, apart: float) -> Samples:
    rng = generator(SEED, "quadratics", owner)
    rows = 0.6 * rng.normal(size=(size, len(common)))
    values = rows @ (common + apart * rng.normal(size=len(common)))
    return Samples(torch.from_numpy(rows), torch.from_numpy(values))


def _labelled(owner: int, size: int, skewed: bool) -> Samples:
    rng = generator(SEED, "classes", owner)
    labels = (owner + rng.integers(2 if skewed else 3, size=size)) % 3
    inputs = rng.normal(size=(size, 4)) + np.eye(3, 4)[labels]
    return Samples(torch.from_numpy(inputs).float(), torch.from_numpy(labels))
