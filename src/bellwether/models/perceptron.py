"""Linear models and perceptrons, for inputs of any shape."""

from collections.abc import Sequence

from torch import nn


def logistic_regression(inputs: int = 784, classes: int = 10, bias: bool = True) -> nn.Module:
    """One linear layer on the flattened input; 7,850 parameters for MNIST (SAFARI).

    Takes any shape of `inputs` values. With one class and no bias it is the a'x of FedBCGD's
    eq. 129-130, for the losses of `bellwether.models.losses`.
    """
    return nn.Sequential(nn.Flatten(), nn.Linear(inputs, classes, bias=bias))


def mlp(inputs: int = 784, hidden: Sequence[int] = (200, 200), classes: int = 10) -> nn.Module:
    """Fully connected layers with ReLU; 199,210 parameters for MNIST (2NN, McMahan et al. 2017).

    Takes any shape of `inputs` values.
    """
    layers: list[nn.Module] = [nn.Flatten()]
    width = inputs
    for next_width in hidden:
        layers += [nn.Linear(width, next_width), nn.ReLU()]
        width = next_width
    return nn.Sequential(*layers, nn.Linear(width, classes))
