"""The whole file: which tables there are, and the names by which things are chosen."""

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any

from bellwether import algorithms
from bellwether.compression import Half, Quantise, RandomK, TopK
from bellwether.core.interfaces import Compressor
from bellwether.core.sgd import SGD
from bellwether.engines import Local, Ray
from bellwether.experiments.config.experiment import (
    DataSource,
    Experiment,
    ExperimentData,
    Network,
    Objective,
)
from bellwether.experiments.config.meanings import MEANINGS
from bellwether.experiments.config.schema import (
    REQUIRED,
    Choice,
    Key,
    Node,
    Nodes,
    Table,
    spelt,
    table,
)
from bellwether.experiments.training import train
from bellwether.federation import federate
from bellwether.federation.participation import (
    Bernoulli,
    Cyclic,
    Fixed,
    Incomplete,
    Markov,
    Uniform,
)
from bellwether.federation.partition import (
    IID,
    Dirichlet,
    DirichletByClass,
    LabelsPerClient,
    Partition,
)
from bellwether.federation.server_data import FromClients, Other, Sample, ServerData, Shifted
from bellwether.models.catalogue import CATALOGUE, FITTED

TRAINING = (
    "rounds",
    "seed",
    "eval_every",
    "overlap_evaluation",
    "diagnose_every",
    "diagnose_clients",
    "checkpoint_every",
    "stop_on_divergence",
    "statistics",
    "memory_budget",
    "device",
    "compress_up",
    "compress_down",
)
"""The arguments of `train` that are settings of an experiment."""


def other(dataset: DataSource, **settings: Any) -> Callable[[], ServerData]:
    """`Other`, whose data set is loaded when it is needed."""
    return lambda: Other(dataset.load(), **settings)


def network(factory: Callable[..., Any], name: str) -> Table:
    """A network's table: its factory's arguments, those that follow from the data optional."""
    made = table(factory, defaults=dict.fromkeys(FITTED))
    return dataclasses.replace(
        made,
        make=lambda **given: Network(name, {k: v for k, v in given.items() if v is not None}),
        about=CATALOGUE[name].description,
    )


def _choice(nodes: Nodes | None = None, **makes: Callable[..., Any]) -> Choice:
    return Choice("kind", {spelt(name): table(make, nodes) for name, make in makes.items()})


_SGD: Nodes = {SGD: table(SGD)}
_OTHER = dataclasses.replace(table(Other, {DataSource: table(DataSource)},
    hints={"dataset": DataSource}), make=other)  # fmt: skip
NODES: Nodes = {
    Partition: _choice(
        iid=IID, dirichlet=Dirichlet, by_class=DirichletByClass, labels=LabelsPerClient
    ),
    ServerData: Choice(
        "kind",
        {
            **_choice(sample=Sample, shifted=Shifted, from_clients=FromClients).options,
            "other": _OTHER,
        },
    ),
    Compressor: _choice(half=Half, quantise=Quantise, top_k=TopK, random_k=RandomK),
}
PARTICIPATION = _choice(
    uniform=Uniform,
    incomplete=Incomplete,
    fixed=Fixed,
    bernoulli=Bernoulli,
    markov=Markov,
    cyclic=Cyclic,
)
ALGORITHM = Choice(
    "name", {spelt(name): table(make, _SGD) for name, make in algorithms.CATALOGUE.items()}
)
MODEL = Choice("name", {name: network(entry.factory, name) for name, entry in CATALOGUE.items()})
ENGINE = Choice(
    "kind", {"local": table(Local, defaults={"workers": "auto"}), "ray": table(Ray)}, usual="local"
)


def _kept(made: Table, **keys: Key) -> Table:
    """A function's table whose arguments are kept for later."""
    return dataclasses.replace(made, make=dict, about="", keys={**made.keys, **keys})


def _root(**tables: tuple[Node, Any]) -> Table:
    named = {
        name: dataclasses.replace(node, default=default, meaning=MEANINGS[name])
        for name, (node, default) in tables.items()
    }
    title = Key(str, "", MEANINGS["title"])
    return Table(Experiment, {"title": title}, named, inspect.getdoc(Experiment) or "")


ROOT = _root(
    data=(table(ExperimentData), {}),
    federation=(_kept(table(federate, NODES, without=("dataset", "seed"))), REQUIRED),
    participation=(PARTICIPATION, {}),
    model=(MODEL, {}),
    loss=(table(Objective), {}),
    algorithm=(ALGORITHM, REQUIRED),
    training=(
        _kept(
            table(train, NODES, only=TRAINING, defaults={"rounds": 50}),
            target=Key(float | None, None, MEANINGS["target"]),
        ),
        {},
    ),
    engine=(ENGINE, {}),
)
"""All that may stand in the file of an experiment."""
