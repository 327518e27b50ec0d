"""Networks by their names, made to fit a data set."""

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn

from bellwether.core.errors import InputError, unknown
from bellwether.models.cnn import digits_cnn, fsl_cifar_cnn, fsl_emnist_cnn, mcmahan_cnn
from bellwether.models.lenet import lenet5, lenet_fedbcgd
from bellwether.models.mobilenet import mobilenet_v2
from bellwether.models.perceptron import logistic_regression, mlp
from bellwether.models.resnet import resnet18
from bellwether.models.vgg import vgg11, vgg19
from bellwether.models.vit import vit_base

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Entry:
    """A network, the factory that makes it, and which input shapes it takes."""

    description: str
    factory: Callable[..., nn.Module]
    takes: tuple[tuple[int | None, ...], ...] | None = None
    """Patterns of input shapes, None in one for any size; None for any shape."""

    def fits(self, shape: Shape) -> bool:
        return self.takes is None or any(
            len(pattern) == len(shape)
            and all(want in (None, size) for want, size in zip(pattern, shape, strict=True))
            for pattern in self.takes
        )


FITTED: dict[str, Callable[[Shape, int], int]] = {
    "inputs": lambda shape, _: math.prod(shape),
    "channels": lambda shape, _: shape[0],
    "size": lambda shape, _: shape[1],
    "classes": lambda _, classes: classes,
}
"""Arguments of factories that follow from the data."""


CIFAR = ((3, 32, 32),)
IMAGES = ((None, None, None),)


CATALOGUE = {
    "logistic-regression": Entry("one linear layer, any input", logistic_regression),
    "mlp": Entry("two hidden layers of 200 with ReLU, any input", mlp),
    "digits-cnn": Entry("two small convolutions for the digits, 1x8x8", digits_cnn, ((1, 8, 8),)),
    "lenet5": Entry(
        "LeNet-5 fitted to the data, any channels, 28x28 or 32x32",
        lenet5,
        ((None, 28, 28), (None, 32, 32)),
    ),
    "lenet5-28": Entry("LeNet-5 for MNIST and its relatives, 1x28x28", lenet5, ((1, 28, 28),)),
    "lenet5-32": Entry("LeNet-5 for CIFAR, 3x32x32", lenet5, CIFAR),
    "lenet-fedbcgd": Entry("FedBCGD's wide LeNet, 3x32x32", lenet_fedbcgd, CIFAR),
    "fsl-emnist-cnn": Entry(
        "FSL's network with dropout for EMNIST, 1x28x28", fsl_emnist_cnn, ((1, 28, 28),)
    ),
    "fsl-cifar-cnn": Entry("FSL's network with dropout for CIFAR, 3x32x32", fsl_cifar_cnn, CIFAR),
    "mcmahan-cnn": Entry(
        "McMahan's network for CIFAR, 3x24x24 or 3x32x32",
        mcmahan_cnn,
        ((3, 24, 24), *CIFAR),
    ),
    "mobilenet-v2": Entry(
        "MobileNetV2 for small images, any channels and size", mobilenet_v2, IMAGES
    ),
    "vgg-11": Entry("VGG-11 as in FedBCGD's paper, 3x32x32", vgg11, CIFAR),
    "vgg-19": Entry("VGG-19 as in FedBCGD's paper, 3x32x32", vgg19, CIFAR),
    "resnet-18": Entry("ResNet-18 for small images, any channels and size", resnet18, IMAGES),
    "vit-base": Entry("ViT-Base/16, 3x224x224", vit_base, ((3, 224, 224),)),
}

_PREFERRED = ("digits-cnn", "lenet5", "mlp")


def names() -> dict[str, str]:
    """The networks that `create` knows, each with a line that describes it."""
    return {name: entry.description for name, entry in CATALOGUE.items()}


def create(name: str, input_shape: Sequence[int], classes: int, **settings: Any) -> nn.Module:
    """The network of this name for samples of this shape, without the axis that counts them.

    `settings` are arguments of its factory, such as `hidden=(100,)` of mlp; also those that
    otherwise follow from the data.
    """
    entry = CATALOGUE.get(name)
    if entry is None:
        raise unknown("model", name, CATALOGUE)
    shape = _shape(input_shape)
    if classes < 1:
        raise InputError(f"{name} needs at least one class, got {classes}")
    if not entry.fits(shape):
        patterns = " or ".join(map(_text, entry.takes or ()))
        raise InputError(
            f"{name} takes inputs of {patterns}, not {_text(shape)}; use {default_for(shape)}"
        )
    arguments = inspect.signature(entry.factory).parameters
    for setting in settings:
        if setting not in arguments:
            raise unknown(f"setting of {name}", setting, arguments)
    fitted = {n: fit(shape, classes) for n, fit in FITTED.items() if n in arguments}
    return entry.factory(**{**fitted, **settings})


def default_for(input_shape: Sequence[int]) -> str:
    """The name of a sensible network for samples of this shape."""
    shape = _shape(input_shape)
    return next(name for name in _PREFERRED if CATALOGUE[name].fits(shape))


def _shape(sizes: Sequence[int]) -> Shape:
    shape = tuple(sizes)
    if not shape or min(shape) < 1:
        raise InputError(f"an input shape must be one or more positive sizes, got {shape}")
    return shape


def _text(pattern: tuple[int | None, ...]) -> str:
    return "x".join("any" if size is None else str(size) for size in pattern)
