from dataclasses import KW_ONLY, dataclass

from bellwether.core.algorithm import Algorithm, Clients, Sent, State, Upload, Weights, mean
from bellwether.core.participants import Client, Server
from bellwether.core.sgd import SGD


@dataclass(frozen=True)
class CLGSGD(Algorithm):
    """CLG-SGD: FedAvg's step, then the server descends (Bian et al. 2024, eq. 3-5)."""

    client: SGD
    server: SGD
    _: KW_ONLY
    global_lr: float = 1.0
    weights: Weights = "uniform"

    def round(self, state: State, clients: Clients, server: Server) -> State:
        x = state.model
        replies = clients.run(self.local, Sent(model=x))
        x = x + self.global_lr * mean(replies, self.weights).change  # eq. 4
        return State(model=server.descend(x, self.server).end)  # eq. 5

    def local(self, client: Client, sent: Sent) -> Upload:
        return Upload(change=client.descend(sent.model, self.client).change)  # eq. 3
