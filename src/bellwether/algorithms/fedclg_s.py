from dataclasses import KW_ONLY, dataclass

from bellwether.core.algorithm import Algorithm, Clients, Sent, State, Upload, mean
from bellwether.core.participants import Client, Server
from bellwether.core.sgd import SGD


@dataclass(frozen=True)
class FedCLGS(Algorithm):
    """FedCLG-S: the server's gradient corrects the aggregate (Bian et al. 2024, eq. 11)."""

    client: SGD
    server: SGD
    _: KW_ONLY
    global_lr: float = 1.0

    def round(self, state: State, clients: Clients, server: Server) -> State:
        x = state.model
        replies = clients.run(self.local, Sent(model=x))
        guide = server.gradient(x)  # g_s, while the clients train
        corrected = (r.change - r.steps * r.lr * (guide - r.gradient) for r in replies)
        x = x + self.global_lr * mean(corrected)  # eq. 11
        return State(model=server.descend(x, self.server).end)  # eq. 5

    def local(self, client: Client, sent: Sent) -> Upload:
        gradient = client.gradient(sent.model)  # g_i
        descent = client.descend(sent.model, self.client)
        return Upload(descent.change, gradient, descent.steps, descent.lr)
