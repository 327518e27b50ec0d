"""`bellwether data list` and `show`, and the picture of samples."""

import io
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from bellwether.cli import main
from bellwether.core.dataset import Dataset, Samples
from bellwether.core.errors import InputError
from bellwether.data.catalogue import CATALOGUE, Entry
from bellwether.data.part import Part, normalised
from bellwether.report.contact_sheet import contact_sheet

Run = Callable[..., tuple[int, str, str]]
CLASSES = ("plenty", "few", "none", "last")
COLOURS = ((200, 30, 40), (10, 120, 250), (90, 90, 90), (15, 160, 75))
COUNTS = (12, 2, 0, 1)
ENTRY = Entry("four colours", CLASSES, (3, 8, 4), (0.5, 0.4, 0.3), (0.3, 0.2, 0.1))
COLOUR = Part(
    np.concatenate(
        [
            np.full((count, 8, 4, 3), colour, dtype=np.uint8)
            for count, colour in zip(COUNTS, COLOURS, strict=True)
        ]
    ),
    np.repeat(np.arange(4), COUNTS),
)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """The command in a folder of its own, where nothing but the digits is found."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BELLWETHER_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["bellwether", "data", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        return int(end.value.code or 0), *capsys.readouterr()

    return run


def colours(png: bytes) -> dict[tuple[int, ...], int]:
    """How many pixels of the picture have each of the colours."""
    pixels = np.asarray(Image.open(io.BytesIO(png)).convert("RGB"))
    return {colour: int((pixels == colour).all(-1).sum()) for colour in COLOURS}


def test_a_picture_holds_ten_samples_of_each_class_as_they_were() -> None:
    dataset = Dataset("colours", normalised(COLOUR, ENTRY), classes=CLASSES)
    tile = (8 * 13) * (4 * 13)  # enlarged by a whole number to about 52 pixels
    shown = [tile * min(count, 10) for count in COUNTS]
    assert list(colours(contact_sheet(dataset, "", ENTRY)).values()) == shown


def test_a_picture_of_many_classes_has_columns() -> None:
    count = 200
    samples = Samples(torch.rand(count * 7, 1, 28, 28), torch.arange(count * 7) % count)
    dataset = Dataset("many", samples, classes=tuple(map(str, range(count))))
    width, height = Image.open(io.BytesIO(contact_sheet(dataset, ""))).size
    assert height < width < 3 * height


def test_what_has_no_picture() -> None:
    flat = Dataset("flat", Samples(torch.rand(3, 5), torch.tensor([0, 1, 1])), classes=("a", "b"))
    with pytest.raises(InputError, match="flat holds no images"):
        contact_sheet(flat, "")


def test_list_says_what_there_is_and_where(run: Run, tmp_path: Path) -> None:
    (tmp_path / "cache/bellwether/cifar10").mkdir(parents=True)
    (tmp_path / "cache/bellwether/cifar10/train.parquet").touch()
    code, stdout, _ = run("list")
    assert code == 0
    lines = dict(zip(*[iter(stdout.splitlines())] * 2, strict=True))
    where = {line.split()[0]: found.strip() for line, found in lines.items()}
    assert list(where) == list(CATALOGUE)
    assert where["digits"] == "published: 1,442 + 355 images; found: embedded"
    assert where["mnist"] == (
        "published: 60,000 + 10,000 images; not found; run: bellwether data get mnist"
    )
    assert where["emnist-balanced"].endswith("put its files into BELLWETHER_DATA/emnist-balanced")
    assert where["cifar10"].endswith("is incomplete: add its *test*.parquet")


def test_show_counts_and_draws(run: Run, tmp_path: Path) -> None:
    code, stdout, stderr = run("show", "digits")
    assert code == 0, stderr
    assert "1,442 for training, 355 for testing" in stdout
    assert "1x8x8, float32" in stdout
    assert "(pixel / 16 - mean) / deviation, mean 0.3051, deviation 0.3762" in stdout
    assert "CC BY 4.0" in stdout
    rows = [line.split() for line in stdout.splitlines() if line[:1].isdigit()]
    assert rows[3] == ["3", "147", "36"]
    assert sum(int(train) for _, train, _ in rows) == 1442
    picture = tmp_path / "runs/data/digits.png"
    assert f"Samples of each class: {picture}\n" in stdout
    with Image.open(picture) as image:
        assert image.format == "PNG"


def test_show_of_ones_own_images(run: Run, tmp_path: Path) -> None:
    for label, image in zip(COLOUR.labels, COLOUR.images, strict=True):
        folder = tmp_path / "a[/b]" / CLASSES[label]
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(folder / f"{len(list(folder.iterdir()))}.png")
    code, stdout, stderr = run("show", "a[/b]", "--out", "here.png")
    assert code == 0, stderr
    assert "b]: your own data" in stdout
    assert ["plenty", "12"] in [line.split() for line in stdout.splitlines()]
    assert (tmp_path / "here.png").stat().st_size > 1000


def test_mistakes_are_one_line(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for arguments, message in {
        ("show", "mnits"): "did you mean mnist",
        ("show", "mnist"): "run: bellwether data get mnist, or set BELLWETHER_DATA",
        ("show", "digits", "--out", "file/a.png"): "cannot write",
        ("get", "digits"): "digits needs no download",
    }.items():
        code, _, stderr = run(*arguments)
        assert code == 2
        assert message in stderr
        assert stderr.count("\n") == 1


def test_help_teaches(run: Run) -> None:
    assert "bellwether data show digits" in run("--help")[1]
    assert "bellwether-fl[hub]" in " ".join(run("get", "--help")[1].split())
