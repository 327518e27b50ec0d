import math
from dataclasses import KW_ONLY, dataclass, replace

from bellwether.core.algorithm import Algorithm, Clients, Mean, Sent, State, Upload, Weights
from bellwether.core.errors import InputError, check_not_negative
from bellwether.core.participants import Client, Server
from bellwether.core.sgd import SGD
from bellwether.core.vector import Vector


@dataclass(frozen=True)
class ServerLearning(Algorithm):
    """What FSL and FSL-p share: the pre-training, the clients, and how the server learns.

    The server takes K_0 steps at the rate eta_0 with K_0 eta_0 = K eta_g eta (Mai et al., eq. 11)
    in ceil(E_c n / (N n_0)) epochs, unless `server` names epochs or steps, and with
    `derive_rate=False` its rate too. eta_g is sqrt(M) by default.
    """

    client: SGD
    server: SGD | None = None
    _: KW_ONLY
    weight: float = 1.0
    global_lr: float | None = None
    derive_rate: bool = True
    pretrain: SGD | None = None
    weights: Weights = "uniform"

    def __post_init__(self) -> None:
        if self.server is None and self.client.epochs is None:
            raise InputError("the server's epochs follow the clients': give these, or server")
        check_not_negative(weight=self.weight)

    @property
    def needs_server_data(self) -> bool:
        return bool(self.weight or self.pretrain)

    def start(self, model: Vector, server: Server) -> State:
        return State(server.descend(model, self.pretrain).end if self.pretrain else model)

    def local(self, client: Client, sent: Sent) -> Upload:
        descent = client.descend(sent.model, self.client)
        return Upload(change=descent.change, steps=descent.steps, lr=descent.lr)

    def step(self, replies: Mean) -> float:
        """eta_g."""
        return math.sqrt(replies.count) if self.global_lr is None else self.global_lr

    def server_pass(self, replies: Mean, clients: Clients, server: Server) -> SGD:
        """The server's descent, at the rate eta_0."""
        sgd = self.server
        if sgd is None:
            assert self.client.epochs is not None
            passes = self.client.epochs * clients.samples / clients.population
            sgd = replace(self.client, epochs=math.ceil(passes / server.samples))
        if not self.derive_rate or not server.steps(sgd):
            return sgd
        travel = replies.sum.steps / max(replies.count, 1) * replies.lr * self.step(replies)
        return replace(sgd, lr=travel / server.steps(sgd), decay=1.0, min_lr=0.0)
