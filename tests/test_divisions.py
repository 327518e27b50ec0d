"""FedBCGD's blocks: every parameter in one, the sizes of the paper's tables."""

import pytest
import torch
from torch import nn

from bellwether import SGD, FedBCGD, models
from bellwether.core.blocks import locate
from bellwether.core.errors import InputError
from bellwether.core.vector import Layers
from bellwether.models.divisions import DIVISIONS

MADE = {
    "lenet-fedbcgd": models.lenet_fedbcgd,
    "vgg-11": models.vgg11,
    "vgg-19": models.vgg19,
    "resnet-18": models.resnet18,
    "vit-base": models.vit_base,
}
TABLES = {
    "lenet-fedbcgd": [[4_800], [102_400], [614_400], [73_728], []],
    "vgg-11": [
        [1_728, 73_728],
        [294_912, 589_824],
        [1_179_648, 2_359_296],
        [2_359_296, 2_359_296],
        [2048 * 1024, 1024 * 1024],  # ours: these two rows of the table repeat convolutions
    ],
    "resnet-18": [
        [1_728, *[36_864] * 4],
        [73_728, *[147_456] * 3],
        [294_912, *[589_824] * 3],
        [1_179_648, 2_359_296],
        [2_359_296, 2_359_296],
    ],
    "vgg-19": [
        [1_728, 36_864, 73_728, 147_456, 294_912, *[589_824] * 3],
        [1_179_648, 2_359_296],
        [2_359_296, 2_359_296],
        [2_359_296, 2_359_296],
        [2_359_296, 2_359_296, 1_048_576, 131_072],
    ],
}
SHORTCUTS = [0, 64 * 128, 128 * 256, 256 * 512, 0]
"""Of ResNet-18, which the table leaves out."""
SHARED = {"lenet-fedbcgd": 1_920, "vgg-11": 102_400, "resnet-18": 5_120, "vgg-19": 25_600}
"""Weights, as the tables count: without biases, batch-norm and shortcuts."""


def without_memory(name: str) -> nn.Module:
    with torch.device("meta"):
        return MADE[name]()


def layers_of(module: nn.Module) -> Layers:
    layers, start = {}, 0
    for name, parameter in module.named_parameters():
        layers[name] = slice(start, start + parameter.numel())
        start += parameter.numel()
    return layers


def sizes(name: str, *, weights: bool) -> list[int]:
    """Of each block and of the shared one, in parameters or in weights."""
    module, division = without_memory(name), models.blocks(name)
    layers = layers_of(module)
    parts = [locate(part, layers) for part in (*division.blocks, division.shared)]
    counted = {
        where.start: parameter.numel()
        for where, parameter in zip(layers.values(), module.parameters(), strict=True)
        if parameter.ndim > 1 or not weights
    }
    return [sum(counted.get(where.start, 0) for where in part) for part in parts]


@pytest.mark.parametrize("name", DIVISIONS)
def test_every_parameter_lies_in_exactly_one_block(name: str) -> None:
    module, division = without_memory(name), models.blocks(name)
    layers = layers_of(module)
    assert sum(sizes(name, weights=False)) == sum(p.numel() for p in module.parameters())
    assert FedBCGD(SGD(0.1, steps=1), **division._asdict()).laid_out(layers).shared
    assert models.blocks(module) == division


@pytest.mark.parametrize("name", TABLES)
def test_blocks_have_the_sizes_of_the_tables(name: str) -> None:
    table = [sum(rows) for rows in TABLES[name]]
    if name == "resnet-18":
        table = [a + b for a, b in zip(table, SHORTCUTS, strict=True)]
    assert sizes(name, weights=True) == [*table, SHARED[name]]


def test_vit_base_in_six_blocks_whose_mean_the_paper_prints() -> None:
    *blocks, shared = sizes("vit-base", weights=False)
    assert blocks == [742_656 + 2 * 7_087_872, *[2 * 7_087_872] * 5]
    assert sum(blocks) / 6 == 14_299_520
    assert shared == 153_600 + 200 + 2 * 768


def test_the_division_of_a_module_does_not_depend_on_its_widths() -> None:
    assert models.blocks(models.resnet18(classes=7, width=4)) == models.blocks("resnet-18")


def test_mistakes() -> None:
    with pytest.raises(InputError, match="unknown division of model 'vgg-16'; did you mean vgg-1"):
        models.blocks("vgg-16")
    with pytest.raises(InputError, match="none of them; FedBCGD\\(sgd, blocks=5\\) makes"):
        models.blocks(models.lenet5())
