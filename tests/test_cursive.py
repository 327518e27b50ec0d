"""The rendered characters: how many, how they look, and which font is taken."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen

from bellwether import data, federate, server_data
from bellwether.core.errors import InputError
from bellwether.data import catalogue, fonts
from data_files import encoded, pixels, write, write_idx

CHARACTERS = catalogue.CATALOGUE["cursive"].classes
MATPLOTLIB = "mpl-data/fonts/ttf/STIXGeneralItalic.ttf"


def bars(file: Path, characters: str = "".join(CHARACTERS)) -> Path:
    """A font in which each character is an upright bar, 100 wide, 400 + 5 i high of 1000."""
    names = [".notdef", *(f"g{ord(character)}" for character in characters)]
    glyphs = {}
    for i, name in enumerate(names):
        pen = TTGlyphPen(None)
        top = 400 + 5 * (i - 1) if i else 200
        for corner, move in (((0, 0), "moveTo"), ((0, top), "lineTo"), ((100, top), "lineTo")):
            getattr(pen, move)(corner)
        pen.lineTo((100, 0))
        pen.closePath()
        glyphs[name] = pen.glyph()
    font = FontBuilder(1000)
    font.setupGlyphOrder(names)
    font.setupCharacterMap({ord(c): f"g{ord(c)}" for c in characters})
    font.setupGlyf(glyphs)
    font.setupHorizontalMetrics(dict.fromkeys(names, (200, 0)))
    font.setupHorizontalHeader(ascent=800, descent=-200)
    font.setupNameTable({"familyName": "Bars", "styleName": "Regular"})
    font.setupOS2()
    font.setupPost()
    file.parent.mkdir(parents=True, exist_ok=True)
    font.save(file)
    return file


def shown(font: Path) -> np.ndarray:
    """[class, angle, size, height, width] in bytes."""
    found = data.load("cursive", font)
    assert found.test is None
    images = pixels(found.train.inputs, "cursive")
    assert images.shape == (705, 28, 28, 1)
    return images.reshape(47, 5, 3, 28, 28)


def slope(image: np.ndarray) -> float:
    """The angle of the ink's long axis to the vertical, in degrees counter-clockwise."""
    weight = image.astype(float) / image.sum()
    rows, columns = np.mgrid[:28, :28]
    y, x = rows - (weight * rows).sum(), columns - (weight * columns).sum()
    xy, xx, yy = ((weight * a * b).sum() for a, b in ((x, y), (x, x), (y, y)))
    return float(np.degrees(0.5 * np.arctan2(2 * xy, yy - xx)))


def test_angles_sizes_and_ink_are_those_of_the_paper(tmp_path: Path) -> None:
    images = shown(bars(tmp_path / "bars.ttf"))
    ink = images.astype(float).sum(axis=(3, 4)) / 255
    # In pixels of 28 to 2 inches a bar is 14 points / 72 x 0.1 wide and 0.4 + 0.005 i high.
    for k, points in enumerate((100, 110, 120)):
        em = points / 72 * 14
        for i in (0, 20, 46):
            expected = 0.1 * em * (0.4 + 0.005 * i) * em
            assert ink[i, :, k] == pytest.approx(np.full(5, expected), rel=0.1)
    for i in range(47):
        for angle, drawn in zip((-20, -10, 0, 10, 20), images[i], strict=True):
            assert [slope(image) for image in drawn] == pytest.approx([angle] * 3, abs=1)
    assert images[:, :, :, 0].max() == images[:, :, :, :, 0].max() == 0  # black around
    assert images.max(axis=(3, 4)).min() > 200
    rows = np.arange(28) + 0.5
    middle = (images.sum(axis=4) * rows).sum(axis=3) / images.sum(axis=(3, 4))
    assert np.abs(middle - 14).max() < 0.3


def test_a_real_font_of_matplotlib() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    file = Path(matplotlib.__file__).parent / MATPLOTLIB
    images = shown(file)
    found = data.load("cursive", file)
    assert found.source == str(file)
    assert found.train.targets.bincount().tolist() == [15] * 47
    assert found.classes == CHARACTERS
    assert images.max(axis=(3, 4)).min() > 150
    flat = images.reshape(705, -1)
    assert len(np.unique(flat, axis=0)) == 705  # every angle and size gives another picture
    assert (images > 0).mean() < 0.35  # thin white ink on black, as EMNIST
    again = data.load("cursive", file)
    assert torch.equal(found.train.inputs, again.train.inputs)


def test_it_fits_clients_of_emnist_balanced(tmp_path: Path) -> None:
    labels = [44, 46, 0, 45, 7]
    write_idx(
        tmp_path / "emnist",
        labels=labels,
        starts=("emnist-balanced-train", "emnist-balanced-test"),
    )
    clients = data.load("emnist-balanced", tmp_path, classes=45)
    rendered = data.load("cursive", bars(tmp_path / "bars.ttf"), classes=45)
    assert clients.train.targets.tolist() == [44, 0, 7]
    assert clients.classes == rendered.classes == CHARACTERS[:45]
    federation = federate(clients, clients=3, server=server_data.Other(rendered))
    assert federation.server(1).targets.bincount().tolist() == [15] * 45


def complaint(root: Path | None) -> str:
    with pytest.raises(InputError) as raised:
        data.load("cursive", root)
    assert "\n" not in str(raised.value)
    return str(raised.value)


def test_fonts_that_cannot_serve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    junk = write(tmp_path / "junk.ttf", b"junk")
    says = f"{junk} cannot be read as a font; give a .ttf or .otf file"
    assert complaint(junk) == says
    picture = write(tmp_path / "picture.ttf", encoded(np.zeros((5, 5), np.uint8)))
    assert complaint(picture).startswith(f"{picture} cannot be read as a font")
    digits = bars(tmp_path / "digits.ttf", "0123456789")
    assert complaint(digits) == f"the font {digits} has no 'A'; give another font"
    gone = tmp_path / "gone.ttf"
    assert complaint(gone) == f"{gone} is no font file and no folder of fonts"
    monkeypatch.setattr(fonts, "_folders", lambda: iter([tmp_path / "gone"]))
    says = complaint(None)
    assert says.startswith("no cursive font was found; install one (Debian: fonts-dancingscript)")


@pytest.mark.skipif(sys.platform != "linux", reason="the folders are those of Linux")
def test_the_best_font_of_the_user_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    home = tmp_path / "share" / "fonts"
    for name in ("Arial.ttf", "DancingScript-Bold.ttf", "deeper/Dancing Script Regular.ttf"):
        bars(home / name)
    write(home / "Apple Chancery.txt", b"no font")
    assert data.load("cursive").source == str(home / "deeper" / "Dancing Script Regular.ttf")
    bars(tmp_path / "mine" / "Pacifico.ttf")  # a folder that is given goes before all others
    found = data.load("cursive", tmp_path / "mine")
    assert found.source == str(tmp_path / "mine" / "Pacifico.ttf")
