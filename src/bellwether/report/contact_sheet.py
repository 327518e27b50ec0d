"""A picture of a data set: some samples of each class, under the name of the class."""

import io

import numpy as np
import torch
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor

from bellwether.core.dataset import Dataset
from bellwether.core.errors import InputError
from bellwether.data.catalogue import Entry

_PAPER, _INK, _FAINT, _RULE = "#ffffff", "#1f2328", "#6e7781", "#d8dee4"
_EDGE, _HEAD, _GAP, _BETWEEN = 24, 80, 3, 32
_TILE = 52
"""About how many pixels a sample is wide."""
_ROWS = 34
"""More classes than this stand in several columns."""
_LOOKED_AT = 1000
"""Samples that tell how bright a user's own data are."""


def can_be_pictured(dataset: Dataset) -> bool:
    """Whether its samples are gray or colour images of named classes."""
    shape = dataset.train.inputs.shape
    return bool(dataset.classes) and len(shape) == 4 and shape[1] in (1, 3)


def contact_sheet(dataset: Dataset, subtitle: str, entry: Entry | None = None) -> bytes:
    """A PNG: a row of training samples for each class, the first ones in the order of the files.

    `entry` says how they were normalised; otherwise the darkest value becomes black, the
    brightest white.
    """
    labels = dataset.train.class_labels
    if labels is None or not can_be_pictured(dataset):
        raise InputError(f"{dataset.name} holds no images of named classes")
    black, white = _levels(dataset, entry)
    title, text, small = (ImageFont.load_default(size) for size in (22, 15, 12))
    columns = -(-len(dataset.classes) // _ROWS)
    rows = -(-len(dataset.classes) // columns)
    per_class = 10 if columns <= 2 else 6

    height, width = dataset.train.inputs.shape[2:]
    factor = max(1, round(_TILE / width))  # a whole one, so that pixels stay square
    tile = width * factor, height * factor
    samples_width = per_class * (tile[0] + _GAP)
    names_width = 16 + int(max(64, *(text.getlength(name) for name in dataset.classes)))
    column, row = names_width + samples_width, max(tile[1] + 2 * _GAP, 40)
    size = (
        2 * _EDGE + columns * column + (columns - 1) * _BETWEEN,
        _HEAD + rows * row + _EDGE,
    )

    sheet = Image.new("RGB", size, _PAPER)
    pen = ImageDraw.Draw(sheet)
    pen.text((_EDGE, 18), dataset.name, _INK, title)
    pen.text((_EDGE, 48), subtitle, _FAINT, small)
    for label, name in enumerate(dataset.classes):
        x, y = _EDGE + label // rows * (column + _BETWEEN), _HEAD + label % rows * row
        members = np.flatnonzero(labels == label)
        pen.line((x, y, x + column - _GAP, y), _RULE)
        pen.text((x, y + row // 2 - 1), name, _INK, text, anchor="ls")
        pen.text((x, y + row // 2 + 3), f"{len(members):,}", _FAINT, small, anchor="la")
        for place, index in enumerate(members[:per_class]):
            corner = x + names_width + place * (tile[0] + _GAP), y + (row - tile[1]) // 2
            picture = _picture(dataset.train.inputs[int(index)], black, white)
            sheet.paste(picture.resize(tile, Image.Resampling.NEAREST), corner)
    content = io.BytesIO()
    sheet.save(content, "PNG", optimize=True)
    return content.getvalue()


def _levels(dataset: Dataset, entry: Entry | None) -> tuple[Tensor, Tensor]:
    """The input values that are to be black and white, for each channel."""
    if entry is None:
        some = dataset.train.inputs[:_LOOKED_AT].float()
        return some.min().view(1, 1, 1), some.max().view(1, 1, 1)
    mean, deviation = (torch.tensor(each).view(-1, 1, 1) for each in (entry.mean, entry.deviation))
    return -mean / deviation, (1 - mean) / deviation


def _picture(sample: Tensor, black: Tensor, white: Tensor) -> Image.Image:
    shares = ((sample.float() - black) / (white - black).clamp_min(1e-9)).clip(0, 1)
    pixels = (shares * 255).round().to(torch.uint8).permute(1, 2, 0).numpy()
    return Image.fromarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels)
