from dataclasses import KW_ONLY, dataclass

import torch

from bellwether.core.algorithm import Algorithm, Clients, Sent, State, Upload
from bellwether.core.participants import Client, Server
from bellwether.core.sgd import SGD
from bellwether.core.vector import dot, norm


@dataclass(frozen=True)
class FLTrust(Algorithm):
    """FLTrust: clients count as far as they agree with the server (Cao et al. 2021, Algorithm 2).

    D_0 is the server's own change, s_i = max(0, cos(Delta_i, D_0)), and
    x <- x + eta_g sum s_i (|D_0| / |Delta_i|) Delta_i / sum s_i.
    """

    client: SGD
    server: SGD
    _: KW_ONLY
    global_lr: float = 1.0

    def round(self, state: State, clients: Clients, server: Server) -> State:
        x = state.model
        replies = clients.run(self.local, Sent(model=x))
        root = server.descend(x, self.server).change  # D_0
        total, trust = torch.zeros_like(x), torch.zeros_like(x.sum())
        for reply in replies:
            size = norm(reply.change)
            aligned = dot(reply.change, root).clamp(min=0)  # s_i |Delta_i| |D_0|
            scale = size * norm(root)
            s = torch.where(scale > 0, aligned / scale, 0)
            total = total + torch.where(size > 0, s * norm(root) / size, 0) * reply.change
            trust = trust + s
        return State(x + self.global_lr * torch.where(trust > 0, total / trust, 0))

    def local(self, client: Client, sent: Sent) -> Upload:
        return Upload(change=client.descend(sent.model, self.client).change)
