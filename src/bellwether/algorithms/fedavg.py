from dataclasses import KW_ONLY, dataclass

from bellwether.core.algorithm import Algorithm, Clients, Sent, State, Upload, Weights, mean
from bellwether.core.participants import Client, Server
from bellwether.core.sgd import SGD


@dataclass(frozen=True)
class FedAvg(Algorithm):
    """FedAvg: x <- x + eta_g mean_i Delta_i (McMahan et al. 2017)."""

    client: SGD
    _: KW_ONLY
    global_lr: float = 1.0
    weights: Weights = "uniform"

    def round(self, state: State, clients: Clients, server: Server) -> State:
        x = state.model
        replies = clients.run(self.local, Sent(model=x))
        return State(model=x + self.global_lr * mean(replies, self.weights).change)

    def local(self, client: Client, sent: Sent) -> Upload:
        return Upload(change=client.descend(sent.model, self.client).change)
