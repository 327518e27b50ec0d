from dataclasses import dataclass

from bellwether.algorithms.server_learning import ServerLearning
from bellwether.core.algorithm import Clients, Sent, State, mean
from bellwether.core.participants import Server


@dataclass(frozen=True)
class FSLP(ServerLearning):
    """FSL-p, the non-incremental form: the server is one more client, with more weight.

    x <- x + (eta_g mean Delta + gamma Delta_0) / (1 + gamma), where Delta_0 is the change of the
    server's own training from x. The paper (Mai et al., Section II) gives no formula: this is our
    reading.
    """

    def round(self, state: State, clients: Clients, server: Server) -> State:
        x, gamma = state.model, self.weight
        replies = mean(clients.run(self.local, Sent(model=x)), self.weights)
        total = self.step(replies) * replies.change
        if gamma:
            sgd = self.server_pass(replies, clients, server)
            total = total + gamma * server.descend(x, sgd).change
        return State(x + total / (1 + gamma))
