"""MobileNetV2 (Sandler et al. 2018) at width 1, for small images."""

from torch import Tensor, nn

from bellwether.models.initial import he

STAGES = (
    (1, 16, 1, 1),
    (6, 24, 2, 1),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)
"""Table 2 of the paper: expansion, width, blocks, stride of the first of them.

For 32x32 the first convolution and the stage of width 24 keep the size (for 224x224 they halve
it), so that the last convolution sees 4x4 and not 1x1. FedCLG does not give its strides.
"""


class InvertedResidual(nn.Module):
    """Expand, filter each channel, project; with a way around where the shapes agree."""

    def __init__(self, inputs: int, width: int, stride: int, expansion: int) -> None:
        super().__init__()
        hidden = inputs * expansion
        self.layers = nn.Sequential(
            *(_convolution(inputs, hidden, 1) if expansion > 1 else ()),
            *_convolution(hidden, hidden, 3, stride, groups=hidden),
            nn.Conv2d(hidden, width, 1, bias=False),
            nn.BatchNorm2d(width),
        )
        self.around = stride == 1 and inputs == width

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.layers(x)
        return x + y if self.around else y


def mobilenet_v2(classes: int = 20, channels: int = 3) -> nn.Module:
    """MobileNetV2 for small images; 2,249,492 parameters with 20 classes (FedCLG's CIFAR-100).

    Dropout of 0.2 before the last layer, as in the authors' own code. The start is He's.
    """
    layers: list[nn.Module] = [*_convolution(channels, 32, 3)]
    inputs = 32
    for expansion, width, count, stride in STAGES:
        for number in range(count):
            layers.append(InvertedResidual(inputs, width, 1 if number else stride, expansion))
            inputs = width
    return he(
        nn.Sequential(
            *layers,
            *_convolution(inputs, 1280, 1),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Dropout(0.2),
            nn.Linear(1280, classes),
        )
    )


def _convolution(
    inputs: int, width: int, kernel: int, stride: int = 1, groups: int = 1
) -> tuple[nn.Module, ...]:
    padding = kernel // 2
    return (
        nn.Conv2d(inputs, width, kernel, stride, padding, groups=groups, bias=False),
        nn.BatchNorm2d(width),
        nn.ReLU6(),
    )
