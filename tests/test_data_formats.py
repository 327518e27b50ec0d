"""CIFAR's batches, STL-10's files and Tiny ImageNet's folders, and what damaged ones say."""

import dataclasses
import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from pyarrow import parquet as pq

from bellwether import data, federate, server_data
from bellwether.core.errors import InputError
from bellwether.data import catalogue
from data_files import COLOUR, LABELS, encoded, pixels, write, write_parquet

RNG = np.random.Generator(np.random.Philox(2))
LARGE = RNG.integers(0, 256, (20, 96, 96, 3), dtype=np.uint8)
SMALL = RNG.integers(0, 256, (4, 64, 64, 3), dtype=np.uint8)
LARGE_LABELS = np.arange(20) % 10


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No data set is found and nothing cached unless the test puts it there."""
    monkeypatch.delenv("BELLWETHER_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def message(name: str, root: Path, **choices: Any) -> str:
    with pytest.raises(InputError) as raised:
        data.load(name, root, **choices)
    assert "\n" not in str(raised.value)
    return str(raised.value)


# CIFAR


def planes(images: np.ndarray) -> np.ndarray:
    """One row an image: the red values row by row, the green, the blue."""
    return np.stack([images[..., c].reshape(len(images), -1) for c in range(3)], 1).reshape(
        len(images), -1
    )


def as_python_2(batch: dict[str, Any]) -> bytes:
    """The pickle that Python 2's cPickle wrote: names and data are byte strings there.

    Written by hand, opcode by opcode, as in the published files.
    """
    rows = batch["data"]
    out = b"\x80\x02}q\x01("
    out += b"U\x04data" + b"cnumpy.core.multiarray\n_reconstruct\n"
    out += b"cnumpy\nndarray\nK\x00\x85U\x01b\x87R(K\x01"
    out += b"J" + len(rows).to_bytes(4, "little") + b"J" + rows.shape[1].to_bytes(4, "little")
    out += b"\x86cnumpy\ndtype\nU\x02u1K\x00K\x01\x87R(K\x03U\x01|NNNJ\xff\xff\xff\xff"
    out += b"J\xff\xff\xff\xffK\x00tb\x89"
    out += b"T" + rows.nbytes.to_bytes(4, "little") + rows.tobytes() + b"tb"
    for key, labels in batch.items():
        if key != "data":
            name = key.encode()
            out += (
                b"U"
                + bytes([len(name)])
                + name
                + b"]("
                + b"".join(b"K" + bytes([label]) for label in labels)
                + b"e"
            )
    return out + b"u."


WRITERS: dict[str, Callable[[dict[str, Any]], bytes]] = {
    "python 2": as_python_2,
    "protocol 2": lambda batch: pickle.dumps(batch, 2),
    "protocol 5": lambda batch: pickle.dumps(batch, 5),
}


def write_cifar10_batches(folder: Path, dump: Callable[[dict[str, Any]], bytes]) -> Path:
    """One training image a batch; the test batch holds them all."""
    rows = planes(COLOUR)
    for i in range(5):
        write(
            folder / f"data_batch_{i + 1}",
            dump({"data": rows[i : i + 1], "labels": LABELS[i : i + 1]}),
        )
    write(folder / "test_batch", dump({"data": rows, "labels": LABELS}))
    return folder


@pytest.mark.parametrize("writer", WRITERS)
def test_pickled_cifar10(tmp_path: Path, writer: str) -> None:
    folder = write_cifar10_batches(tmp_path / "cifar-10-batches-py", WRITERS[writer])
    cifar = data.load("cifar10", tmp_path)
    assert cifar.source == str(folder)
    np.testing.assert_array_equal(pixels(cifar.train.inputs, "cifar10"), COLOUR)
    assert cifar.train.targets.tolist() == cifar.test.targets.tolist() == LABELS


def test_the_byte_strings_of_python_2_are_as_it_wrote_them() -> None:
    batch = {"data": planes(COLOUR), "labels": LABELS}
    read = pickle.loads(as_python_2(batch), encoding="bytes")
    assert read[b"labels"] == LABELS
    np.testing.assert_array_equal(read[b"data"], batch["data"])


def test_binary_cifar10_in_the_data_sets_own_folder(tmp_path: Path) -> None:
    folder = tmp_path / "cifar10" / "cifar-10-batches-bin"
    rows = np.hstack([np.array(LABELS, np.uint8)[:, None], planes(COLOUR)])
    for i in range(5):
        write(folder / f"data_batch_{i + 1}.bin", rows[i].tobytes())
    write(folder / "test_batch.bin", rows[::-1].tobytes())
    cifar = data.load("cifar10", tmp_path)
    assert cifar.source == str(folder)
    np.testing.assert_array_equal(pixels(cifar.train.inputs, "cifar10"), COLOUR)
    np.testing.assert_array_equal(pixels(cifar.test.inputs, "cifar10"), COLOUR[::-1])
    assert cifar.test.targets.tolist() == LABELS[::-1]


FINE, COARSE = [99, 0, 50, 7, 42], [19, 0, 10, 3, 8]


@pytest.mark.parametrize("form", ["pickled", "binary", "parquet"])
def test_cifar100_has_two_kinds_of_labels(tmp_path: Path, form: str) -> None:
    for part in ("train", "test"):
        if form == "pickled":
            batch = {"data": planes(COLOUR), "fine_labels": FINE, "coarse_labels": COARSE}
            write(tmp_path / "cifar-100-python" / part, as_python_2(batch))
        elif form == "binary":
            rows = np.column_stack([COARSE, FINE, planes(COLOUR)]).astype(np.uint8)
            write(tmp_path / "cifar-100-binary" / f"{part}.bin", rows.tobytes())
        else:
            columns = {"img": [encoded(image) for image in COLOUR]}
            columns |= {"fine_label": FINE, "coarse_label": COARSE}
            file = tmp_path / "cifar100" / "cifar100" / f"{part}-00000-of-00001.parquet"
            file.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(pa.table(columns), file)
    fine, coarse = (data.load(name, tmp_path) for name in ("cifar100", "cifar100-coarse"))
    assert fine.train.targets.tolist() == fine.test.targets.tolist() == FINE
    assert coarse.train.targets.tolist() == coarse.test.targets.tolist() == COARSE
    assert [fine.classes[label] for label in FINE[:3]] == ["worm", "apple", "mouse"]
    assert coarse.classes[19] == "vehicles_2"
    for found in (fine, coarse):
        np.testing.assert_array_equal(pixels(found.train.inputs, "cifar100"), COLOUR)


class Command:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {os.environ['TOUCHED']}",)


@pytest.mark.parametrize(
    "content",
    [
        lambda: pickle.dumps(Command()),
        lambda: pickle.dumps({"data": planes(COLOUR), "labels": [Command()]}),
        lambda: b"cbuiltins\neval\n(S'1'\ntR.",
        lambda: b"cnumpy.core.multiarray\nscalar\n.",
        lambda: b"\x80\x04\x8c\x05numpy\x8c\x0ftesting.rundocs\x93.",
    ],
)
def test_a_pickle_with_code_in_it_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: Callable[[], bytes]
) -> None:
    monkeypatch.setenv("TOUCHED", str(tmp_path / "touched"))
    folder = write_cifar10_batches(tmp_path / "cifar10", as_python_2)
    file = write(folder / "data_batch_3", content())
    says = message("cifar10", tmp_path)
    assert says.startswith(f"{file} asks to run ")
    assert "which no batch of CIFAR does" in says
    assert not (tmp_path / "touched").exists()


ROWS = planes(COLOUR)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "cannot be read as a pickled batch (EOFError)"),
        (as_python_2({"data": ROWS, "labels": LABELS})[:-200], "cannot be read as a pickled batch"),
        (b"<!DOCTYPE html>", "cannot be read as a pickled batch"),
        (pickle.dumps([1, 2]), "is no batch of CIFAR: it has no data, or no labels"),
        (pickle.dumps({"data": ROWS}), "is no batch of CIFAR: it has no data, or no labels"),
        (pickle.dumps({"data": ROWS, "labels": LABELS[:3]}), "has 3 labels but its images are 5"),
        (
            pickle.dumps({"data": ROWS, "labels": [3, 0, 10, 3, 1]}),
            "has label 10 at position 2; labels must be 0 to 9",
        ),
        (
            pickle.dumps({"data": ROWS[:, :-1], "labels": LABELS}),
            "are uint8 [5, 3071], expected uint8 [n, 3072]",
        ),
        (
            pickle.dumps({"data": ROWS.astype(float), "labels": LABELS}),
            "are float64 [5, 3072], expected uint8 [n, 3072]",
        ),
        (pickle.dumps({"data": ROWS, "labels": ["cat"] * 5}), "are not whole numbers"),
    ],
)
def test_pickled_mistakes(tmp_path: Path, content: bytes, says: str) -> None:
    folder = write_cifar10_batches(tmp_path / "cifar10", as_python_2)
    file = write(folder / "data_batch_2", content)
    complaint = message("cifar10", tmp_path)
    assert str(file) in complaint
    assert says in complaint


def test_binary_mistakes(tmp_path: Path) -> None:
    for i in range(1, 6):
        write(tmp_path / "cifar10" / f"data_batch_{i}.bin", bytes(3073))
    says = f"{tmp_path / 'cifar10'} is incomplete: add test_batch.bin"
    assert message("cifar10", tmp_path) == says
    file = write(tmp_path / "cifar10" / "test_batch.bin", bytes(3000))
    says = f"{file} has 3000 bytes, no multiple of the 3073 of an image with its label"
    assert message("cifar10", tmp_path).startswith(says)


# STL-10


def write_stl10(folder: Path, images: np.ndarray = LARGE, first: int = 1) -> Path:
    """As published: the red values column by column, then the green, the blue; labels from 1."""
    for part in ("train", "test"):
        write(folder / f"{part}_X.bin", images.transpose(0, 3, 2, 1).tobytes())
        write(folder / f"{part}_y.bin", bytes((LARGE_LABELS + first).tolist()))
    return folder


@pytest.mark.parametrize("form", ["binary", "parquet"])
def test_stl10(tmp_path: Path, form: str) -> None:
    if form == "binary":
        folder = write_stl10(tmp_path / "stl10_binary")
    else:
        folder = tmp_path / "stl10" / "data"
        images = [encoded(image) for image in LARGE]
        for part in ("train", "test"):
            write_parquet(folder / f"{part}.parquet", images, LARGE_LABELS.tolist(), "image label")
    stl10 = data.load("stl10", tmp_path)
    assert stl10.source == str(folder)
    assert stl10.train.inputs.shape == (20, 3, 96, 96)
    np.testing.assert_array_equal(pixels(stl10.train.inputs, "stl10"), LARGE)
    assert stl10.test.targets.tolist() == LARGE_LABELS.tolist()


def test_stl10_under_the_labels_of_cifar10(tmp_path: Path) -> None:
    write_stl10(tmp_path / "stl10_binary")
    found = data.load("stl10-as-cifar10", tmp_path)
    names = dict(zip(catalogue.CATALOGUE["stl10"].classes, range(10), strict=True))
    cifar = {"car": "automobile"}
    expected = [
        found.classes.index(cifar.get(name, name)) for name in [*names, *names] if name != "monkey"
    ]
    assert found.train.targets.tolist() == expected
    assert found.classes.index("frog") not in expected
    assert found.train.inputs.shape == (18, 3, 32, 32)
    kept = LARGE[names["monkey"] != LARGE_LABELS]
    blocks = kept.reshape(18, 32, 3, 32, 3, 3).astype(float).mean(axis=(2, 4))
    read = pixels(found.train.inputs, "cifar10")  # by CIFAR-10's constants
    assert np.abs(read - blocks).max() <= 0.5 + 1e-9

    clients = data.load("cifar10", write_cifar10_batches(tmp_path / "cifar10", as_python_2).parent)
    other = server_data.Other(found, per_label=2)
    federation = federate(clients, clients=2, server=other)
    assert federation.server(1).targets.bincount().tolist() == [2] * 6 + [0, 2, 2, 2]


def test_stl10_mistakes(tmp_path: Path) -> None:
    folder = write_stl10(tmp_path / "stl10", first=0)
    says = f"{folder / 'train_y.bin'} has label 0; STL-10's labels are 1 to 10"
    assert message("stl10", tmp_path) == says
    write_stl10(folder, first=2)
    assert "train_y.bin has label 10 at position 9; labels must be 0" in message("stl10", tmp_path)
    write_stl10(folder, LARGE[:3])
    says = "train_y.bin has 20 labels but its images are 3"
    assert says in message("stl10", tmp_path)
    file = write(folder / "train_X.bin", bytes(1000))
    says = f"{file} has 1000 bytes, no multiple of the 27648 of an image"
    assert message("stl10", tmp_path).startswith(says)
    file.unlink()
    assert message("stl10", tmp_path) == f"{folder} is incomplete: add train_X.bin"


# Tiny ImageNet


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two of the classes, two images each for training and one for validation."""
    classes = ("n01443537", "n01629819")
    entry = dataclasses.replace(catalogue.CATALOGUE["tiny-imagenet"], classes=classes)
    monkeypatch.setitem(catalogue.CATALOGUE, "tiny-imagenet", entry)
    folder = tmp_path / "tiny-imagenet-200"
    for i, image in enumerate(SMALL):
        number = classes[i % 2]
        name = f"{number}_{i}.JPEG"  # PNG inside: JPEG would change the pixels
        write(folder / "train" / number / "images" / name, encoded(image))
    for i in range(2):
        write(folder / "val" / "images" / f"val_{i}.JPEG", encoded(SMALL[i]))
    lines = [f"val_{i}.JPEG\t{classes[1 - i]}\t0\t0\t62\t62\n" for i in range(2)]
    write(folder / "val" / "val_annotations.txt", "".join(lines).encode())
    write(
        folder / "words.txt",
        b"n01443537\tgoldfish, Carassius auratus\nn01629819\tEuropean fire salamander\n",
    )
    return folder


def test_tiny_imagenet(tiny: Path) -> None:
    found = data.load("tiny-imagenet", tiny.parent)
    assert found.classes == ("goldfish", "European fire salamander")
    assert found.train.targets.tolist() == [0, 0, 1, 1]
    assert found.test.targets.tolist() == [1, 0]
    np.testing.assert_array_equal(pixels(found.train.inputs, "tiny-imagenet"), SMALL[[0, 2, 1, 3]])
    np.testing.assert_array_equal(pixels(found.test.inputs, "tiny-imagenet"), SMALL[:2])
    shutil.rmtree(tiny / "val")  # sorted into folders by many recipes
    for i in range(2):
        number = ("n01443537", "n01629819")[i]
        write(tiny / "val" / number / "images" / f"val_{i}.JPEG", encoded(SMALL[i]))
    assert data.load("tiny-imagenet", tiny.parent).test.targets.tolist() == [0, 1]
    (tiny / "words.txt").unlink()
    assert data.load("tiny-imagenet", tiny.parent).classes == ("n01443537", "n01629819")


def test_tiny_imagenet_names_are_unique(tiny: Path) -> None:
    write(tiny / "words.txt", b"n01443537\tfish\nn01629819\tfish, salamander\n")
    assert data.load("tiny-imagenet", tiny.parent).classes == ("n01443537", "n01629819")


def test_tiny_imagenet_mistakes(tiny: Path) -> None:
    annotations = tiny / "val" / "val_annotations.txt"
    write(annotations, b"val_0.JPEG\tn99999999\t0\t0\n")
    says = f"{annotations}, line 1: 'n99999999' is no class of Tiny ImageNet"
    assert message("tiny-imagenet", tiny.parent) == says
    write(annotations, b"gone.JPEG\tn01443537\t0\t0\n")
    assert message("tiny-imagenet", tiny.parent).startswith(
        f"cannot read {tiny / 'val' / 'images' / 'gone.JPEG'}: No such file"
    )
    image = tiny / "train" / "n01443537" / "images" / "n01443537_0.JPEG"
    write(image, encoded(SMALL[0, :32]))
    says = f"{image}: the image is 32x64, expected 64x64"
    assert message("tiny-imagenet", tiny.parent) == says
    write(image, b"junk")
    says = f"{image}: not a readable PNG or JPEG image"
    assert message("tiny-imagenet", tiny.parent) == says
    shutil.rmtree(image.parent)
    assert f"{image.parent.parent} holds no images" in message("tiny-imagenet", tiny.parent)
    shutil.rmtree(tiny / "val")
    assert message("tiny-imagenet", tiny.parent) == f"{tiny} is incomplete: add its folder val"


# The first classes only


def test_the_first_classes(tmp_path: Path) -> None:
    folder = write_cifar10_batches(tmp_path / "cifar10", as_python_2)
    found = data.load("cifar10", tmp_path, classes=3)
    assert found.train.targets.tolist() == found.test.targets.tolist() == [0, 1]
    assert found.classes == ("airplane", "automobile", "bird")
    np.testing.assert_array_equal(pixels(found.train.inputs, "cifar10"), COLOUR[[1, 4]])
    assert torch.equal(data.load("digits", classes=2).train.targets.unique(), torch.arange(2))
    for wrong in (0, 11, -1, True):
        says = f"classes must be 1 to the 10 of cifar10, not {wrong}"
        assert message("cifar10", folder.parent, classes=wrong) == says
