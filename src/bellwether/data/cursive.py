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
    left, top, right, bottom = font.getbbox(character)
    missing = font.getmask(_NOBODY)
    mask = font.getmask(character)
    if not mask.getbbox() or (mask.size == missing.size and bytes(mask) == bytes(missing)):
        raise InputError(f"the font {file} has no {character!r}; give another font")
    picture = Image.new("L", (SIDE, SIDE))
    corner = ((SIDE - left - right) / 2, (SIDE - top - bottom) / 2)
    ImageDraw.Draw(picture).text(corner, character, fill=255, font=font)
    return picture
