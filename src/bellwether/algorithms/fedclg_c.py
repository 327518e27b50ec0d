from dataclasses import KW_ONLY, dataclass
from typing import Literal

from bellwether.core.algorithm import Algorithm, Clients, Sent, State, Upload, Weights, mean
from bellwether.core.participants import Client, Server
from bellwether.core.sgd import SGD


@dataclass(frozen=True)
class FedCLGC(Algorithm):
    """FedCLG-C: the server's gradient corrects every local step (Bian et al. 2024, eq. 10)."""

    client: SGD
    server: SGD
    _: KW_ONLY
    global_lr: float = 1.0
    gradient: Literal["full", "batch"] = "full"
    weights: Weights = "uniform"

    def round(self, state: State, clients: Clients, server: Server) -> State:
        x = state.model
        guide = server.gradient(x, self.server if self.gradient == "batch" else None)  # g_s
        replies = clients.run(self.local, Sent(model=x, guide=guide))
        x = x + self.global_lr * mean(replies, self.weights).change  # eq. 4
        return State(model=server.descend(x, self.server).end)  # eq. 5

    def local(self, client: Client, sent: Sent) -> Upload:
        own = client.gradient(sent.model, self.client if self.gradient == "batch" else None)  # g_i
        return Upload(change=client.descend(sent.model, self.client, sent.guide - own).change)
