from dataclasses import KW_ONLY, dataclass, replace
from typing import Literal

from bellwether.algorithms.scaffold import Controlled, ControlState, Memory, Scaffold
from bellwether.core.algorithm import Algorithm, Clients, Weights
from bellwether.core.participants import Client, Server
from bellwether.core.sgd import SGD
from bellwether.core.vector import Vector


@dataclass(frozen=True)
class ScaffoldPlus(Algorithm[ControlState]):
    """SCAFFOLD+: SCAFFOLD's round, then the server descends (Bian et al. 2024, Section VI-A)."""

    client: SGD
    server: SGD
    _: KW_ONLY
    global_lr: float = 1.0
    option: Literal[1, 2] = 2
    weights: Weights = "uniform"
    memory = Memory

    @property
    def scaffold(self) -> Scaffold:
        return Scaffold(
            self.client, global_lr=self.global_lr, option=self.option, weights=self.weights
        )

    def start(self, model: Vector, server: Server) -> ControlState:
        return self.scaffold.start(model, server)

    def round(self, state: ControlState, clients: Clients, server: Server) -> ControlState:
        state = self.scaffold.round(state, clients, server)
        return replace(state, model=server.descend(state.model, self.server).end)

    def local(self, client: Client, sent: ControlState) -> Controlled:
        return self.scaffold.local(client, sent)
