"""Each method against its hand-derived closed form on quadratics, and mutants that must fail."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from bellwether import (
    CLGSGD,
    SGD,
    Algorithm,
    FedAvg,
    FedCLGC,
    FedCLGS,
    ServerOnly,
    participation,
    train,
)
from mutation import mutant
from quadratics import Problem, half_squared_error, model, problem

K, ETA = 4, 0.05
E, GAMMA = 3, 0.03
GLOBAL = 0.7
CLIENT, SERVER = SGD(lr=ETA, steps=K, decay=0.9), SGD(lr=GAMMA, epochs=E, decay=0.8)
SCHEDULE = [[4, 1, 3], [0, 5], [2], [5, 4, 3, 2, 1, 0]]
Round = Callable[[np.ndarray, Problem, list[int], int], np.ndarray]


def rates(t: int) -> tuple[float, float]:
    return ETA * 0.9**t, GAMMA * 0.8**t


def fedavg(x: np.ndarray, p: Problem, cohort: list[int], t: int) -> np.ndarray:
    eta, _ = rates(t)
    ends = [p.clients[i].descend(x, eta, K) for i in cohort]
    return x + GLOBAL * (sum(ends) / len(ends) - x)


def server_only(x: np.ndarray, p: Problem, cohort: list[int], t: int) -> np.ndarray:
    return p.server.descend(x, rates(t)[1], E)


def clg_sgd(x: np.ndarray, p: Problem, cohort: list[int], t: int) -> np.ndarray:
    return server_only(fedavg(x, p, cohort, t), p, cohort, t)


def fedclg_c(x: np.ndarray, p: Problem, cohort: list[int], t: int) -> np.ndarray:
    eta, _ = rates(t)
    g = p.server.gradient(x)
    changes = [p.clients[i].descend(x, eta, K, g - p.clients[i].gradient(x)) - x for i in cohort]
    return server_only(x + GLOBAL * np.mean(changes, axis=0), p, cohort, t)


def fedclg_s(x: np.ndarray, p: Problem, cohort: list[int], t: int) -> np.ndarray:
    eta, _ = rates(t)
    g = p.server.gradient(x)
    changes = [
        p.clients[i].descend(x, eta, K) - x - K * eta * (g - p.clients[i].gradient(x))
        for i in cohort
    ]
    return server_only(x + GLOBAL * np.mean(changes, axis=0), p, cohort, t)


@dataclass(frozen=True)
class Case:
    method: type[Algorithm]
    expected: Round
    arguments: dict[str, object]


BOTH = {"client": CLIENT, "server": SERVER, "global_lr": GLOBAL}
CASES = {
    "FedAvg": Case(FedAvg, fedavg, {"client": CLIENT, "global_lr": GLOBAL}),
    "ServerOnly": Case(ServerOnly, server_only, {"server": SERVER}),
    "CLGSGD": Case(CLGSGD, clg_sgd, BOTH),
    "FedCLGC": Case(FedCLGC, fedclg_c, BOTH),
    "FedCLGS": Case(FedCLGS, fedclg_s, BOTH),
}


def agrees(method: type[Algorithm], case: Case) -> bool:
    p, rounds = problem(), len(SCHEDULE)
    seen: list[np.ndarray] = []
    train(
        method(**case.arguments),
        p.federation,
        model,
        rounds,
        participation=participation.Fixed(SCHEDULE),
        loss=half_squared_error,
        on_round=lambda record: seen.append(record.model.numpy()),
    )
    x = model().weight.detach().numpy().reshape(-1)
    for t, cohort in enumerate(SCHEDULE):
        x = case.expected(x, p, cohort, t)
        if not np.allclose(seen[t], x, rtol=1e-12, atol=1e-12):
            return False
    return len(seen) == rounds


@pytest.mark.parametrize("name", CASES)
def test_a_method_computes_its_closed_form(name: str) -> None:
    assert agrees(CASES[name].method, CASES[name])


OWN = "client.gradient(sent.model, self.gradient)"
CORRECTION = f"sent.guide - {OWN}"
MUTANTS = [
    ("FedAvg", "x + self", "x - self"),  # sign
    ("FedAvg", "self.global_lr * ", ""),  # a setting that is not used
    ("ServerOnly", "server.descend(state.model, self.server).end", "state.model"),  # stale
    ("CLGSGD", "server.descend(x, self", "server.descend(state.model, self"),  # stale model
    ("CLGSGD", "self.global_lr * ", ""),
    ("FedCLGC", CORRECTION, f"{OWN} - sent.guide"),
    ("FedCLGC", CORRECTION, "sent.guide"),  # half a correction
    ("FedCLGC", "descend(sent.model, self.client, correction)", "descend(sent.model, self.client)"),
    ("FedCLGC", "server.gradient(x, ", "server.gradient(0 * x, "),  # another point
    ("FedCLGC", "server.descend(x, self", "server.descend(state.model, self"),
    ("FedCLGS", "r.change - r.steps", "r.change + r.steps"),
    ("FedCLGS", "r.steps * r.lr", "r.lr"),  # wrong factor
    ("FedCLGS", "guide - r.gradient", "r.gradient - guide"),
    ("FedCLGS", OWN, OWN.replace("sent.model", "0 * sent.model")),
    ("FedCLGS", "server.descend(x, self", "server.descend(state.model, self"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "right", "wrong"), MUTANTS)
def test_a_mutant_is_caught(name: str, right: str, wrong: str) -> None:
    assert not agrees(mutant(CASES[name].method, right, wrong), CASES[name])
