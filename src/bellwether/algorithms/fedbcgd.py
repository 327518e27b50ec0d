from dataclasses import dataclass

import torch

from bellwether.algorithms.block_coordinates import BlockCoordinates
from bellwether.algorithms.fedavgm import MomentumState
from bellwether.core.algorithm import Clients, Sent, Upload
from bellwether.core.blocks import add, take
from bellwether.core.participants import Client, Server
from bellwether.core.vector import Vector


@dataclass(frozen=True)
class FedBCGD(BlockCoordinates):
    """FedBCGD: all train the whole model, each sends one block of it (Liu et al. 2024, Alg. 1).

    v <- b v + (mean - x) and x <- x + v, block by block: the heavy-ball form of eq. 42-43 and
    Lemma 10, which the proofs use (the listing adds v to the mean). A block that nobody answered
    for keeps its value.
    """

    def start(self, model: Vector, server: Server) -> MomentumState:
        return MomentumState(model, torch.zeros_like(model))

    def round(self, state: MomentumState, clients: Clients, server: Server) -> MomentumState:
        x = state.model
        replies = clients.run(self.local, Sent(model=x))
        total, count = torch.zeros_like(x), torch.zeros_like(x)
        for reply in replies:
            part, weight = self.part(reply.position), self.weight(reply)
            add(total, part, weight * reply.change)
            add(count, part, weight)
        v = self.momentum * state.velocity + total / count.clamp(min=1)
        return MomentumState(torch.where(count > 0, x + v, x), v)

    def local(self, client: Client, sent: Sent) -> Upload:
        change = client.descend(sent.model, self.client).change
        return Upload(take(change, self.part(client.position)))
