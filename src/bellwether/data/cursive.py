"""Characters rendered in a cursive font: the synthetic server data of FSL (FSLsyn).

Of each character five angles times three sizes, drawn on a square of 2 x 2 inches in 100, 110 and
120 points and then made 28 x 28; white ink on black, as EMNIST.
"""

from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from bellwether.core.errors import InputError
from bellwether.data.catalogue import Entry
from bellwether.data.part import Part

ANGLES = (-20, -10, 0, 10, 20)
"""Degrees, counter-clockwise."""
POINTS = (100, 110, 120)
DOTS_PER_INCH = 100
SIDE = 2 * DOTS_PER_INCH
_NOBODY = "\U0010ffff"  # no font has this character: what it draws stands for missing ones


def rendered(file: Path, entry: Entry) -> Part:
    """Every class's character in this font: by class, then by angle, then by size."""
    _, height, width = entry.shape
    fonts = [_font(file, points) for points in POINTS]
    images = []
    for character in entry.classes:
        upright = [_drawn(font, character, file) for font in fonts]
        for angle in ANGLES:
            for picture in upright:
                turned = picture.rotate(angle, Image.Resampling.BICUBIC)
                images.append(turned.resize((width, height), Image.Resampling.BOX))
    labels = np.repeat(np.arange(len(entry.classes)), len(ANGLES) * len(POINTS))
    return Part(np.stack(list(map(np.asarray, images)))[..., np.newaxis], labels)


def _font(file: Path, points: int) -> ImageFont.FreeTypeFont:
    try:
        pixels = points * DOTS_PER_INCH / 72
        return ImageFont.truetype(file, pixels, layout_engine=ImageFont.Layout.BASIC)
    except Exception as error:  # FreeType's errors are of several kinds
        raise InputError(f"{file} cannot be read as a font; give a .ttf or .otf file") from error


def _drawn(font: ImageFont.FreeTypeFont, character: str, file: Path) -> Image.Image:
    """The character with the middle of its ink in the middle of the square."""
    ink = _ink(font, character)
    if ink is None or ink == _ink(font, _NOBODY):
        raise InputError(f"the font {file} has no {character!r}; give another font")
    square = Image.new("L", (SIDE, SIDE))
    square.paste(ink, ((SIDE - ink.width) // 2, (SIDE - ink.height) // 2))
    return square


def _ink(font: ImageFont.FreeTypeFont, character: str) -> Image.Image | None:
    """What is drawn, without margins; None for nothing."""
    canvas = Image.new("L", (3 * SIDE, 3 * SIDE))
    ImageDraw.Draw(canvas).text((SIDE, SIDE), character, fill=255, font=font)
    box = canvas.getbbox()
    return canvas.crop(box) if box else None
