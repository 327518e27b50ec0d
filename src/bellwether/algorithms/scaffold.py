from dataclasses import KW_ONLY, dataclass
from typing import Literal

import torch

from bellwether.core.algorithm import Algorithm, Clients, State, Weights, mean
from bellwether.core.participants import Client, Server
from bellwether.core.sgd import SGD, check_moves
from bellwether.core.vector import Vector


@dataclass(frozen=True)
class ControlState(State):
    control: Vector  # c = mean of all c_i


@dataclass(frozen=True)
class Controlled:
    change: Vector  # Delta_i
    control: Vector  # c_i' - c_i


@dataclass(frozen=True)
class Memory:
    control: Vector  # c_i


@dataclass(frozen=True)
class Scaffold(Algorithm[ControlState]):
    """SCAFFOLD: control variates correct every local step (Karimireddy et al. 2020, Algorithm 1).

    y <- y - eta (g(y) + c - c_i); then c_i' = c_i - c + (x - y) / (K eta), or grad f_i(x) in
    option 1; x <- x + eta_g mean Delta; c <- c + (1/N) sum (c_i' - c_i).
    """

    client: SGD
    _: KW_ONLY
    global_lr: float = 1.0
    option: Literal[1, 2] = 2
    weights: Weights = "uniform"
    memory = Memory

    def __post_init__(self) -> None:
        check_moves(self.client)

    def start(self, model: Vector, server: Server) -> ControlState:
        return ControlState(model, torch.zeros_like(model))

    def round(self, state: ControlState, clients: Clients, server: Server) -> ControlState:
        replies = mean(clients.run(self.local, state), self.weights)
        c = state.control + replies.sum.control / clients.population
        return ControlState(state.model + self.global_lr * replies.change, c)

    def local(self, client: Client, sent: ControlState) -> Controlled:
        x, c, c_i = sent.model, sent.control, client.memory.control
        full = client.gradient(x) if self.option == 1 else None
        descent = client.descend(x, self.client, c - c_i)
        new = c_i - c - descent.change / descent.travel if full is None else full
        client.memory = Memory(new)
        return Controlled(descent.change, new - c_i)
