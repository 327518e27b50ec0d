"""Losses that torch does not have, for `train(..., loss=...)`: (outputs, targets) -> mean loss.

`logistic` and `sigmoid` are of two classes, for networks with one output z: b is +1 where the
target is above 0, else -1, so labels may be 0 and 1 or values -1 and 1.
`bellwether.data.one_against_rest` makes such labels. FedBCGD's objectives are
`Regularised(logistic, l2)` and `Regularised(sigmoid, l2)`.
"""

import torch
from torch import Tensor
from torch.nn import functional

from bellwether.core.workspace import Regularised

__all__ = ["Regularised", "logistic", "sigmoid"]


def logistic(outputs: Tensor, targets: Tensor) -> Tensor:
    """The mean of log(1 + exp(-b z)): FedBCGD's eq. 129, without its L2 term."""
    return -functional.logsigmoid(_margins(outputs, targets)).mean()


def sigmoid(outputs: Tensor, targets: Tensor) -> Tensor:
    """The mean of 1 / (1 + exp(b z)), which is not convex: FedBCGD's eq. 130, without L2."""
    return torch.sigmoid(-_margins(outputs, targets)).mean()


def _margins(outputs: Tensor, targets: Tensor) -> Tensor:
    """b z of each sample."""
    z = outputs.reshape(targets.shape)
    return torch.where(targets > 0, z, -z)
