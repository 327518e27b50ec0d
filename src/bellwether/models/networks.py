"""Plain networks. Each factory works without arguments.

Initial weights are torch's defaults, drawn from torch's default generator, which the caller seeds.
"""

from collections.abc import Sequence

from torch import nn

from bellwether.core.errors import InputError


def logistic_regression(inputs: int = 784, classes: int = 10) -> nn.Module:
    """One linear layer on the flattened input; 7,850 parameters for MNIST (SAFARI).

    Takes any shape of `inputs` values.
    """
    return nn.Sequential(nn.Flatten(), nn.Linear(inputs, classes))


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


def digits_cnn(classes: int = 10) -> nn.Module:
    """Two 3x3 convolutions for the embedded digits, 1x8x8; 6,090 parameters with 10 classes."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(32 * 2 * 2, classes),
    )


def lenet5(channels: int = 1, size: int = 28, classes: int = 10) -> nn.Module:
    """LeNet-5 (LeCun et al. 1998) with ReLU and max-pooling, for squares of 28 or 32 pixels.

    The first convolution pads 28 pixels to the original's 32, so the rest is the same. 61,706
    parameters for 1x28x28, 62,006 for 3x32x32, both with 10 classes.
    """
    if size not in (28, 32):
        raise InputError(f"lenet5 takes images of 28x28 or 32x32, not {size}x{size}")
    return nn.Sequential(
        nn.Conv2d(channels, 6, 5, padding=(32 - size) // 2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(16 * 5 * 5, 120),
        nn.ReLU(),
        nn.Linear(120, 84),
        nn.ReLU(),
        nn.Linear(84, classes),
    )


def lenet5_28(classes: int = 10) -> nn.Module:
    """LeNet-5 for 1x28x28 (MNIST and its relatives)."""
    return lenet5(channels=1, size=28, classes=classes)


def lenet5_32(classes: int = 10) -> nn.Module:
    """LeNet-5 for 3x32x32 (CIFAR)."""
    return lenet5(channels=3, size=32, classes=classes)
