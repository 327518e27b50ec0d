"""Samples that some clients contribute."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bellwether.core.errors import InputError
from bellwether.federation.checks import distinct, is_list, whole
from bellwether.federation.labels import draw
from bellwether.federation.server_data.base import Holdings, Pool, ServerData


@dataclass(frozen=True)
class FromClients(ServerData):
    """`samples` of each of some clients' own, who keep them (FSL, scenario 2: c x s).

    `clients` is how many, drawn from the seed, or a list of their ids. Where clients hold few
    labels, so does the server: a label may be missing.
    """

    clients: int | Sequence[int]
    samples: int

    def __post_init__(self) -> None:
        clients = (
            tuple(sorted(distinct(self.clients, "the clients that contribute")))
            if is_list(self.clients)
            else whole(self.clients, "clients that contribute", 1)
        )
        object.__setattr__(self, "clients", clients)
        object.__setattr__(self, "samples", whole(self.samples, "samples per client", 1))
        if not clients:
            raise InputError("FromClients needs at least one client")

    def pool(self, held: Holdings, rng: np.random.Generator) -> Pool:
        population = len(held.clients)
        if isinstance(self.clients, int):
            if self.clients > population:
                raise InputError(
                    f"{self} asks for {self.clients} clients, but there are {population}"
                )
            chosen = draw(np.arange(population), self.clients, rng).tolist()
        else:
            chosen = self.clients
            if chosen[-1] >= population:
                raise InputError(
                    f"client {chosen[-1]}, which contributes to the server's data, does not exist;"
                    f" the ids are 0 .. {population - 1}"
                )
        for client in chosen:
            if len(held.clients[client]) < self.samples:
                raise InputError(
                    f"client {client} holds {len(held.clients[client])} samples and cannot "
                    f"contribute {self.samples}; ask for fewer"
                )
        drawn = [draw(held.clients[client], self.samples, rng) for client in chosen]
        return Pool(np.sort(np.concatenate(drawn)))
