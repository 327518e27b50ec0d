"""Data sets: what is found and where, how it is read, and what damaged files say."""

import dataclasses
import gzip
import io
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from bellwether import data
from bellwether.core.errors import InputError
from bellwether.data import catalogue, idx, parquet
from data_files import (
    COLOUR,
    GRAY,
    LABELS,
    encoded,
    idx_bytes,
    pixels,
    write,
    write_cifar,
    write_idx,
    write_parquet,
)


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No data set is found and nothing cached unless the test puts it there."""
    monkeypatch.delenv("BELLWETHER_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def message(name: str, root: Path | None = None) -> str:
    with pytest.raises(InputError) as raised:
        data.load(name, root)
    assert "\n" not in str(raised.value)
    return str(raised.value)


# The embedded digits


def test_digits() -> None:
    digits = data.load("digits")
    assert digits.train.inputs.shape == (1442, 1, 8, 8)
    assert digits.test.inputs.shape == (355, 1, 8, 8)
    assert digits.train.inputs.dtype == torch.float32
    assert digits.train.targets.dtype == torch.int64
    assert (digits.name, digits.source) == ("digits", "embedded")
    assert digits.classes == tuple("0123456789")
    test, train = (part.targets.bincount() for part in (digits.test, digits.train))
    assert torch.equal(test, (test + train) // 5)
    assert abs(digits.train.inputs.mean()) < 1e-3
    assert abs(digits.train.inputs.std() - 1) < 1e-3
    assert digits.test.targets[:12].tolist() == [5, 0, 9, 8, 7, 1, 2, 6, 3, 4, 0, 2]
    first = [0, 0, 5, 13, 9, 1, 0, 0, 0, 0, 13, 15, 10, 15, 5, 0]
    assert pixels(digits.train.inputs, "digits")[0].ravel()[:16].tolist() == first


# IDX


@settings(deadline=None)
@given(
    array=arrays.arrays(np.uint8, st.lists(st.integers(0, 5), min_size=1, max_size=4).map(tuple)),
    zipped=st.booleans(),
    name=st.sampled_from(["x-ubyte", "x-ubyte.gz"]),
)
def test_idx_round_trip_by_content_not_by_name(
    tmp_path_factory: pytest.TempPathFactory, array: np.ndarray, zipped: bool, name: str
) -> None:
    content = gzip.compress(idx_bytes(array)) if zipped else idx_bytes(array)
    file = write(tmp_path_factory.getbasetemp() / name, content)
    np.testing.assert_array_equal(idx.read(file, array.ndim), array, strict=True)


WHOLE = idx_bytes(GRAY)
ZIPPED = gzip.compress(WHOLE, mtime=0)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is not an IDX file"),
        (b"<!DOCTYPE html>", "is not an IDX file"),
        (gzip.compress(b"PK", mtime=0), "is not an IDX file"),
        (b"\0\0\x0d" + WHOLE[3:], "holds values of type 13, expected unsigned bytes"),
        (idx_bytes(np.zeros(3, np.uint8)), "has 1 dimensions, expected 3"),
        (WHOLE[:9], "ends inside its header"),
        (WHOLE[:-1], "holds 3919 values but its header says 3920"),
        (gzip.compress(WHOLE[:-1], mtime=0), "holds 3919 values but its header says 3920"),
        (WHOLE + b"\0", "holds 3921 values but its header says 3920"),
        (b"\0\0\x08\x03" + b"\xff" * 12, f"holds 0 values but its header says {(2**32 - 1) ** 3}"),
        (ZIPPED[:2], "is cut short (truncated gzip)"),
        (ZIPPED[: len(ZIPPED) // 2], "is cut short (truncated gzip)"),
        (ZIPPED[:-1], "is cut short (truncated gzip)"),
        (ZIPPED[:-8] + bytes(8), "is damaged (corrupt gzip"),
        (ZIPPED[:10] + b"\xff" * 50 + ZIPPED[60:], "is damaged (corrupt gzip"),
    ],
)
def test_idx_damage_is_named(tmp_path: Path, content: bytes, says: str) -> None:
    file = write(tmp_path / "x-ubyte", content)
    with pytest.raises(InputError) as raised:
        idx.read(file, 3)
    assert str(raised.value).startswith(f"{file} {says}")
    assert "\n" not in str(raised.value)


@settings(deadline=None, max_examples=200)
@given(position=st.integers(0, len(ZIPPED) - 1), value=st.integers(0, 255), cut=st.booleans())
def test_no_damage_to_a_zipped_file_goes_unseen(
    tmp_path_factory: pytest.TempPathFactory, position: int, value: int, cut: bool
) -> None:
    changed = ZIPPED[:position] if cut else bytearray(ZIPPED)
    if isinstance(changed, bytearray):
        changed[position] = value
    file = write(tmp_path_factory.getbasetemp() / "damaged", bytes(changed))
    complaint = ""
    try:
        array = idx.read(file, 3)
    except InputError as error:
        complaint = str(error)
    if complaint:
        assert complaint.startswith(str(file))
    else:  # only the gzip header's time stamp and the like may differ
        np.testing.assert_array_equal(array, GRAY)
        assert not cut


def test_parts_that_do_not_belong_together(tmp_path: Path) -> None:
    labels = tmp_path / "mnist" / "train-labels-idx1-ubyte.gz"
    folder = write_idx(tmp_path / "mnist", GRAY[:4])
    assert f"{labels} has 5 labels but its images are 4" in message("mnist", tmp_path)

    write_idx(folder, labels=[3, 0, 10, 3, 1])
    says = f"{labels} has label 10 at position 2; labels must be 0 to 9"
    assert says in message("mnist", tmp_path)

    write_idx(folder, GRAY[:, :27])
    assert "are 27x28, expected 28x28" in message("mnist", tmp_path)

    write_idx(folder, GRAY[:0], [])
    assert "mnist (train) has no samples" in message("mnist", tmp_path)

    labels.unlink()
    says = f"{folder} is incomplete: add train-labels-idx1-ubyte (.gz or not)"
    assert says in message("mnist", tmp_path)


def test_a_file_that_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot read .*gone: No such file"):
        idx.read(tmp_path / "gone", 3)


def test_load_normalises(tmp_path: Path) -> None:
    mnist = data.load("mnist", write_idx(tmp_path / "mnist", end="").parent)
    assert mnist.train.inputs.dtype == torch.float32
    assert mnist.train.targets.tolist() == LABELS
    assert mnist.test.targets.tolist() == LABELS[::-1]
    np.testing.assert_array_equal(pixels(mnist.train.inputs, "mnist")[..., 0], GRAY)
    np.testing.assert_array_equal(pixels(mnist.test.inputs, "mnist")[..., 0], GRAY[::-1])
    expected = (torch.from_numpy(GRAY).double() / 255 - 0.1307) / 0.3081
    torch.testing.assert_close(mnist.train.inputs[:, 0].double(), expected, atol=1e-6, rtol=0)


def test_the_emnist_release_that_is_stored_transposed_is_read_upright(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_idx(tmp_path / "emnist", starts=("emnist-bymerge-train", "emnist-bymerge-test"))
    entry = catalogue.CATALOGUE["emnist-bymerge"]
    assert entry.transposed_release == 697_932
    stored = data.load("emnist-bymerge", tmp_path)
    release = dataclasses.replace(entry, transposed_release=len(LABELS))
    monkeypatch.setitem(catalogue.CATALOGUE, "emnist-bymerge", release)
    upright = data.load("emnist-bymerge", tmp_path)
    for before, after in ((stored.train, upright.train), (stored.test, upright.test)):
        assert torch.equal(before.inputs.transpose(2, 3), after.inputs)


# Where data sets are looked for


def test_places_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    system = tmp_path / "packages" / "dataset-fashion-mnist"
    entry = dataclasses.replace(catalogue.CATALOGUE["fashion-mnist"], system_folder=system)
    monkeypatch.setitem(catalogue.CATALOGUE, "fashion-mnist", entry)
    monkeypatch.setenv("BELLWETHER_DATA", str(tmp_path / "variable"))
    expected = [
        tmp_path / "root" / "fashion_mnist",
        tmp_path / "variable" / "fashion-mnist",
        tmp_path / "cache" / "bellwether" / "FashionMNIST" / "raw",
        system,
    ]
    for folder in reversed(expected):
        write_idx(folder)
        root = tmp_path / "root" if folder is expected[0] else None
        assert data.load("fashion-mnist", root).source == str(folder)


@pytest.mark.parametrize(
    ("name", "folder"),
    [("mnist", "mnist"), ("mnist", "MNIST/raw"), ("fashion-mnist", "FashionMNIST/raw")],
)
def test_a_root_that_is_the_data_sets_own_folder(tmp_path: Path, name: str, folder: str) -> None:
    write_idx(tmp_path / folder)
    root = tmp_path / folder.split("/")[0]
    assert data.load(name, root).source == str(tmp_path / folder)


def test_files_of_another_data_set_are_not_taken(tmp_path: Path) -> None:
    write_idx(tmp_path / "mnist")
    assert "fashion-mnist was not found" in message("fashion-mnist", tmp_path / "mnist")


def test_kaggles_names_with_a_dot(tmp_path: Path) -> None:
    folder = write_idx(tmp_path / "mnist", end="")
    for file in folder.iterdir():
        file.rename(folder / file.name.replace("-idx", ".idx"))
    assert data.load("mnist", tmp_path).train.size == 5


def test_missing_data_set_says_where_and_what(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BELLWETHER_DATA", str(tmp_path / "gone"))
    (tmp_path / "root").mkdir()
    says = message("mnist", tmp_path / "root")
    places = [f"{tmp_path / 'root'}, ", f"{tmp_path / 'gone'} (no such folder), "]
    assert "".join(places) + str(tmp_path / "cache" / "bellwether") in says
    assert "set BELLWETHER_DATA to a folder that holds mnist/train-images-idx3-ubyte.gz" in says
    assert "cifar10/train-00000-of-00001.parquet" in message("cifar10")
    assert "/usr/share/dataset-fashion-mnist" in message("fashion-mnist")
    assert "is not a folder" in message("mnist", tmp_path / "gone")


def test_unknown_name_gets_the_closest() -> None:
    assert "did you mean" in message("emnist")
    assert "emnist-bymerge" in message("emnist")
    assert "did you mean fashion-mnist" in message("fashion_mnist")


def test_names_describe_every_data_set() -> None:
    assert len(data.names()) == 12
    for name, entry in catalogue.CATALOGUE.items():
        assert "x".join(map(str, entry.shape)) in data.names()[name]
        assert len(set(entry.classes)) == len(entry.classes)
        assert len(entry.mean) == len(entry.deviation) == entry.shape[0]


# Parquet


@pytest.mark.parametrize("names", ["img label", "image fine_label", "image labels"])
@pytest.mark.parametrize("bare", [True, False])
def test_parquet_round_trip(tmp_path: Path, names: str, bare: bool) -> None:
    images: list[Any] = [encoded(image) for image in COLOUR]
    if not bare:
        images = [{"bytes": image, "path": None} for image in images]
    folder = tmp_path / "cifar10" / "plain_text"
    shards = [(slice(0, 2), "0-of-2"), (slice(2, 5), "1-of-2")]
    for rows, shard in shards:
        write_parquet(folder / f"train-{shard}.parquet", images[rows], LABELS[rows], names)
    write_parquet(folder / "test.parquet", images, names=names)
    cifar = data.load("cifar10", tmp_path)
    assert cifar.source == str(folder)
    assert cifar.train.inputs.shape == (5, 3, 32, 32)
    np.testing.assert_array_equal(pixels(cifar.train.inputs, "cifar10"), COLOUR)
    assert cifar.train.targets.tolist() == cifar.test.targets.tolist() == LABELS


def test_gray_images_in_parquet(tmp_path: Path) -> None:
    for part in ("train", "test"):
        write_parquet(tmp_path / "mnist" / f"{part}.parquet", [encoded(image) for image in GRAY])
    mnist = data.load("mnist", tmp_path)
    np.testing.assert_array_equal(pixels(mnist.train.inputs, "mnist")[..., 0], GRAY)


GOOD = [encoded(image) for image in COLOUR]


@pytest.mark.parametrize(
    ("images", "labels", "names", "says"),
    [
        (GOOD, [*LABELS[:4], 10], "img label", "has label 10 at position 4; labels must be 0 to 9"),
        (GOOD, [*LABELS[:4], -1], "img label", "has label -1 at position 4; labels must be 0 to 9"),
        (GOOD, [*LABELS[:4], None], "img label", "row 4: the label must be a whole number"),
        (GOOD, list("abcde"), "img label", "row 0: the label must be a whole number, got 'a'"),
        (GOOD, LABELS, "picture label", "columns picture, label; one must be named img or image"),
        (GOOD, LABELS, "img y", "columns img, y; one must be named label or fine_label or labels"),
        ([*GOOD[:4], None], LABELS, "img label", "row 4: no bytes of an image"),
        ([{"bytes": None, "path": "a.png"}] * 5, LABELS, "img label", "row 0: no bytes"),
        ([*GOOD[:4], b"junk"], LABELS, "img label", "row 4: not a readable PNG or JPEG"),
        ([GOOD[0][:-40], *GOOD[1:]], LABELS, "img label", "row 0: not a readable PNG or JPEG"),
        ([encoded(COLOUR[0], "BMP")] * 5, LABELS, "img label", "row 0: not a readable PNG"),
        ([encoded(GRAY[0])] * 5, LABELS, "img label", "row 0: the image is 28x28, expected 32x32"),
    ],
)
def test_parquet_mistakes(
    tmp_path: Path, images: list[Any], labels: list[Any], names: str, says: str
) -> None:
    folder = write_cifar(tmp_path / "cifar10")
    file = write_parquet(folder / "train-00000-of-00001.parquet", images, labels, names)
    complaint = message("cifar10", tmp_path)
    assert complaint.startswith(str(file))
    assert says in complaint


@pytest.mark.parametrize("damage", ["empty", "text", "cut", "middle", "footer"])
def test_damaged_parquet(tmp_path: Path, damage: str) -> None:
    file = write_cifar(tmp_path / "cifar10") / "train-00000-of-00001.parquet"
    whole = file.read_bytes()
    file.write_bytes(
        {
            "empty": b"",
            "text": b"version https://git-lfs.github.com/spec/v1\n",
            "cut": whole[: len(whole) // 2],
            "middle": whole[:4] + b"\xff" * 200 + whole[204:],
            "footer": whole[:-60] + b"\xff" * 40 + whole[-20:],
        }[damage]
    )
    assert message("cifar10", tmp_path).startswith(f"{file} cannot be read as Parquet: ")


def test_parquet_without_its_other_half(tmp_path: Path) -> None:
    folder = write_cifar(tmp_path / "cifar10")
    (folder / "test-00000-of-00001.parquet").unlink()
    assert f"{folder} is incomplete: add its *test*.parquet" in message("cifar10", tmp_path)


def test_the_parquet_extra_is_named_when_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_cifar(tmp_path / "cifar10")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.delitem(sys.modules, "bellwether.data.parquet")
    monkeypatch.delattr(data, "parquet")
    assert "pip install 'bellwether-fl[parquet]'" in message("cifar10", tmp_path)


# The cache of decoded images


@pytest.fixture
def decodings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files that were decoded so far."""
    done: list[str] = []
    read = parquet.read_part

    def counted(shards: tuple[Path, ...], entry: catalogue.Entry) -> Any:
        done.extend(shard.name for shard in shards)
        return read(shards, entry)

    monkeypatch.setattr(parquet, "read_part", counted)
    return done


def test_cache_is_used_and_follows_the_files(tmp_path: Path, decodings: list[str]) -> None:
    folder = write_cifar(tmp_path / "cifar10")
    first = data.load("cifar10", tmp_path)
    again = data.load("cifar10", tmp_path)
    assert len(decodings) == 2
    for a, b in ((first.train, again.train), (first.test, again.test)):
        assert torch.equal(a.inputs, b.inputs)
        assert torch.equal(a.targets, b.targets)

    file = folder / "train-00000-of-00001.parquet"
    before = file.stat()
    write_parquet(file, [{"bytes": image, "path": "a.png"} for image in GOOD], [9, 0, 9, 3, 1])
    assert file.stat().st_size == before.st_size
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert data.load("cifar10", tmp_path).train.targets.tolist() == [9, 0, 9, 3, 1]
    assert decodings[2:] == [file.name]


@pytest.mark.parametrize("damage", ["empty", "cut", "flipped", "pickle", "other"])
def test_damaged_cache_is_made_anew(tmp_path: Path, decodings: list[str], damage: str) -> None:
    write_cifar(tmp_path / "cifar10")
    first = data.load("cifar10", tmp_path)
    kept = sorted((tmp_path / "cache" / "bellwether").rglob("*.*"))
    assert [file.suffix for file in kept] == [".npz", ".npz"]
    for file in kept:
        whole = file.read_bytes()
        content = io.BytesIO()
        if damage == "pickle":
            np.savez(content, images=np.array([{}], dtype=object), labels=np.array([{}]))
        elif damage == "other":
            np.savez(content, something=np.zeros(3))
        elif damage == "cut":
            content.write(whole[:-100])
        elif damage == "flipped":
            middle = len(whole) // 2
            content.write(whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :])
        file.write_bytes(content.getvalue())
    second = data.load("cifar10", tmp_path)
    assert torch.equal(first.train.inputs, second.train.inputs)
    assert torch.equal(first.test.targets, second.test.targets)
    assert len(decodings) == 4
    data.load("cifar10", tmp_path)
    assert len(decodings) == 4


def test_without_a_writable_cache(tmp_path: Path, decodings: list[str]) -> None:
    write(tmp_path / "cache", b"a file where the folder would be")
    write_cifar(tmp_path / "cifar10")
    for _ in range(2):
        assert data.load("cifar10", tmp_path).train.targets.tolist() == LABELS
    assert len(decodings) == 4


def test_a_damaged_file_is_not_cached(tmp_path: Path) -> None:
    folder = write_cifar(tmp_path / "cifar10")
    write(folder / "train-00000-of-00001.parquet", b"junk")
    message("cifar10", tmp_path)
    assert not (tmp_path / "cache").exists()
