"""Every method with one deliberate mistake: the comparison with the reference must notice it."""

import pytest

import bellwether
from mutation import mutant
from test_trajectories import CASES, SITUATIONS, apart, models, posed, trained

SIGN, DIVISOR, STALE, MEMORY, IGNORED = "sign", "divisor", "stale", "memory", "ignored setting"
MUTANTS = {
    "FedAvg": [
        (SIGN, "x + self", "x - self"),
        (IGNORED, "self.global_lr * ", ""),
        ("weights", "mean(replies, self.weights)", "mean(replies)"),
    ],
    "FedAvgM": [
        (STALE, "self.global_lr * v, v)", "self.global_lr * v, state.velocity)"),
        (IGNORED, "self.momentum * state", "state"),
        (SIGN, "velocity + mean", "velocity - mean"),
    ],
    "FedAdam": [
        ("start", "self.tau**2", "self.tau"),
        ("bias", "(1 - self.beta1) * d", "d"),
        (MEMORY, "/ (v**0.5 + self.tau), m, v)", "/ (v**0.5 + self.tau), m, state.second)"),
        ("square", "d**2", "d.abs()"),
    ],
    "ServerOnly": [
        (STALE, "server.descend(state.model, self.server).end", "state.model"),
        ("double", ".end", ".change"),
    ],
    "CLGSGD": [
        (STALE, "server.descend(x, self", "server.descend(state.model, self"),
        (SIGN, "x + self", "x - self"),
    ],
    "FedCLGC": [
        (SIGN, "sent.guide - client", "client"),
        (STALE, "server.gradient(x, ", "server.gradient(0 * x, "),
    ],
    "FedCLGS": [
        (SIGN, "r.change - r.steps", "r.change + r.steps"),
        ("factor", "r.steps * r.lr", "r.lr"),
    ],
    "Scaffold": [
        (SIGN, "self.client, c - c_i)", "self.client, c_i - c)"),
        (MEMORY, "client.memory = Memory(new)", "pass"),
        (DIVISOR, "replies.sum.control / clients.population", "replies.control"),
        ("start", "descent.change, new - c_i", "descent.change, new"),
        ("update", "new = c_i - c - ", "new = c_i - c + "),
    ],
    "ScaffoldPlus": [
        (STALE, "server.descend(state.model, self.server).end", "state.model"),
        (IGNORED, "option=self.option", "option=2"),
        (MEMORY, "state = self.scaffold.round(state", "self.scaffold.round(state"),
    ],
    "FSL": [
        (IGNORED, "self.weight * sgd.lr", "sgd.lr"),
        (STALE, "server.descend(x, sgd)", "server.descend(state.model, sgd)"),
        ("step", "self.step(replies) * replies.change", "replies.change"),
    ],
    "FSLP": [
        (DIVISOR, "State(x + total / (1 + gamma))", "State(x + total)"),
        (IGNORED, "gamma * server.descend", "server.descend"),
        (SIGN, "total + gamma", "total - gamma"),
    ],
    "DataSharing": [
        ("nothing shared", "shares_server_data = True", "shares_server_data = False"),
        (IGNORED, "self.global_lr * ", ""),
    ],
    "FedDyn": [
        (SIGN, "- l_i).change", "+ l_i).change"),
        (MEMORY, "client.memory = Memory", "Memory"),
        (DIVISOR, "self.alpha / clients.population * replies.sum", "self.alpha * replies"),
        (STALE, "- h / self.alpha", "- state.h / self.alpha"),
    ],
    "FedDC": [
        (SIGN, "self.alpha * (y + h_i - x) + s - s_i", "self.alpha * (y + h_i - x) - s + s_i"),
        (MEMORY, "Memory(h_i + descent.change, ", "Memory(h_i, "),
        (DIVISOR, "replies.sum.change / n", "replies.change"),
        (STALE, "replies.change + drift, drift", "replies.change + state.drift, drift"),
    ],
    "Safari": [
        ("coin", "server.rng.random() < self.q", "server.rng.random() > self.q"),
        (STALE, "server.descend(x, self.server).end", "x"),
    ],
    "FedBCGD": [
        (STALE, "x + v, x), v)", "x + v, x), state.velocity)"),
        (DIVISOR, "count.clamp(min=1)", "len(replies.cohort)"),
        (IGNORED, "self.momentum * state", "state"),
    ],
    "FedBCGDPlus": [
        (MEMORY, "client.memory = Memory(new)", "client.memory = Memory(full)"),
        (SIGN, "full + c - c_i,", "full - c + c_i,"),
        (DIVISOR, "reply.control / clients.population", "reply.control / len(replies.cohort)"),
        (STALE, "push - batch.gradient(x)", "push - full"),
    ],
    "FLTrust": [
        ("no trust", ".clamp(min=0)", ".abs()"),
        ("not rescaled", "s * norm(root) / size", "s"),
        (DIVISOR, "total / trust", "total"),
    ],
}  # fmt: skip


def caught(name: str) -> bool:
    """Whether some case of the method leaves the reference in some situation."""
    for situation in ("one always, one once", "mini-batches"):
        for case in (case for case in CASES.values() if case.name == name):
            if not case.fits(SITUATIONS[situation]):
                continue
            p, arguments = posed(case, SITUATIONS[situation]), case.arguments(SITUATIONS[situation])
            expected = models(case.method(p, **arguments))
            if not apart(trained(name, arguments, p), expected) < 1e-10:
                return True
    return False


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        pytest.param(name, right, wrong, id=f"{name}: {mistake}")
        for name, mistakes in MUTANTS.items()
        for mistake, right, wrong in mistakes
    ],
)
def test_a_mutant_is_caught(
    name: str, right: str, wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bellwether, name, mutant(getattr(bellwether, name), right, wrong))
    assert caught(name)


def test_no_method_is_without_its_mutants() -> None:
    methods = {method.__name__ for method in bellwether.algorithms.CATALOGUE.values()}
    assert set(MUTANTS) == methods
    assert all(len(mistakes) >= 2 for mistakes in MUTANTS.values())
