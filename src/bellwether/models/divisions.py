"""Which layers form which block in FedBCGD's experiments (Tables 1-5 of its supplement)."""

from typing import NamedTuple

from torch import nn

from bellwether.core.blocks import check_cover, locate
from bellwether.core.errors import InputError, unknown
from bellwether.core.vector import Layers


class Division(NamedTuple):
    """Layers by name: `FedBCGD(sgd, **models.blocks("resnet-18")._asdict())`."""

    blocks: tuple[tuple[str, ...], ...]
    """One tuple of layers a block; a cohort needs as many clients, or more."""
    shared: tuple[str, ...] = ("head",)
    """What every client sends."""


def _numbered(layer: str, first: int, last: int) -> tuple[str, ...]:
    return tuple(f"{layer}{number}" for number in range(first, last + 1))


DIVISIONS = {
    # Table 1 has five groups of clients; the fifth sends the shared block alone.
    "lenet-fedbcgd": Division((("conv1",), ("conv2",), ("fc1",), ("fc2",), ())),
    # Table 2, which is printed with the rows of ResNet-18 below its own.
    "vgg-11": Division(
        (
            ("conv1", "conv2"),
            ("conv3", "conv4"),
            ("conv5", "conv6"),
            ("conv7", "conv8"),
            ("fc1", "fc2"),
        )
    ),
    # Table 3. It lists neither shortcuts nor batch-norm: both go with the block around them.
    "resnet-18": Division(
        (
            ("conv", "norm", "stage1"),
            ("stage2",),
            ("stage3",),
            ("stage4.first",),
            ("stage4.second",),
        )
    ),
    # Table 4.
    "vgg-19": Division(
        (
            _numbered("conv", 1, 8),
            ("conv9", "conv10"),
            ("conv11", "conv12"),
            ("conv13", "conv14"),
            ("conv15", "conv16", "fc1", "fc2"),
        )
    ),
    # Table 5 (captioned VGG-19) prints five blocks of 14,299,520, which is the mean of six: a
    # sixth of twelve layers and the embeddings. Here are six blocks of two layers, the embeddings
    # with the first; the last norm, which that mean leaves out, is shared with the head.
    "vit-base": Division(
        (
            ("patches", "token", "positions", "layers.0", "layers.1"),
            *(_numbered("layers.", first, first + 1) for first in range(2, 12, 2)),
        ),
        shared=("norm", "head"),
    ),
}


def blocks(network: str | nn.Module) -> Division:
    """The paper's division of a network, given by its name or as it was made by its factory."""
    if isinstance(network, str):
        if network not in DIVISIONS:
            raise unknown("division of model", network, DIVISIONS)
        return DIVISIONS[network]
    names = [name for name, p in network.named_parameters() if p.requires_grad]
    layers = {name: slice(i, i + 1) for i, name in enumerate(names)}  # sizes do not matter here
    for division in DIVISIONS.values():
        if _fits(division, layers):
            return division
    raise InputError(
        f"FedBCGD's paper divides {', '.join(DIVISIONS)}, and this network is none of them;"
        " FedBCGD(sgd, blocks=5) makes five even blocks of any network"
    )


def _fits(division: Division, layers: Layers) -> bool:
    try:
        check_cover([locate(part, layers) for part in (*division.blocks, division.shared)], layers)
    except InputError:
        return False
    return True
