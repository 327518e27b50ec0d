"""The networks of the experiments, as factories and by their names."""

from bellwether.models.catalogue import create, default_for, names
from bellwether.models.networks import (
    digits_cnn,
    lenet5,
    lenet5_28,
    lenet5_32,
    logistic_regression,
    mlp,
)

__all__ = [
    "create",
    "default_for",
    "digits_cnn",
    "lenet5",
    "lenet5_28",
    "lenet5_32",
    "logistic_regression",
    "mlp",
    "names",
]
