from dataclasses import KW_ONLY, dataclass
from typing import Literal

from bellwether.core.algorithm import Algorithm, Clients, Sent, State, Upload, Weights, mean
from bellwether.core.errors import InputError
from bellwether.core.participants import Client, Data, Server
from bellwether.core.sgd import SGD


@dataclass(frozen=True)
class FedCLGS(Algorithm):
    """FedCLG-S: the server's gradient corrects the aggregate (Bian et al. 2024, eq. 11).

    x <- x + eta_g mean_i (Delta_i - K eta (g_s - g_i)), then the server descends. K counts steps,
    as the derivation needs, or epochs, as the paper's experiments may have it.
    """

    client: SGD
    server: SGD
    _: KW_ONLY
    global_lr: float = 1.0
    gradient: Data = "full"
    count: Literal["steps", "epochs"] = "steps"
    weights: Weights = "uniform"
    needs_server_data = True

    def __post_init__(self) -> None:
        if self.count == "epochs" and self.client.epochs is None:
            raise InputError("FedCLGS(count='epochs') needs a client SGD with epochs")

    def round(self, state: State, clients: Clients, server: Server) -> State:
        x = state.model
        replies = clients.run(self.local, Sent(model=x))
        guide = server.gradient(x, self.gradient)  # g_s
        x = x + self.global_lr * mean(
            replies, self.weights, of=lambda r: r.change - r.steps * r.lr * (guide - r.gradient)
        )  # eq. 11
        return State(model=server.descend(x, self.server).end)  # eq. 5

    def local(self, client: Client, sent: Sent) -> Upload:
        gradient = client.gradient(sent.model, self.gradient)  # g_i
        descent = client.descend(sent.model, self.client)
        k = descent.steps if self.count == "steps" else self.client.epochs or 0
        return Upload(descent.change, gradient, k, descent.lr)
