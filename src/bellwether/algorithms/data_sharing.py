from dataclasses import KW_ONLY, dataclass

from bellwether.core.algorithm import Algorithm, Clients, Sent, State, Upload, Weights, mean
from bellwether.core.participants import Client, Server
from bellwether.core.sgd import SGD
from bellwether.core.vector import Vector


@dataclass(frozen=True)
class DataSharing(Algorithm):
    """Data sharing: FedAvg where client i trains on D_i united with the server's D_0.

    (Zhao et al. 2018, as Mai et al. compare it.) By samples, client i weighs n_i + n_0.
    """

    client: SGD
    _: KW_ONLY
    global_lr: float = 1.0
    pretrain: SGD | None = None
    weights: Weights = "uniform"
    shares_server_data = True

    @property
    def needs_server_data(self) -> bool:
        return self.pretrain is not None

    def start(self, model: Vector, server: Server) -> State:
        return State(server.descend(model, self.pretrain).end if self.pretrain else model)

    def round(self, state: State, clients: Clients, server: Server) -> State:
        x = state.model
        replies = clients.run(self.local, Sent(model=x))
        return State(model=x + self.global_lr * mean(replies, self.weights).change)

    def local(self, client: Client, sent: Sent) -> Upload:
        return Upload(change=client.descend(sent.model, self.client).change)
