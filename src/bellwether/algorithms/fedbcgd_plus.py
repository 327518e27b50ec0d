from dataclasses import dataclass

import torch

from bellwether.algorithms.block_coordinates import BlockCoordinates
from bellwether.algorithms.fedavgm import MomentumState
from bellwether.algorithms.scaffold import Controlled, ControlState, Memory
from bellwether.core.algorithm import Clients
from bellwether.core.blocks import add, take
from bellwether.core.participants import Client, Server
from bellwether.core.vector import Vector


@dataclass(frozen=True)
class BlockState(MomentumState):
    control: Vector  # c = mean of all c_i


@dataclass(frozen=True)
class FedBCGDPlus(BlockCoordinates[BlockState]):
    """FedBCGD+: FedBCGD with variance reduction at the clients (Liu et al. 2024, Algorithm 2).

    The step is g(y; z) - g(x; z) + grad f_i(x) + c - c_i, z the same mini-batch twice, with the
    signs of the proof (after eq. 77). Then c_i <- grad f_i(x) on what the client sends only
    (eq. 72): the listing overwrites all of c_i, which loses c = mean c_i. c <- c + (1/N) sum.
    """

    memory = Memory

    def start(self, model: Vector, server: Server) -> BlockState:
        return BlockState(model, torch.zeros_like(model), torch.zeros_like(model))

    def round(self, state: BlockState, clients: Clients, server: Server) -> BlockState:
        x, c = state.model, state.control.clone()
        replies = clients.run(self.local, ControlState(x, state.control))
        total, count = torch.zeros_like(x), torch.zeros_like(x)
        for reply in replies:
            part, weight = self.part(reply.position), self.weight(reply)
            add(total, part, weight * reply.change)
            add(count, part, weight)
            add(c, part, reply.control / clients.population)
        v = self.momentum * state.velocity + total / count.clamp(min=1)
        return BlockState(torch.where(count > 0, x + v, x), v, c)

    def local(self, client: Client, sent: ControlState) -> Controlled:
        x, c, c_i = sent.model, sent.control, client.memory.control
        full = client.gradient(x)  # grad f_i(x)
        push, part = full + c - c_i, self.part(client.position)
        change = client.descend(x, self.client, lambda _, batch: push - batch.gradient(x)).change
        difference = take(full - c_i, part)
        new = c_i.clone()
        add(new, part, difference)
        client.memory = Memory(new)
        return Controlled(take(change, part), difference)
