from dataclasses import KW_ONLY, dataclass

import torch

from bellwether.core.algorithm import Algorithm, Clients, Sent, State, Upload, Weights, mean
from bellwether.core.errors import check_fraction, check_positive
from bellwether.core.participants import Client, Server
from bellwether.core.sgd import SGD
from bellwether.core.vector import Vector


@dataclass(frozen=True)
class AdamState(State):
    first: Vector
    second: Vector


@dataclass(frozen=True)
class FedAdam(Algorithm[AdamState]):
    """FedAdam: Adam on the server with the mean change D as its gradient (Reddi et al. 2021).

    m <- b1 m + (1 - b1) D; v <- b2 v + (1 - b2) D^2; x <- x + eta_g m / (sqrt(v) + tau), from
    m = 0 and v = tau^2, without bias correction.
    """

    client: SGD
    _: KW_ONLY
    global_lr: float = 0.1
    beta1: float = 0.9
    beta2: float = 0.99
    tau: float = 1e-3
    weights: Weights = "uniform"

    def __post_init__(self) -> None:
        check_fraction(beta1=self.beta1, beta2=self.beta2)
        check_positive(tau=self.tau)

    def start(self, model: Vector, server: Server) -> AdamState:
        return AdamState(model, torch.zeros_like(model), torch.full_like(model, self.tau**2))

    def round(self, state: AdamState, clients: Clients, server: Server) -> AdamState:
        replies = clients.run(self.local, Sent(model=state.model))
        d = mean(replies, self.weights).change
        m = self.beta1 * state.first + (1 - self.beta1) * d
        v = self.beta2 * state.second + (1 - self.beta2) * d**2
        return AdamState(state.model + self.global_lr * m / (v**0.5 + self.tau), m, v)

    def local(self, client: Client, sent: Sent) -> Upload:
        return Upload(change=client.descend(sent.model, self.client).change)
