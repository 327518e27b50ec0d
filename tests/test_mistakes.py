"""More mistakes in calls of `train`: each is one clear line, before anything is computed."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bellwether import (
    FSL,
    FSLP,
    ClientFailed,
    FedAdam,
    FedAvg,
    FedAvgM,
    FedBCGD,
    FedCLGC,
    Federation,
    InputError,
    Safari,
    participation,
    train,
)
from test_same_bits import CLIENT, SERVER, dropout_network, federation

NAN = float("nan")
FEDAVG = FedAvg(CLIENT)


def trained(method: Any, **arguments: Any) -> Callable[[], object]:
    def call() -> object:
        given = {"federation": federation(), "model": dropout_network, "rounds": 1} | arguments
        return train(method, **given)

    return call


MISTAKES: dict[str, tuple[Callable[[], object], str]] = {
    "a global rate that is no number": (
        trained(FedAvg(CLIENT, global_lr=NAN)),
        r"FedAvg\(global_lr=nan\): must be a finite number",
    ),
    "a global rate in words": (
        trained(FedAvg(CLIENT, global_lr="1")),  # type: ignore[arg-type]
        r"FedAvg\(global_lr='1'\): must be a finite number",
    ),
    "a global rate below 0": (
        trained(FSL(CLIENT, SERVER, global_lr=-1)),
        r"FSL\(global_lr=-1\): must be 0 or more",
    ),
    "a rate instead of an SGD": (
        trained(FedAvg(0.1)),  # type: ignore[arg-type]
        r"FedAvg\(client=0.1\): must be settings such as SGD",
    ),
    "no SGD": (
        trained(FedCLGC(CLIENT, None)),  # type: ignore[arg-type]
        r"FedCLGC\(server=None\): must be settings such as SGD",
    ),
    "a seed in words": (trained(FEDAVG, seed="a"), "seed must be a whole number, got 'a'"),
    "no round between checkpoints": (
        trained(FEDAVG, checkpoint_every=0),
        "checkpoint_every must be at least 1, got 0",
    ),
    "a number of clients a round": (
        trained(FEDAVG, participation=4),
        r"participation must be such as participation.Uniform\(10\), not int",
    ),
    "a class instead of a participation": (
        trained(FEDAVG, participation=participation.Uniform),
        "not the class Uniform",
    ),
    "an engine's name": (trained(FEDAVG, engine="local"), r"engine must be such as engines.Local"),
    "samples instead of a federation": (
        trained(FEDAVG, federation=[([1.0], [1])]),
        "federation must be such as",
    ),
    "no model": (trained(FEDAVG, model=None), "model must be, or make, a torch.nn.Module"),
    "momentum of FedAvgM": (lambda: FedAvgM(CLIENT, momentum=1.0), "momentum must be at least 0"),
    "momentum of FedBCGD": (lambda: FedBCGD(CLIENT, momentum=NAN), "momentum must be at least 0"),
    "beta of FedAdam": (lambda: FedAdam(CLIENT, beta2=2.0), "beta2 must be at least 0 and below 1"),
    "tau of FedAdam": (lambda: FedAdam(CLIENT, tau=0.0), "tau must be a finite number above 0"),
    "momentum in words": (
        lambda: FedAvgM(CLIENT, momentum="0.9"),  # type: ignore[arg-type]
        "momentum must be at least 0 and below 1, not '0.9'",
    ),
    "q in words": (
        lambda: Safari(CLIENT, SERVER, q="often"),  # type: ignore[arg-type]
        "q is a probability, between 0 and 1, not 'often'",
    ),
    "weight of FSL": (
        lambda: FSL(CLIENT, weight=-1.0),
        "weight must be a finite number, 0 or more, not -1.0",
    ),
    "weight of FSL-p": (
        lambda: FSLP(CLIENT, weight=NAN),
        "weight must be a finite number, 0 or more, not nan",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_clear_line(name: str) -> None:
    make, message = MISTAKES[name]
    with pytest.raises(InputError, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_numbers_may_be_numpys() -> None:
    rounds, seed = np.int64(2), np.int32(3)
    assert len(train(FEDAVG, federation(), dropout_network, rounds, seed=seed).history) == 2


def test_a_client_that_cannot_be_loaded_is_named() -> None:
    def load(client: int) -> Any:
        return federation().client(client) if client != 3 else {}["gone"]

    named = r"client 3, round 1: KeyError: 'gone' \(.*test_mistakes.py:\d+\)"
    with pytest.raises(ClientFailed, match=named):
        train(FEDAVG, Federation.lazy(5, load), dropout_network, 1)
