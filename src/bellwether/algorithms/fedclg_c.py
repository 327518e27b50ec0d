from dataclasses import KW_ONLY, dataclass

from bellwether.core.algorithm import Algorithm, Clients, Sent, State, Upload, Weights, mean
from bellwether.core.participants import Client, Data, Server
from bellwether.core.sgd import SGD


@dataclass(frozen=True)
class FedCLGC(Algorithm):
    """FedCLG-C: the server's gradient corrects every local step (Bian et al. 2024, eq. 10)."""

    client: SGD
    server: SGD
    _: KW_ONLY
    global_lr: float = 1.0
    gradient: Data = "full"
    weights: Weights = "uniform"
    needs_server_data = True

    def round(self, state: State, clients: Clients, server: Server) -> State:
        x = state.model
        guide = server.gradient(x, self.gradient)  # g_s
        replies = clients.run(self.local, Sent(model=x, guide=guide))
        x = x + self.global_lr * mean(replies, self.weights).change  # eq. 4
        return State(model=server.descend(x, self.server).end)  # eq. 5

    def local(self, client: Client, sent: Sent) -> Upload:
        correction = sent.guide - client.gradient(sent.model, self.gradient)  # g_s - g_i
        return Upload(change=client.descend(sent.model, self.client, correction).change)
