"""The demo: five methods race on real handwritten digits, in seconds on a laptop."""

from torch import nn

from bellwether import algorithms, data, models
from bellwether.core.interfaces import Engine
from bellwether.core.sgd import SGD
from bellwether.experiments.comparison import Plan
from bellwether.federation import federate
from bellwether.federation.participation import Uniform
from bellwether.federation.partition import Dirichlet
from bellwether.federation.server_data import Sample

CLIENTS, HELD, COHORT, SERVER = 60, 20, 4, 48
ALPHA = 0.05
CLIENT_SGD = SGD(lr=0.05, epochs=5, batch_size=20, decay=0.99)
SERVER_SGD = SGD(lr=0.02, epochs=1, batch_size=20, decay=0.99)


def network() -> nn.Module:
    """A small perceptron for 8x8 digits: 64-64-10."""
    return models.mlp(inputs=64, hidden=(64,), classes=10)


def plan(rounds: int = 60, seeds: int = 3, engine: Engine | None = None) -> Plan:
    """The same rates for every method; nothing is tuned for one of them."""
    digits = data.load("digits")
    assert digits.test is not None
    return Plan(
        title="Five methods on handwritten digits",
        methods={
            name: algorithms.create(name, client=CLIENT_SGD, server=SERVER_SGD)
            for name in ("FedAvg", "Server only", "CLG-SGD", "FedCLG-C", "FedCLG-S")
        },
        federation=lambda seed: federate(
            digits,
            clients=CLIENTS,
            partition=Dirichlet(ALPHA, samples=HELD),
            server=Sample(samples=SERVER, fresh=True, disjoint=False),
            seed=seed,
        ),
        model=network,
        participation=Uniform(COHORT),
        rounds=rounds,
        seeds=range(seeds),
        target=0.9,
        class_names=digits.classes,
        engine=engine,
        settings={
            "data": f"handwritten digits, 8x8, {digits.test.size} test samples",
            "clients": f"{CLIENTS} with {HELD} samples each, Dirichlet({ALPHA}) over the labels",
            "participation": f"{COHORT} clients a round, uniformly",
            "server": f"{SERVER} samples, drawn anew each round from the clients' population",
            "model": "perceptron 64-64-10, 4,810 parameters",
            "clients' training": str(CLIENT_SGD),
            "server's training": str(SERVER_SGD),
            "seeds": f"{seeds}; each draws its own clients, cohorts and initial weights,"
            " the same for every method",
        },
    )
