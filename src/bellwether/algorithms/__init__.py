"""One file a method: what the server does in a round, what a client does."""

import dataclasses
from typing import Any

from bellwether.algorithms.clg_sgd import CLGSGD
from bellwether.algorithms.fedavg import FedAvg
from bellwether.algorithms.fedclg_c import FedCLGC
from bellwether.algorithms.fedclg_s import FedCLGS
from bellwether.algorithms.server_only import ServerOnly
from bellwether.core.algorithm import Algorithm
from bellwether.core.errors import unknown

CATALOGUE: dict[str, type[Algorithm]] = {
    "FedAvg": FedAvg,
    "Server only": ServerOnly,
    "CLG-SGD": CLGSGD,
    "FedCLG-C": FedCLGC,
    "FedCLG-S": FedCLGS,
}
"""The methods by the names that people know them by."""


def names() -> dict[str, str]:
    """The methods' names as they are typed, each with the line that describes it."""
    return {_typed(name): (method.__doc__ or "").strip() for name, method in CATALOGUE.items()}


def find(name: str) -> str:
    """The name in the catalogue of what somebody typed: "fedclg-c" is FedCLG-C."""
    for known in CATALOGUE:
        if _typed(known) == _typed(name):
            return known
    raise unknown("algorithm", name, names())


def create(name: str, **settings: Any) -> Algorithm:
    """The method of this name with those of the settings that it has."""
    method = CATALOGUE[find(name)]
    own = {field.name for field in dataclasses.fields(method)}  # type: ignore[arg-type]
    return method(**{key: value for key, value in settings.items() if key in own})


def _typed(name: str) -> str:
    return name.lower().replace(" ", "-").replace("_", "-")


__all__ = [
    "CATALOGUE",
    "CLGSGD",
    "FedAvg",
    "FedCLGC",
    "FedCLGS",
    "ServerOnly",
    "create",
    "find",
    "names",
]
