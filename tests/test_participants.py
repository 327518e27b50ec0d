"""Clients and the server: gradients, descents, statistics, streams."""

from dataclasses import dataclass, field

import pytest
import torch
from torch import Tensor, nn

from bellwether.core.dataset import Samples
from bellwether.core.errors import InputError
from bellwether.core.participants import Client, Participant, Server
from bellwether.core.sgd import SGD
from bellwether.core.vector import Vector
from bellwether.core.workspace import Workspace, squared_error

BATCHED = SGD(0.1, epochs=2, batch_size=4)


class Spy(nn.Module):
    """Passes its input on and keeps what it saw."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Tensor] = []

    def forward(self, x: Tensor) -> Tensor:
        self.seen.append(x.clone())
        return x


@dataclass
class Holder:
    """A federation of one client whose server holds other samples each round."""

    has_server_data: bool = True
    population: int = 1
    test: Samples | None = None
    asked: list[int] = field(default_factory=list)

    def client(self, client: int) -> Samples:
        return rows(0)

    def server(self, round: int) -> Samples:
        self.asked.append(round)
        return rows(round)


def rows(seed: int, count: int = 11) -> Samples:
    draw = torch.Generator().manual_seed(seed)
    inputs = torch.randn(count, 3, generator=draw, dtype=torch.float64)
    return Samples(inputs, torch.randn(count, 2, generator=draw, dtype=torch.float64))


def space(*layers: nn.Module) -> Workspace:
    module = nn.Sequential(nn.Linear(3, 5), *layers, nn.Tanh(), nn.Linear(5, 2)).double()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.linspace(-1, 1, parameter.numel()).reshape(parameter.shape))
    return Workspace(module, squared_error)


def normalised() -> Workspace:
    return space(nn.BatchNorm1d(5))


def noisy() -> Workspace:
    return space(nn.BatchNorm1d(5), nn.Dropout(0.5))


def client(
    space: Workspace, *address: int, seed: int = 0, chunk: int | None = None, data: int = 0
) -> Client:
    return Client(
        space,
        space.read_buffers(),
        chunk,
        seed,
        *(address or (1, 0, 0)),
        data=rows(data),
        memory=None,
        position=0,
    )


def server(space: Workspace, holder: Holder | None = None, round: int = 1, seed: int = 0) -> Server:
    return Server(space, space.read_buffers(), None, seed, round, holder or Holder())


def start(space: Workspace) -> Vector:
    return space.parameters.clone()


def full_gradient(space: Workspace, data: Samples) -> Vector:
    module = space.module
    slopes = torch.autograd.grad(
        squared_error(module(data.inputs), data.targets), list(module.parameters())
    )
    return torch.cat([slope.flatten() for slope in slopes])


@pytest.mark.parametrize("chunk", [None, 1, 4, 11])
def test_the_gradient_is_that_of_all_data(chunk):
    mine = client(space(), chunk=chunk)
    x = start(mine._space) + 0.1
    gradient = mine.gradient(x)
    assert (gradient - full_gradient(mine._space, rows(0))).abs().max() < 1e-14
    assert gradient.data_ptr() != mine._space.gradient.data_ptr()  # the caller's own
    assert mine.samples == 11


def test_a_batchs_gradient_is_that_of_the_first_step_to_come():
    mine = client(space(Spy()), chunk=4)
    seen = mine._space.module[1].seen
    x = start(mine._space)
    one_step = SGD(1.0, steps=1, batch_size=4, weight_decay=0.0)
    for _ in range(2):  # before the first descent, and before the second
        seen.clear()
        gradient = mine.gradient(x, over="batch")
        assert mine.gradient(x, over="batch").equal(gradient)
        descent = mine.descend(x, one_step)
        assert torch.equal(seen[0], seen[-1])
        assert len(seen[0]) == 4
        assert (descent.change + gradient).abs().max() < 1e-15
    assert not torch.equal(mine.gradient(x, over="batch"), gradient)  # the third has its own


def test_gradients_keep_no_statistics():
    asked, silent = client(normalised()), client(normalised())
    x, buffers = start(asked._space), asked.buffers.clone()
    asked.gradient(x)
    asked.gradient(x, over="batch")
    assert torch.equal(asked.buffers, buffers)
    after = [mine.descend(x, BATCHED).end for mine in (asked, silent)]
    assert torch.equal(*after)
    assert torch.equal(asked.buffers, silent.buffers)
    assert not torch.equal(asked.buffers, buffers)


def test_statistics_follow_the_descents():
    """Two descents of one full-batch step, one after the other, are one of two steps."""
    twice, once = client(normalised()), client(normalised())
    x = start(twice._space)
    middle = twice.descend(x, SGD(0.1, steps=1))
    end = twice.descend(middle.end, SGD(0.1, steps=1)).end
    whole = once.descend(x, SGD(0.1, steps=2))
    assert torch.equal(end, whole.end)
    assert torch.equal(twice.buffers, once.buffers)
    assert torch.equal(whole.start, x)
    assert (whole.steps, whole.lr, middle.steps) == (2, 0.1, 1)


def test_the_rate_is_that_of_the_round():
    sgd = SGD(0.4, steps=1, decay=0.5, min_lr=0.15)
    rates = []
    for round in (1, 2, 3):
        mine = client(space(), round, 0, 0)
        x = start(mine._space)
        descent = mine.descend(x, sgd)
        assert (descent.change + descent.lr * mine.gradient(x)).abs().max() < 1e-15
        rates.append(descent.lr)
    assert rates == [0.4, 0.2, 0.15]


def test_a_correction_of_minus_the_gradient_holds_still():
    mine = client(space())
    x = start(mine._space)
    assert mine.descend(x, SGD(0.1, steps=1), -mine.gradient(x)).change.count_nonzero() == 0


def everything(mine: Participant, x: Vector) -> Vector:
    descent = mine.descend(x, BATCHED)
    return torch.cat([mine.gradient(x), descent.end, mine.descend(x, BATCHED).end, mine.buffers])


def test_a_task_depends_on_its_name_alone():
    """Not on torch's random state, nor on who used the workspace before; dropout included."""
    shared = noisy()
    x, buffers = start(shared), shared.read_buffers()
    torch.default_generator.manual_seed(1)
    expected = everything(client(noisy()), x)
    torch.default_generator.manual_seed(2)
    everything(client(shared, 5, 0, 7, data=9), x)  # somebody else's task
    shared.load(x, buffers)
    assert torch.equal(everything(client(shared), x), expected)


@pytest.mark.parametrize("other", [(2, 0, 0), (1, 1, 0), (1, 0, 1)])
def test_every_round_exchange_and_client_has_its_own_draws(other):
    plain = [client(space(), *address) for address in ((1, 0, 0), other)]
    x = start(plain[0]._space)
    assert not torch.equal(*(mine.descend(x, BATCHED).end for mine in plain))  # mini-batches
    masked = [client(noisy(), *address) for address in ((1, 0, 0), other)]
    x = start(masked[0]._space)
    assert not torch.equal(*(mine.gradient(x) for mine in masked))  # dropout
    assert not torch.equal(masked[0].gradient(x), masked[0].gradient(x))
    seeds = [client(space(), *other, seed=seed) for seed in (0, 1)]
    x = start(seeds[0]._space)
    assert not torch.equal(*(mine.descend(x, BATCHED).end for mine in seeds))


def test_data_are_taken_in_the_models_precision():
    mine = Client(
        Workspace(nn.Linear(3, 2), squared_error), torch.zeros(0), None, 0, 1, 0, 0,
        data=rows(0), memory="kept", position=4,
    )  # fmt: skip
    assert mine.data.inputs.dtype == mine.gradient(start(mine._space)).dtype == torch.float32
    assert (mine.memory, mine.position) == ("kept", 4)


def test_steps_are_known_before_they_are_taken():
    mine = client(space())
    x = start(mine._space)
    for sgd in (BATCHED, SGD(0.1, epochs=3), SGD(0.1, steps=5, batch_size=2), SGD(0.1, steps=0)):
        assert mine.steps(sgd) == mine.descend(x, sgd).steps


def test_the_server_holds_other_samples_each_round():
    holder = Holder()
    for round in (1, 2):
        mine = server(space(), holder, round)
        gradient = mine.gradient(start(mine._space))
        assert (gradient - full_gradient(mine._space, rows(round))).abs().max() < 1e-15
        mine.descend(start(mine._space), BATCHED)
    assert holder.asked == [1, 2]  # once a round


def test_a_server_without_data_says_how_to_give_some():
    mine = server(space(), Holder(has_server_data=False))
    x = start(mine._space)
    for act in (
        lambda: mine.data,
        lambda: mine.samples,
        lambda: mine.steps(BATCHED),
        lambda: mine.gradient(x),
        lambda: mine.descend(x, BATCHED),
    ):
        with pytest.raises(InputError, match=r"server=server_data.Sample\(samples=100\)"):
            act()


@pytest.mark.parametrize(
    "sgd",
    [
        SGD(0.1, steps=0),
        SGD(0.1, epochs=0, batch_size=2),
        SGD(0.0, epochs=2),
        SGD(0.1, epochs=2, decay=1e-200),  # 1e-401 in round 3, which is 0
    ],
)
def test_a_server_that_does_not_step_needs_no_data(sgd):
    mine = server(normalised(), Holder(has_server_data=False), round=3)
    x, buffers = start(mine._space), mine.buffers.clone()
    descent = mine.descend(x, sgd)
    assert torch.equal(descent.end, x)
    assert descent.travel == 0
    assert descent.change.count_nonzero() == 0
    assert torch.equal(mine.buffers, buffers)


def test_the_servers_own_draws():
    def draws(round: int, seed: int) -> list[float]:
        mine = server(space(), round=round, seed=seed)
        return [*mine.rng.random(2).tolist(), mine.rng.random()]  # one stream, going on

    assert draws(1, 0) == draws(1, 0)
    assert len({*draws(1, 0), *draws(2, 0), *draws(1, 1)}) == 9
