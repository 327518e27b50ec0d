"""ResNet-18 (He et al. 2016) as it is used on small images."""

from collections import OrderedDict

from torch import Tensor, nn
from torch.nn import functional

from bellwether.models.initial import he


class BasicBlock(nn.Module):
    """Two 3x3 convolutions with batch-norm, and a way around them."""

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, width, 3, stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(width)
        self.shortcut = nn.Sequential()
        if stride != 1 or inputs != width:
            conv = nn.Conv2d(inputs, width, 1, stride, bias=False)
            self.shortcut = nn.Sequential(OrderedDict(conv=conv, norm=nn.BatchNorm2d(width)))

    def forward(self, x: Tensor) -> Tensor:
        y = functional.relu(self.norm1(self.conv1(x)))
        return functional.relu(self.norm2(self.conv2(y)) + self.shortcut(x))


def resnet18(classes: int = 10, channels: int = 3, width: int = 64) -> nn.Module:
    """ResNet-18 for small images; 11,173,962 parameters with 10 classes.

    It begins with a 3x3 convolution of stride 1 and no pooling, as usual for CIFAR. `width` is
    that of the first stage; each of the other three doubles it.
    """
    return he(
        nn.Sequential(
            OrderedDict(
                conv=nn.Conv2d(channels, width, 3, padding=1, bias=False),
                norm=nn.BatchNorm2d(width),
                relu=nn.ReLU(),
                stage1=_stage(width, width, 1),
                stage2=_stage(width, 2 * width, 2),
                stage3=_stage(2 * width, 4 * width, 2),
                stage4=_stage(4 * width, 8 * width, 2),
                pool=nn.AdaptiveAvgPool2d(1),
                flatten=nn.Flatten(),
                head=nn.Linear(8 * width, classes),
            )
        )
    )


def _stage(inputs: int, width: int, stride: int) -> nn.Module:
    first, second = BasicBlock(inputs, width, stride), BasicBlock(width, width, 1)
    return nn.Sequential(OrderedDict(first=first, second=second))
