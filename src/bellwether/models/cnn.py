"""Networks of two convolutions and a few linear layers."""

from torch import nn

from bellwether.core.errors import InputError
from bellwether.models.initial import glorot


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


def fsl_emnist_cnn(classes: int = 45) -> nn.Module:
    """FSL's network for EMNIST, 1x28x28 (Table II); 1,409,197 parameters with 45 classes.

    The first convolution is padded, the second is not. The start is Keras's, which the paper's
    layers suggest.
    """
    return glorot(
        nn.Sequential(
            nn.Conv2d(1, 32, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(32, 64, 3),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Dropout(0.25),
            nn.Flatten(),
            *_fsl_dense(64 * 13 * 13, classes),
        )
    )


def fsl_cifar_cnn(classes: int = 10) -> nn.Module:
    """FSL's network for CIFAR, 3x32x32 (Table III); 545,098 parameters with 10 classes.

    Both convolutions are padded and pooled (the table's first pooling row is misprinted). The
    start is Keras's, as for EMNIST.
    """
    return glorot(
        nn.Sequential(
            nn.Conv2d(3, 32, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Dropout(0.25),
            nn.Flatten(),
            *_fsl_dense(64 * 8 * 8, classes),
        )
    )


def _fsl_dense(inputs: int, classes: int) -> tuple[nn.Module, ...]:
    return nn.Linear(inputs, 128), nn.ReLU(), nn.Dropout(0.5), nn.Linear(128, classes)


def mcmahan_cnn(size: int = 24, classes: int = 10) -> nn.Module:
    """The CIFAR network of McMahan et al. 2017, which is TensorFlow's tutorial's, for 3x24x24.

    1,068,298 parameters with 10 classes. Likely SAFARI's, which says only "CNN". Its images are
    cropped to 24 pixels; uncropped ones of 32 pixels have 1,756,426 parameters.
    """
    if size not in (24, 32):
        raise InputError(f"mcmahan_cnn takes images of 24x24 or 32x32, not {size}x{size}")
    return nn.Sequential(
        nn.Conv2d(3, 64, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(3, 2, ceil_mode=True),  # ceil_mode pads as TensorFlow does
        nn.LocalResponseNorm(9, alpha=1e-3, beta=0.75, k=1.0),
        nn.Conv2d(64, 64, 5, padding=2),
        nn.ReLU(),
        nn.LocalResponseNorm(9, alpha=1e-3, beta=0.75, k=1.0),
        nn.MaxPool2d(3, 2, ceil_mode=True),
        nn.Flatten(),
        nn.Linear(64 * (size // 4) ** 2, 384),
        nn.ReLU(),
        nn.Linear(384, 192),
        nn.ReLU(),
        nn.Linear(192, classes),
    )
