from dataclasses import KW_ONLY, dataclass

from bellwether.core.algorithm import Algorithm, Clients, Sent, State, Upload, Weights, mean
from bellwether.core.errors import check_probability
from bellwether.core.participants import Client, Server
from bellwether.core.sgd import SGD


@dataclass(frozen=True)
class Safari(Algorithm):
    """SAFARI: client rounds with probability q, server rounds otherwise (Yang et al. 2024, Alg. 1).

    A client round is x <- mean y_i; in a server round the server descends and no client is asked.
    One SGD step a server round, as printed, is `server=SGD(lr, steps=1, ...)`; an epoch fits the
    printed tables better.
    """

    client: SGD
    server: SGD
    _: KW_ONLY
    q: float = 0.8
    weights: Weights = "uniform"

    def __post_init__(self) -> None:
        check_probability(q=self.q)

    @property
    def needs_server_data(self) -> bool:
        return self.q < 1 and super().needs_server_data

    def round(self, state: State, clients: Clients, server: Server) -> State:
        x = state.model
        if server.rng.random() < self.q:
            replies = clients.run(self.local, Sent(model=x))
            return State(model=x + mean(replies, self.weights).change)
        return State(model=server.descend(x, self.server).end)

    def local(self, client: Client, sent: Sent) -> Upload:
        return Upload(change=client.descend(sent.model, self.client).change)
