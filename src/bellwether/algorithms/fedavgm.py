from dataclasses import KW_ONLY, dataclass

import torch

from bellwether.core.algorithm import Algorithm, Clients, Sent, State, Upload, Weights, mean
from bellwether.core.errors import check_fraction
from bellwether.core.participants import Client, Server
from bellwether.core.sgd import SGD
from bellwether.core.vector import Vector


@dataclass(frozen=True)
class MomentumState(State):
    velocity: Vector


@dataclass(frozen=True)
class FedAvgM(Algorithm[MomentumState]):
    """FedAvgM: v <- b v + mean Delta; x <- x + eta_g v (Hsu et al. 2019)."""

    client: SGD
    _: KW_ONLY
    global_lr: float = 1.0
    momentum: float = 0.9
    weights: Weights = "uniform"

    def __post_init__(self) -> None:
        check_fraction(momentum=self.momentum)

    def start(self, model: Vector, server: Server) -> MomentumState:
        return MomentumState(model, torch.zeros_like(model))

    def round(self, state: MomentumState, clients: Clients, server: Server) -> MomentumState:
        x = state.model
        replies = clients.run(self.local, Sent(model=x))
        v = self.momentum * state.velocity + mean(replies, self.weights).change
        return MomentumState(x + self.global_lr * v, v)

    def local(self, client: Client, sent: Sent) -> Upload:
        return Upload(change=client.descend(sent.model, self.client).change)
