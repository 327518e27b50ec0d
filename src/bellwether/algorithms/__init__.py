"""One file a method: what the server does in a round, what a client does."""

import dataclasses
from typing import Any

from bellwether.algorithms.clg_sgd import CLGSGD
from bellwether.algorithms.data_sharing import DataSharing
from bellwether.algorithms.fedadam import FedAdam
from bellwether.algorithms.fedavg import FedAvg
from bellwether.algorithms.fedavgm import FedAvgM
from bellwether.algorithms.fedbcgd import FedBCGD
from bellwether.algorithms.fedbcgd_plus import FedBCGDPlus
from bellwether.algorithms.fedclg_c import FedCLGC
from bellwether.algorithms.fedclg_s import FedCLGS
from bellwether.algorithms.feddc import FedDC
from bellwether.algorithms.feddyn import FedDyn
from bellwether.algorithms.fltrust import FLTrust
from bellwether.algorithms.fsl import FSL
from bellwether.algorithms.fsl_p import FSLP
from bellwether.algorithms.safari import Safari
from bellwether.algorithms.scaffold import Scaffold
from bellwether.algorithms.scaffold_plus import ScaffoldPlus
from bellwether.algorithms.server_only import ServerOnly
from bellwether.core.algorithm import Algorithm
from bellwether.core.errors import unknown

CATALOGUE: dict[str, type[Algorithm[Any]]] = {
    "FedAvg": FedAvg,
    "FedAvgM": FedAvgM,
    "FedAdam": FedAdam,
    "Server only": ServerOnly,
    "CLG-SGD": CLGSGD,
    "FedCLG-C": FedCLGC,
    "FedCLG-S": FedCLGS,
    "SCAFFOLD": Scaffold,
    "SCAFFOLD+": ScaffoldPlus,
    "FSL": FSL,
    "FSL-p": FSLP,
    "Data sharing": DataSharing,
    "FedDyn": FedDyn,
    "FedDC": FedDC,
    "SAFARI": Safari,
    "FedBCGD": FedBCGD,
    "FedBCGD+": FedBCGDPlus,
    "FLTrust": FLTrust,
}
"""The methods by the names that people know them by."""


def names() -> dict[str, str]:
    """The methods' names as they are typed, each with the line that describes it."""
    return {_typed(n): (m.__doc__ or "").split("\n")[0].strip() for n, m in CATALOGUE.items()}


def find(name: str) -> str:
    """The name in the catalogue of what somebody typed: "fedclg-c" is FedCLG-C."""
    for known in CATALOGUE:
        if _typed(known) == _typed(name):
            return known
    raise unknown("algorithm", name, names())


def create(name: str, **settings: Any) -> Algorithm[Any]:
    """The method of this name with those of the settings that it has."""
    method = CATALOGUE[find(name)]
    own = {field.name for field in dataclasses.fields(method)}  # type: ignore[arg-type]
    return method(**{key: value for key, value in settings.items() if key in own})


def _typed(name: str) -> str:
    return name.lower().replace(" ", "-").replace("_", "-")


__all__ = [
    "CATALOGUE",
    "CLGSGD",
    "FSL",
    "FSLP",
    "DataSharing",
    "FLTrust",
    "FedAdam",
    "FedAvg",
    "FedAvgM",
    "FedBCGD",
    "FedBCGDPlus",
    "FedCLGC",
    "FedCLGS",
    "FedDC",
    "FedDyn",
    "Safari",
    "Scaffold",
    "ScaffoldPlus",
    "ServerOnly",
    "create",
    "find",
    "names",
]
