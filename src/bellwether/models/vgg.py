"""VGG (Simonyan and Zisserman 2015) for 3x32x32, as FedBCGD's tables count it.

Four poolings of the usual five: after the last stage there is none, so that the linear layers
begin with 2,048. No batch-norm, no dropout; the start is He's, without which VGG-19 hardly learns.
"""

from collections import OrderedDict
from collections.abc import Sequence

from torch import nn

from bellwether.models.initial import he


def vgg11(classes: int = 100) -> nn.Module:
    """VGG-11: 8 convolutions of 9,217,728 weights, then 2048-1024-1024-classes (Table 2).

    The table's two rows of linear layers repeat those of convolutions; 1024 x 100 at the head is
    certain, what comes before it our reading. 12,470,756 parameters with 100 classes.
    """
    return _vgg([[64], [128], [256] * 2, [512] * 2, [512] * 2], [1024, 1024], classes)


def vgg19(classes: int = 100) -> nn.Module:
    """VGG-19: 16 convolutions, then 2048-512-256-classes (Table 4).

    21,230,500 parameters with 100 classes, of which 21,224,128 weights.
    """
    stages = [[64] * 2, [128] * 2, [256] * 4, [512] * 4, [512] * 4]
    return _vgg(stages, [512, 256], classes)


def _vgg(stages: Sequence[Sequence[int]], hidden: Sequence[int], classes: int) -> nn.Module:
    """Layers conv1, conv2, .. and fc1, fc2, .. and head."""
    layers: OrderedDict[str, nn.Module] = OrderedDict()
    width = 3
    for stage, widths in enumerate(stages, 1):
        for next_width in widths:
            number = sum(name.startswith("conv") for name in layers) + 1
            layers[f"conv{number}"] = nn.Conv2d(width, next_width, 3, padding=1)
            layers[f"relu{number}"] = nn.ReLU()
            width = next_width
        if stage < len(stages):
            layers[f"pool{stage}"] = nn.MaxPool2d(2)
    layers["flatten"] = nn.Flatten()
    width *= 2 * 2
    for number, next_width in enumerate(hidden, 1):
        layers[f"fc{number}"] = nn.Linear(width, next_width)
        layers[f"bend{number}"] = nn.ReLU()
        width = next_width
    layers["head"] = nn.Linear(width, classes)
    return he(nn.Sequential(layers))
