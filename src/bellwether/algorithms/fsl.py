from dataclasses import dataclass, replace

from bellwether.algorithms.server_learning import ServerLearning
from bellwether.core.algorithm import Clients, Sent, State, mean
from bellwether.core.participants import Server


@dataclass(frozen=True)
class FSL(ServerLearning):
    """FSL: FedAvg's step, then the server learns at the rate gamma eta_0 (Algorithm 1)."""

    def round(self, state: State, clients: Clients, server: Server) -> State:
        replies = mean(clients.run(self.local, Sent(model=state.model)), self.weights)
        x = state.model + self.step(replies) * replies.change
        if not self.weight:
            return State(x)
        sgd = self.server_pass(replies, clients, server)
        sgd = replace(sgd, lr=self.weight * sgd.lr, min_lr=self.weight * sgd.min_lr)
        return State(server.descend(x, sgd).end)
