"""Least squares with known curvature: everything about one round can be written down by hand.

Participant i holds rows S_i and values t_i; f_i(x) = mean_j (s_j x - t_j)^2 / 2 has the Hessian
A_i = S_i' S_i / n_i and the minimum b_i, so K full-batch steps of rate eta with a constant
correction v end in y* + (I - eta A_i)^K (x - y*), y* = b_i - A_i^-1 v.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from bellwether import Federation

DIMENSION = 5


def half_squared_error(outputs: Tensor, targets: Tensor) -> Tensor:
    return ((outputs.reshape(targets.shape) - targets) ** 2).mean() / 2


def model() -> nn.Module:
    """x in R^d as a linear layer, away from the origin."""
    module = nn.Linear(DIMENSION, 1, bias=False).double()
    with torch.no_grad():
        module.weight.copy_(torch.linspace(-1, 1, DIMENSION))
    return module


@dataclass(frozen=True)
class Quadratic:
    """One participant's f(x) = (x - b)' A (x - b) / 2 + constant."""

    rows: np.ndarray
    values: np.ndarray

    @property
    def A(self) -> np.ndarray:  # noqa: N802
        return self.rows.T @ self.rows / len(self.rows)

    @property
    def b(self) -> np.ndarray:
        return np.linalg.solve(self.A, self.rows.T @ self.values / len(self.rows))

    def gradient(self, x: np.ndarray) -> np.ndarray:
        return self.A @ (x - self.b)

    def descend(
        self, x: np.ndarray, lr: float, steps: int, v: np.ndarray | float = 0
    ) -> np.ndarray:
        lowest = self.b - np.linalg.solve(self.A, np.zeros(DIMENSION) + v)
        return lowest + np.linalg.matrix_power(np.eye(DIMENSION) - lr * self.A, steps) @ (
            x - lowest
        )


@dataclass(frozen=True)
class Problem:
    clients: Sequence[Quadratic]
    server: Quadratic

    @property
    def federation(self) -> Federation:
        return Federation.from_arrays(
            clients=[(q.rows, q.values) for q in self.clients],
            server=(self.server.rows, self.server.values),
        )

    @property
    def optimum(self) -> np.ndarray:
        """The minimum of the mean of the clients' functions."""
        A = sum(q.A for q in self.clients)
        return np.linalg.solve(A, sum(q.A @ q.b for q in self.clients))

    def with_exact_server(self) -> "Problem":
        """The same clients with a server whose data are all of theirs, so f_s = f."""
        scale = [1 / np.sqrt(len(q.rows)) for q in self.clients]
        n = sum(len(q.rows) for q in self.clients) / len(self.clients)
        rows = np.concatenate([q.rows * s for q, s in zip(self.clients, scale, strict=True)])
        values = np.concatenate([q.values * s for q, s in zip(self.clients, scale, strict=True)])
        return Problem(self.clients, Quadratic(rows * np.sqrt(n), values * np.sqrt(n)))


def problem(clients: int = 6, seed: int = 0) -> Problem:
    """Clients of unequal sizes that disagree in curvature and in where their minimum is."""
    rng = np.random.default_rng(seed)

    def participant(n: int) -> Quadratic:
        rows = rng.normal(size=(n, DIMENSION)) * rng.uniform(0.5, 1.5, DIMENSION)
        return Quadratic(rows, rows @ rng.normal(size=DIMENSION) * 3 + rng.normal(size=n))

    return Problem([participant(8 + 3 * i) for i in range(clients)], participant(12))
