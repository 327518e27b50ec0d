"""Clients side by side: the same numbers as one by one, for every method, to rounding."""

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional

from bellwether import (
    SGD,
    Federation,
    algorithms,
    compression,
    federate,
    participation,
    partition,
    train,
)
from bellwether.core.algorithm import Algorithm, Clients, Sent, State, Upload, mean
from bellwether.core.errors import ClientFailed, InputError
from bellwether.core.stacked.data import of_each
from bellwether.core.stacked.rule import groups
from bellwether.core.stacked.space import StackedSpace
from bellwether.core.vector import norm
from bellwether.core.workspace import Regularised, Workspace, squared_error
from bellwether.engines import Local

CLIENT = SGD(lr=0.1, epochs=2, batch_size=8, decay=0.95, weight_decay=1e-3)
SERVER = SGD(lr=0.05, steps=3, batch_size=8)
SIZES = [10, 14, 18, 5, 26, 30, 9, 16]
"""Samples of the clients: batches of one length, short ones, one batch only."""


def linear() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(6, 3))


def perceptron() -> nn.Module:
    return nn.Sequential(
        nn.Flatten(), nn.Linear(6, 9), nn.Tanh(), nn.Sequential(nn.Linear(9, 7, bias=False)),
        nn.ReLU(), nn.Identity(), nn.Linear(7, 5), nn.Sigmoid(), nn.Linear(5, 3),
    )  # fmt: skip


class Skipping(nn.Module):
    """No sequence of layers: for vmap."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.mix, self.head = nn.Linear(6, 8), nn.Linear(8, 8), nn.Linear(8, 3)
        self.scale = nn.Parameter(torch.ones(8), requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        h = functional.silu(self.embed(x.flatten(1)))
        outputs: Tensor = self.head(h + self.mix(h) * self.scale)
        return outputs


def convolution() -> nn.Module:
    return nn.Sequential(
        nn.Unflatten(1, (1, 2, 6)), nn.Conv2d(1, 4, (1, 3), padding=(0, 1)), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(12, 3),
    )  # fmt: skip


MODELS: dict[str, Callable[[], nn.Module]] = {
    "linear": linear,
    "perceptron": perceptron,
    "skipping": Skipping,
}


def holder(n: int, draw: torch.Generator, width: int = 6) -> tuple[Tensor, Tensor]:
    x = torch.randn(n, width, generator=draw, dtype=torch.float64)
    return x, (x[:, :3].argmax(1) + torch.randint(2, (n,), generator=draw)) % 3


def federation(width: int = 6) -> Federation:
    draw = torch.Generator().manual_seed(7)
    held = [holder(n, draw, width) for n in SIZES]
    return Federation.from_arrays(held, holder(20, draw, width), holder(12, draw, width))


def trained(algorithm: Algorithm[Any], model: Callable[[], nn.Module], **settings: Any) -> Tensor:
    seven = settings.pop("federation", None) or federation()
    batch_clients = settings.pop("batch_clients", 1)
    workers = settings.pop("workers", 1)
    return train(
        algorithm,
        seven,
        lambda: model().double(),
        4,
        participation=participation.Uniform(7),
        engine=Local(workers, batch_clients=batch_clients),
        eval_every=0,
        **settings,
    ).model


def apart(one: Tensor, other: Tensor) -> float:
    return float((one - other).norm() / one.norm())


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", algorithms.CATALOGUE)
def test_every_method(name: str, model: str) -> None:
    """Unequal clients, memories, corrections, weight decay, batches of unequal length."""
    method = algorithms.create(name, client=CLIENT, server=SERVER)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*looks at clients one by one")
        stacked = trained(method, MODELS[model], batch_clients=4)
    assert apart(trained(method, MODELS[model]), stacked) < 1e-12


@pytest.mark.parametrize(
    "sgd", [SGD(0.1, steps=5), SGD(0.1, epochs=3), SGD(0.1, steps=3, batch_size=7)]
)
def test_full_batches_and_steps(sgd: SGD) -> None:
    method = algorithms.create("FedCLG-C", client=sgd, server=SERVER)
    assert apart(trained(method, linear), trained(method, linear, batch_clients=7)) < 1e-12


@pytest.mark.parametrize("name", ["FedCLG-C", "FedCLG-S"])
def test_a_gradient_of_one_batch(name: str) -> None:
    method = algorithms.create(name, client=CLIENT, server=SERVER, gradient="batch")
    assert apart(trained(method, Skipping), trained(method, Skipping, batch_clients=3)) < 1e-12


def test_convolutions_and_poolings() -> None:
    method, wide = algorithms.create("SCAFFOLD", client=CLIENT), federation(12)
    one_by_one = trained(method, convolution, federation=wide)
    assert apart(one_by_one, trained(method, convolution, federation=wide, batch_clients=7)) < 1e-12


def root_mean_square(outputs: Tensor, targets: Tensor) -> Tensor:
    """No sum over samples: what padding would add cannot be weighted away."""
    return squared_error(outputs[:, 0], targets.to(outputs.dtype)).sqrt()


@pytest.mark.parametrize("model", [linear, Skipping])
def test_any_loss(model: Callable[[], nn.Module]) -> None:
    method = algorithms.create("FedAvg", client=CLIENT)
    one_by_one = trained(method, model, loss=root_mean_square)
    assert apart(one_by_one, trained(method, model, loss=root_mean_square, batch_clients=7)) < 1e-12


@pytest.mark.parametrize("model", [linear, Skipping])
def test_a_penalty_belongs_to_each_row(model: Callable[[], nn.Module]) -> None:
    method = algorithms.create("FedCLG-C", client=CLIENT, server=SERVER)
    loss = Regularised(functional.cross_entropy, 0.1)
    one_by_one = trained(method, model, loss=loss)
    assert apart(one_by_one, trained(method, model, loss=loss, batch_clients=7)) < 1e-12


def test_bytes_and_clients_of_one_data_set() -> None:
    """`federate` leaves all samples in one place: they are read from there, and scaled."""
    draw = torch.Generator().manual_seed(5)
    x = torch.randint(256, (90, 6), generator=draw, dtype=torch.uint8)
    y = torch.randint(3, (90,), generator=draw)
    held = federate((x, y), clients=8, partition=partition.DirichletByClass(1.0), seed=1)
    method = algorithms.create("SCAFFOLD", client=CLIENT)
    one_by_one = trained(method, perceptron, federation=held)
    assert apart(one_by_one, trained(method, perceptron, federation=held, batch_clients=7)) < 1e-12


def test_compression_and_error_feedback() -> None:
    method = algorithms.create("FedAvg", client=CLIENT)
    one, other = (
        trained(method, linear, batch_clients=b, compress_up=compression.TopK(0.3)) for b in (1, 7)
    )
    assert apart(one, other) < 1e-12


def test_in_single_precision() -> None:
    """What README promises: the last bits only."""
    method = algorithms.create("SCAFFOLD", client=CLIENT)
    models = [
        train(
            method, federation(), perceptron, 4, participation=participation.Uniform(7),
            engine=Local(batch_clients=b), eval_every=0,
        ).model
        for b in (1, 7)
    ]  # fmt: skip
    assert apart(*models) < 1e-5


def test_the_number_of_workers_leaves_the_bits_alone() -> None:
    method = algorithms.create("FedDyn", client=CLIENT)
    one, *others = (trained(method, perceptron, batch_clients=3, workers=n) for n in (1, 2, 3))
    assert all(torch.equal(one, other) for other in others)


class Clipped(Algorithm[State]):
    """A method whose clients look at the length of their change."""

    def round(self, state: State, clients: Clients, server: Any) -> State:
        return State(state.model + mean(clients.run(self.local, Sent(state.model))).change)

    def local(self, client: Any, sent: Sent) -> Upload:
        change = client.descend(sent.model, CLIENT).change
        return Upload(change * (0.1 / norm(change)).clamp(max=1))


def test_lengths_scale_rows() -> None:
    assert apart(trained(Clipped(), linear), trained(Clipped(), linear, batch_clients=7)) < 1e-12


class Positioned(Clipped):
    """A method that forgot to say that it looks at positions."""

    def local(self, client: Any, sent: Sent) -> Upload:
        return Upload(sent.model * client.position)


def test_a_position_needs_clients_one_by_one() -> None:
    with pytest.raises(InputError, match="batched = False"):
        trained(Positioned(), linear, batch_clients=7)


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (lambda: nn.Sequential(nn.Linear(6, 3), nn.Dropout(0.5)), "random"),
        (lambda: nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4), nn.Linear(4, 3)), "batch-norm"),
    ],
)
def test_a_model_that_cannot_be_stacked_says_why_once(
    model: Callable[[], nn.Module], reason: str
) -> None:
    method = algorithms.create("FedAvg", client=SGD(lr=0.1, epochs=2))
    with pytest.warns(UserWarning, match=reason) as said:
        stacked = trained(method, model, batch_clients=4)
    assert len(said) == 1
    assert torch.equal(stacked, trained(method, model))
    assert torch.equal(stacked, trained(method, model, batch_clients="auto"))  # and says nothing


def test_a_client_that_raises_is_named() -> None:
    def load(client: int) -> tuple[Tensor, Tensor]:
        if client == 3:
            raise OSError("the disk is gone")
        return holder(10, torch.Generator().manual_seed(client))

    lazy = Federation.lazy(8, load)
    with pytest.raises(ClientFailed, match="client 3, round 1: OSError: the disk is gone"):
        train(
            algorithms.create("FedAvg", client=CLIENT), lazy, lambda: linear().double(), 2,
            participation=participation.Fixed([[1, 2, 3, 4]]), engine=Local(batch_clients=4),
        )  # fmt: skip


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.integers(1, 12), min_size=1, max_size=5),
    st.integers(1, 13),
    st.sampled_from([linear, Skipping]),
)
def test_gradients_in_chunks(sizes: list[int], chunk: int, model: Callable[[], nn.Module]) -> None:
    """Each row is the client's own full gradient, whatever the chunks and the padding."""
    draw = torch.Generator().manual_seed(len(sizes))
    space = Workspace(model().double(), functional.cross_entropy)
    data = [space.admit(Federation.from_arrays([holder(n, draw)]).client(0)) for n in sizes]
    stacked = StackedSpace(space, len(sizes))
    stacked.load(space.parameters.clone(), space.read_buffers())
    rows = stacked.mean_gradient(of_each(data), chunk)
    for row, each in zip(rows, data, strict=True):
        assert (row - space.mean_gradient(each, chunk)).abs().max() < 1e-13


@given(st.integers(1, 60), st.integers(1, 70))
def test_groups_are_runs_of_the_cohort(cohort: int, size: int) -> None:
    made = groups(cohort, size)
    assert [p for group in made for p in group] == list(range(cohort))
    assert {len(group) for group in made[:-1]} <= {size}


@pytest.mark.parametrize("wish", [0, -1, True, 2.5, "many", None])
def test_a_wish_that_makes_no_sense(wish: Any) -> None:
    with pytest.raises(InputError, match="batch_clients must be 'auto' or a number from 1"):
        Local(batch_clients=wish)
