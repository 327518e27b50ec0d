"""The vision transformer (Dosovitskiy et al. 2021)."""

import torch
from torch import Tensor, nn

from bellwether.core.errors import InputError


class VisionTransformer(nn.Module):
    """Patches as words: a class token and learned positions, pre-norm layers, a linear head.

    No dropout. Weights start from a normal of deviation 0.02 cut at 2, biases from 0.
    """

    def __init__(
        self, size: int, patch: int, width: int, depth: int, heads: int, classes: int
    ) -> None:
        super().__init__()
        if size % patch:
            raise InputError(f"images of {size} pixels cannot be cut into patches of {patch}")
        self.patches = nn.Conv2d(3, width, patch, stride=patch)
        self.token = nn.Parameter(torch.empty(1, 1, width))
        self.positions = nn.Parameter(torch.empty(1, 1 + (size // patch) ** 2, width))
        self.layers = nn.Sequential(*(_layer(width, heads) for _ in range(depth)))
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.head = nn.Linear(width, classes)
        for name, parameter in self.named_parameters():
            if parameter.ndim > 1:
                nn.init.trunc_normal_(parameter, std=0.02, a=-0.04, b=0.04)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)

    def forward(self, images: Tensor) -> Tensor:
        words = self.patches(images).flatten(2).transpose(1, 2)
        token = self.token.expand(len(images), -1, -1)
        y = self.layers(torch.cat([token, words], dim=1) + self.positions)
        return self.head(self.norm(y[:, 0]))  # type: ignore[no-any-return]


def vit_base(classes: int = 200) -> nn.Module:
    """ViT-Base/16 for 3x224x224; 85,952,456 parameters with 200 classes, 85,875,556 with 100.

    FedBCGD starts from pre-trained weights, which do not come with Bellwether.
    """
    return VisionTransformer(224, patch=16, width=768, depth=12, heads=12, classes=classes)


def _layer(width: int, heads: int) -> nn.Module:
    return nn.TransformerEncoderLayer(
        width,
        heads,
        dim_feedforward=4 * width,
        dropout=0.0,
        activation="gelu",
        layer_norm_eps=1e-6,
        batch_first=True,
        norm_first=True,
    )
