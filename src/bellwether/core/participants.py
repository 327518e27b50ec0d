"""The two kinds of participants that a method sees: a client and the server."""

from collections.abc import Iterator
from functools import cached_property
from typing import Any, Literal

import numpy as np

from bellwether.core import streams
from bellwether.core.dataset import Samples
from bellwether.core.errors import InputError
from bellwether.core.interfaces import Federation
from bellwether.core.sgd import SGD, Correction, Descent, batches, descend
from bellwether.core.vector import Vector
from bellwether.core.workspace import Space, Workspace

Data = Literal["full", "batch"]
"""What a gradient is taken over: all data, or one mini-batch."""


class Participant:
    """Somebody who holds data and can compute on it, in one task.

    `buffers` starts as the global model's and follows this participant's descents.
    """

    def __init__(
        self, space: Space, buffers: Vector, chunk: int | None, seed: int, *address: int
    ) -> None:
        self.buffers = buffers
        self._space = space
        self._chunk = chunk
        self._seed = seed
        self._address = address
        self._descents = 0
        self._passes = 0

    data: Any
    """What this participant holds, on the device that computes."""

    @property
    def samples(self) -> int:
        """n, how many samples this participant holds."""
        return int(self.data.size)

    def steps(self, sgd: SGD) -> int:
        """K, how many steps this descent takes here."""
        return sgd.local_steps(self.samples)

    def gradient(self, x: Vector, over: Data = "full") -> Vector:
        """grad f(x) over all data, or over the first mini-batch of the coming descent.

        Taken in training mode, in chunks of the batch size; statistics are not kept.
        """
        self._prepare(x)
        if over == "full":
            return self._space.mean_gradient(self.data, self._chunk)
        first = next(self._batches(SGD(0.0, steps=1, batch_size=self._chunk)))
        return self._space.mean_gradient(first, None)

    def descend(self, x: Vector, sgd: SGD, correction: Correction | None = None) -> Descent:
        """Take `sgd`'s steps from x; `correction` is added to each step's gradient."""
        self._prepare(x)
        rate = sgd.rate(self._address[0])
        steps = descend(self._space, self._batches(sgd), sgd, rate, correction)
        self._descents += 1
        self.buffers = self._space.read_buffers()
        return Descent(x, self._space.parameters.clone(), steps, rate)

    def _batches(self, sgd: SGD) -> Iterator[Any]:
        """The mini-batches of the coming descent."""
        order = streams.key(self._seed, "batches", *self._address, self._descents)
        return batches(self.data, sgd, order)

    def _prepare(self, x: Vector) -> None:
        self._space.load(x, self.buffers)
        streams.seed_torch(self._seed, "noise", *self._address, self._passes)
        self._passes += 1


class Client(Participant):
    """A client at work on one task; the address is (round, exchange, id)."""

    memory: Any
    """What the client keeps between its rounds, if its method declares it; assign to change."""
    position: int
    """Its place in the cohort, from 0."""

    def __init__(
        self,
        space: Workspace,
        buffers: Vector,
        chunk: int | None,
        seed: int,
        *address: int,
        data: Samples,
        memory: Any,
        position: int,
    ) -> None:
        super().__init__(space, buffers, chunk, seed, *address)
        self.data = space.admit(data)
        self.memory = memory
        self.position = position


class Server(Participant):
    """The server in one round: it holds a little data and it learns too."""

    def __init__(
        self,
        space: Workspace,
        buffers: Vector,
        chunk: int | None,
        seed: int,
        round: int,
        federation: Federation,
    ) -> None:
        super().__init__(space, buffers, chunk, seed, round, 0, streams.SERVER)
        self._admit = space.admit
        self._federation = federation

    @cached_property
    def data(self) -> Samples:
        if not self._federation.has_server_data:
            raise InputError(
                "this method needs data at the server and the federation has none; give"
                " federate(..., server=server_data.Sample(samples=100)) or"
                " Federation.from_arrays(..., server=(X, y))"
            )
        return self._admit(self._federation.server(self._address[0]))

    @cached_property
    def rng(self) -> np.random.Generator:
        """The stream for a method's own draws in this round."""
        return streams.generator(self._seed, "method", self._address[0])

    def descend(self, x: Vector, sgd: SGD, correction: Correction | None = None) -> Descent:
        """As every participant; without steps or at rate 0 nothing happens, no data is read."""
        rate = sgd.rate(self._address[0])
        if sgd.steps == 0 or sgd.epochs == 0 or rate == 0:
            return Descent(x, x, 0, rate)
        return super().descend(x, sgd, correction)
