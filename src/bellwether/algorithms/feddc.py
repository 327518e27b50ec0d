from dataclasses import KW_ONLY, dataclass

import torch

from bellwether.algorithms.scaffold import Controlled, ControlState
from bellwether.core.algorithm import Algorithm, Clients, State, Weights, mean
from bellwether.core.errors import check_positive
from bellwether.core.participants import Client, Server
from bellwether.core.sgd import SGD, check_moves
from bellwether.core.vector import Vector


@dataclass(frozen=True)
class DriftState(State):
    drift: Vector  # H = mean of all h_i
    control: Vector  # s = mean of all s_i


@dataclass(frozen=True)
class Memory:
    drift: Vector  # h_i
    control: Vector  # s_i


@dataclass(frozen=True)
class FedDC(Algorithm[DriftState]):
    """FedDC: local drift h_i is learnt and bridged, with control variates s_i (Gao et al. 2022).

    y <- y - eta (g(y) + alpha (y + h_i - x) + s - s_i); H <- H + (1/N) sum (y_i - x);
    x <- mean y_i + H. As the authors' code, not the published formula, computes it.
    """

    client: SGD
    _: KW_ONLY
    alpha: float = 0.01
    weights: Weights = "uniform"
    memory = Memory

    def __post_init__(self) -> None:
        check_moves(self.client)
        check_positive(alpha=self.alpha)

    def start(self, model: Vector, server: Server) -> DriftState:
        return DriftState(model, torch.zeros_like(model), torch.zeros_like(model))

    def round(self, state: DriftState, clients: Clients, server: Server) -> DriftState:
        x, n = state.model, clients.population
        replies = mean(clients.run(self.local, ControlState(x, state.control)), self.weights)
        if not replies.count:
            return state  # without a mean of y_i x stays
        drift = state.drift + replies.sum.change / n
        s = state.control + replies.sum.control / n
        return DriftState(x + replies.change + drift, drift, s)

    def local(self, client: Client, sent: ControlState) -> Controlled:
        x, s, h_i, s_i = sent.model, sent.control, client.memory.drift, client.memory.control
        descent = client.descend(x, self.client, lambda y, _: self.alpha * (y + h_i - x) + s - s_i)
        control = -s - descent.change / descent.travel  # s_i' - s_i
        client.memory = Memory(h_i + descent.change, s_i + control)
        return Controlled(descent.change, control)
