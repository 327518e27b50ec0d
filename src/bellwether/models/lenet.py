"""The LeNets: LeCun's, and the wider one that FedBCGD's paper calls LeNet-5."""

from collections import OrderedDict

from torch import nn

from bellwether.core.errors import InputError


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


def lenet_fedbcgd(classes: int = 10) -> nn.Module:
    """The LeNet of FedBCGD's Table 1, for 3x32x32; 797,962 parameters with 10 classes.

    The table's counts are of weights, 797,248 in all, and need 5x5 kernels without padding (its
    label "conv3-64" is a misprint).
    """
    return nn.Sequential(
        OrderedDict(
            conv1=nn.Conv2d(3, 64, 5),
            relu1=nn.ReLU(),
            pool1=nn.MaxPool2d(2),
            conv2=nn.Conv2d(64, 64, 5),
            relu2=nn.ReLU(),
            pool2=nn.MaxPool2d(2),
            flatten=nn.Flatten(),
            fc1=nn.Linear(64 * 5 * 5, 384),
            relu3=nn.ReLU(),
            fc2=nn.Linear(384, 192),
            relu4=nn.ReLU(),
            head=nn.Linear(192, classes),
        )
    )
