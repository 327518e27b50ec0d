from dataclasses import KW_ONLY, dataclass

import torch

from bellwether.core.algorithm import Algorithm, Clients, Sent, State, Upload, Weights, mean
from bellwether.core.errors import check_positive
from bellwether.core.participants import Client, Server
from bellwether.core.sgd import SGD
from bellwether.core.vector import Vector


@dataclass(frozen=True)
class DynState(State):
    h: Vector  # mean of all l_i


@dataclass(frozen=True)
class Memory:
    linear: Vector  # l_i


@dataclass(frozen=True)
class FedDyn(Algorithm[DynState]):
    """FedDyn: each client's loss is tilted so that its minimum is the common one.

    y <- y - eta (g(y) - l_i + alpha (y - x)); l_i <- l_i - alpha (y - x); h <- h - (alpha / N)
    sum (y_i - x); x <- mean y_i - h / alpha (Acar et al. 2021, Algorithm 1).
    """

    client: SGD
    _: KW_ONLY
    alpha: float = 0.01
    weights: Weights = "uniform"
    memory = Memory

    def __post_init__(self) -> None:
        check_positive(alpha=self.alpha)

    def start(self, model: Vector, server: Server) -> DynState:
        return DynState(model, torch.zeros_like(model))

    def round(self, state: DynState, clients: Clients, server: Server) -> DynState:
        replies = mean(clients.run(self.local, Sent(model=state.model)), self.weights)
        if not replies.count:
            return state  # without a mean of y_i x stays
        h = state.h - self.alpha / clients.population * replies.sum.change
        return DynState(state.model + replies.change - h / self.alpha, h)

    def local(self, client: Client, sent: Sent) -> Upload:
        x, l_i = sent.model, client.memory.linear
        change = client.descend(x, self.client, lambda y, _: self.alpha * (y - x) - l_i).change
        client.memory = Memory(l_i - self.alpha * change)
        return Upload(change)
