"""Batch-norm statistics: the mean of the repliers', by samples and by blocks as the method asks."""

import pytest
import torch
from torch import Tensor, nn

from bellwether import SGD, Algorithm, FedAvg, FedBCGD, FedBCGDPlus, participation, train
from bellwether.core.vector import FlatModule
from test_same_bits import federation

CLIENT = SGD(lr=0.1, epochs=2, batch_size=8)
COHORT = (5, 0, 3, 1, 6)


def network() -> nn.Module:
    """Three normalisations: one in each block's layers, and one without parameters."""
    return nn.Sequential(
        nn.Linear(6, 5),
        nn.BatchNorm1d(5),
        nn.BatchNorm1d(5, affine=False),
        nn.Linear(5, 4),
        nn.BatchNorm1d(4),
        nn.Linear(4, 3),
    )


FIRST, BARE, SECOND = slice(0, 10), slice(10, 20), slice(20, 28)
BLOCKS = (("0", "1"), ("3", "4"))
PARTS = (slice(0, 2), slice(3, 5), slice(5, 6))


def after_a_round(method: Algorithm, cohort: tuple[int, ...] = COHORT) -> tuple[Tensor, int]:
    result = train(
        method,
        federation(),
        network,
        1,
        participation=participation.Fixed([cohort]),
        eval_every=0,
        device="cpu",
    )
    return result.buffers, result.history[0].bytes_up


def alone() -> dict[int, Tensor]:
    """What each client's statistics are after its local training."""
    return {client: after_a_round(FedAvg(CLIENT), (client,))[0] for client in COHORT}


def close(left: Tensor, right: Tensor) -> bool:
    return torch.allclose(left, right, rtol=1e-5, atol=1e-6)


def test_they_count_as_the_method_says() -> None:
    own, sizes = alone(), {client: 10 + 4 * client for client in COHORT}
    plain = sum(own.values(), torch.zeros(28)) / len(own)
    weighted = sum((sizes[c] * own[c] for c in own), torch.zeros(28)) / sum(sizes.values())
    assert not close(plain, weighted)
    assert close(after_a_round(FedAvg(CLIENT))[0], plain)
    assert close(after_a_round(FedAvg(CLIENT, weights="samples"))[0], weighted)


def test_no_global_step_touches_them() -> None:
    plain, _ = after_a_round(FedAvg(CLIENT))
    far, _ = after_a_round(FedAvg(CLIENT, global_lr=10.0))
    assert torch.equal(plain, far)


def test_those_of_a_block_come_from_its_clients() -> None:
    """A layer's go with its parameters; what has none is everybody's."""
    buffers, _ = after_a_round(FedBCGD(CLIENT, blocks=BLOCKS, shared="5"))
    own, sums = alone(), [torch.zeros(28), torch.zeros(28)]
    for position, client in enumerate(COHORT):
        sums[position % 2] += own[client]
    assert close(buffers[FIRST], sums[0][FIRST] / 3)
    assert close(buffers[SECOND], sums[1][SECOND] / 2)
    assert close(buffers[BARE], (sums[0] + sums[1])[BARE] / 5)


@pytest.mark.parametrize(("method", "vectors"), [(FedBCGD, 1), (FedBCGDPlus, 2)])
def test_a_client_sends_those_of_its_block_alone(method: type[FedBCGD], vectors: int) -> None:
    _, up = after_a_round(method(CLIENT, blocks=BLOCKS, shared="5"))
    first, second, shared = (sum(p.numel() for p in network()[i].parameters()) for i in PARTS)

    def sent(block: int, statistics: int) -> int:  # an envelope, and the heads of the vectors
        return 12 + vectors * (12 + 4 * (block + shared)) + 11 + 4 * statistics

    assert up == 3 * sent(first, 20) + 2 * sent(second, 18)


def test_the_home_of_a_buffer_is_its_layer() -> None:
    flat = FlatModule(network())
    starts = [flat.layers["1.weight"].start, -1, flat.layers["4.weight"].start]
    assert flat.homes.tolist() == [starts[0]] * 10 + [-1] * 10 + [starts[2]] * 8
    assert FlatModule(nn.Linear(2, 2)).homes.tolist() == []
