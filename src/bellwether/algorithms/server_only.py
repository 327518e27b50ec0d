from dataclasses import dataclass

from bellwether.core.algorithm import Algorithm, Clients, State
from bellwether.core.participants import Server
from bellwether.core.sgd import SGD


@dataclass(frozen=True)
class ServerOnly(Algorithm):
    """Server only: x <- descend(x) on the server's data; no client is asked."""

    server: SGD

    def round(self, state: State, clients: Clients, server: Server) -> State:
        return State(model=server.descend(state.model, self.server).end)
