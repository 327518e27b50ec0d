"""Server-assisted (hybrid) federated learning: the server owns a little data, and it learns too.

    from bellwether import FedCLGC, SGD, federate, partition, server_data, train

`train(method, federation, model, rounds)` is the whole of it; the rest of this page is what
goes in and comes out.
"""

from bellwether import compression, data, engines, models
from bellwether.algorithms import (
    CLGSGD,
    FSL,
    FSLP,
    DataSharing,
    FedAdam,
    FedAvg,
    FedAvgM,
    FedBCGD,
    FedBCGDPlus,
    FedCLGC,
    FedCLGS,
    FedDC,
    FedDyn,
    FLTrust,
    Safari,
    Scaffold,
    ScaffoldPlus,
    ServerOnly,
)
from bellwether.core.algorithm import Algorithm, Clients, Sent, State, Upload, mean
from bellwether.core.dataset import Dataset, Samples
from bellwether.core.errors import BellwetherError, ClientFailed, Diverged, InputError, WireError
from bellwether.core.participants import Client, Server
from bellwether.core.profile import Profile
from bellwether.core.records import RoundRecord
from bellwether.core.sgd import SGD, Batch, Descent
from bellwether.core.vector import Vector, dot, norm
from bellwether.experiments.run import Result
from bellwether.experiments.training import Interrupted, train
from bellwether.federation import Federation, federate, participation, partition, server_data
from bellwether.version import __version__

__all__ = [
    "CLGSGD",
    "FSL",
    "FSLP",
    "SGD",
    "Algorithm",
    "Batch",
    "BellwetherError",
    "Client",
    "ClientFailed",
    "Clients",
    "DataSharing",
    "Dataset",
    "Descent",
    "Diverged",
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
    "Federation",
    "InputError",
    "Interrupted",
    "Profile",
    "Result",
    "RoundRecord",
    "Safari",
    "Samples",
    "Scaffold",
    "ScaffoldPlus",
    "Sent",
    "Server",
    "ServerOnly",
    "State",
    "Upload",
    "Vector",
    "WireError",
    "__version__",
    "compression",
    "data",
    "dot",
    "engines",
    "federate",
    "mean",
    "models",
    "norm",
    "participation",
    "partition",
    "server_data",
    "train",
]
