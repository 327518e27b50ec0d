"""Users' own data: image folders, npz archives, torch data sets, and arrays that stay on disk."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import IterableDataset, TensorDataset

from bellwether import data
from bellwether.cli import main
from bellwether.core.errors import InputError
from data_files import encoded, write

RNG = np.random.Generator(np.random.Philox(3))
PICTURES = RNG.integers(0, 256, (12, 6, 5, 3), dtype=np.uint8)
LABELS = [2, 0, 1] * 4
CLASSES = ("cat", "dog", "owl")


def complaint(action: Callable[..., Any], *arguments: Any, **choices: Any) -> str:
    with pytest.raises(InputError) as raised:
        action(*arguments, **choices)
    assert "\n" not in str(raised.value)
    return str(raised.value)


def normalised(images: np.ndarray, train: np.ndarray | None = None) -> torch.Tensor:
    """By the mean and deviation of each channel of the training images; channels first."""
    train = (images if train is None else train).astype(float)
    values = (images - train.mean(axis=(0, 1, 2))) / train.std(axis=(0, 1, 2))
    return torch.from_numpy(values.transpose(0, 3, 1, 2))


def same(inputs: torch.Tensor, expected: torch.Tensor) -> None:
    assert inputs.dtype == torch.float32
    torch.testing.assert_close(inputs.double(), expected, atol=1e-5, rtol=0)


# Image folders


def write_folder(home: Path, images: np.ndarray = PICTURES, end: str = ".png") -> Path:
    for i, (image, label) in enumerate(zip(images, LABELS, strict=False)):
        write(home / CLASSES[label] / f"{i:02}{end}", encoded(image))
    return home


def by_class(images: np.ndarray, labels: list[int] = LABELS) -> np.ndarray:
    return images[np.argsort(labels[: len(images)], kind="stable")]


@pytest.mark.parametrize("parts", [("", ""), ("train", "test"), ("training", "val")])
def test_image_folder(tmp_path: Path, parts: tuple[str, str]) -> None:
    folder = tmp_path / "pets"
    for part, images in zip(parts, (PICTURES, PICTURES[:5]), strict=True):
        if part or images is PICTURES:
            write_folder(folder / part, images, ".PNG")
    write(folder / parts[0] / "cat" / "notes.txt", b"no image")
    (folder / parts[0] / "empty").mkdir()
    pets = data.from_image_folder(folder)
    assert (pets.name, pets.source, pets.classes) == ("pets", str(folder), CLASSES)
    assert pets.train.targets.tolist() == sorted(LABELS)
    same(pets.train.inputs, normalised(by_class(PICTURES), PICTURES))
    if parts[0]:
        assert pets.test.targets.tolist() == sorted(LABELS[:5])
        same(pets.test.inputs, normalised(by_class(PICTURES[:5]), PICTURES))
    else:
        assert pets.test is None


def test_gray_images_have_one_channel_unless_one_has_colours(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "gray", PICTURES[..., 0])
    gray = data.from_image_folder(folder)
    same(gray.train.inputs, normalised(by_class(PICTURES[..., :1])))
    write(folder / "owl" / "zz.png", encoded(PICTURES[0]))
    assert data.from_image_folder(folder).train.inputs.shape == (13, 3, 6, 5)


def test_images_of_several_sizes_need_a_size(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "pets")
    file = write(folder / "dog" / "99.png", encoded(PICTURES[0, :4]))
    assert complaint(data.from_image_folder, folder).startswith(
        f"{file}: the image is 4x5, expected 6x5"
    )
    pets = data.from_image_folder(folder, size=(3, 4))
    assert pets.train.inputs.shape == (13, 3, 3, 4)
    constant = np.full((4, 6, 5, 3), 7, np.uint8)
    constant[2:] = 77
    flat = data.from_image_folder(write_folder(tmp_path / "flat", constant), size=(2, 2))
    assert sorted(flat.train.inputs.flatten().tolist()) == pytest.approx([-1] * 24 + [1] * 24)


def test_a_class_may_be_called_train(tmp_path: Path) -> None:
    for name in ("car", "train"):
        write(tmp_path / name / "1.png", encoded(PICTURES[0]))
    assert data.from_image_folder(tmp_path).classes == ("car", "train")


def test_image_folder_mistakes(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    assert complaint(data.from_image_folder, gone) == f"{gone} is no folder of images"
    (tmp_path / "empty").mkdir()
    assert "empty holds no images" in complaint(data.from_image_folder, tmp_path / "empty")
    folder = write_folder(tmp_path / "pets" / "train").parent
    write(folder / "test" / "eel" / "1.png", encoded(PICTURES[0]))
    says = f"{folder / 'test'} has the class 'eel', of which there is no training image"
    assert complaint(data.from_image_folder, folder) == says
    (folder / "test" / "eel" / "1.png").unlink()
    write(folder / "test" / "cat" / "1.png", encoded(PICTURES[0]))
    file = write(folder / "train" / "cat" / "01.png", b"junk")
    says = f"{file}: not a readable PNG or JPEG image"
    assert complaint(data.from_image_folder, folder) == says
    write(file, encoded(PICTURES[0])[:-30])
    assert complaint(data.from_image_folder, folder, size=(3, 3)) == says
    write(file, encoded(PICTURES[0, :, :, 0].astype(np.uint16) * 256))
    says = f"{file}: the image has 16 bits a pixel; save it with 8"
    assert complaint(data.from_image_folder, folder) == says
    assert "size must be (height, width)" in complaint(data.from_image_folder, folder, size=(0, 1))


# npz archives


@pytest.mark.parametrize("medmnist", [False, True])
def test_npz(tmp_path: Path, medmnist: bool) -> None:
    y = np.array(LABELS, np.uint8)
    if medmnist:
        arrays = {"train_images": PICTURES, "train_labels": y[:, None]}
        arrays |= {"val_images": PICTURES[:1], "val_labels": y[:1, None]}
        arrays |= {"test_images": PICTURES[:3], "test_labels": y[:3, None]}
    else:
        arrays = {"x_train": PICTURES, "y_train": y, "x_test": PICTURES[:3], "y_test": y[:3]}
    file = tmp_path / "pets.npz"
    np.savez_compressed(file, **arrays)
    pets = data.from_npz(file)
    assert (pets.name, pets.source, pets.classes) == ("pets", str(file), ("0", "1", "2"))
    same(pets.train.inputs, normalised(PICTURES))
    same(pets.test.inputs, normalised(PICTURES[:3], PICTURES))
    assert pets.train.targets.tolist() == LABELS
    assert pets.test.targets.tolist() == LABELS[:3]


def test_npz_of_gray_images_of_features_and_of_values(tmp_path: Path) -> None:
    file = tmp_path / "some.npz"
    np.savez(file, x_train=PICTURES[..., 0], y_train=LABELS)
    gray = data.from_npz(file)
    same(gray.train.inputs, normalised(PICTURES[..., :1]))
    assert gray.test is None
    features = RNG.normal(size=(12, 4))
    np.savez(file, x_train=features, y_train=LABELS)
    assert torch.equal(data.from_npz(file).train.inputs, torch.from_numpy(features))
    np.savez(file, x_train=np.arange(24).reshape(12, 2), y_train=np.linspace(0, 1, 12))
    values = data.from_npz(file)
    assert values.train.inputs.dtype == torch.float32
    assert not values.train.labelled
    assert values.classes == ()


@pytest.mark.parametrize(
    ("arrays", "says"),
    [
        ({"x": PICTURES}, "holds x; expected x_train and y_train, or train_images"),
        ({"x_train": PICTURES, "y_train": LABELS[:3]}, "has 3 labels but its images are 12"),
        ({"x_train": PICTURES, "y_train": [-1] * 12}, "label -1; labels count from 0"),
        (
            {"x_train": PICTURES, "y_train": LABELS, "x_test": PICTURES, "y_test": [3] * 12},
            "has label 3 at position 0; labels must be 0 to 2",
        ),
        (
            {"x_train": PICTURES, "y_train": LABELS, "x_test": PICTURES[:, :5], "y_test": LABELS},
            "are 5x5, expected 6x5",
        ),
        ({"x_train": PICTURES, "y_train": np.zeros((12, 14), int)}, "expected one label a sample"),
        ({"x_train": PICTURES, "y_train": np.array([{}] * 12)}, "Object arrays cannot be loaded"),
    ],
)
def test_npz_mistakes(tmp_path: Path, arrays: dict[str, Any], says: str) -> None:
    file = tmp_path / "pets.npz"
    np.savez(file, **arrays)
    found = complaint(data.from_npz, file)
    assert str(file) in found
    assert says in found


def test_npz_files_that_are_none(tmp_path: Path) -> None:
    file = tmp_path / "pets.npz"
    assert complaint(data.from_npz, file) == f"there is no file {file}"
    for content in (b"", b"junk", b"PK\x03\x04junk"):
        write(file, content)
        assert complaint(data.from_npz, file).startswith(f"{file} cannot be read as an .npz")
    np.savez(file, x_train=PICTURES, y_train=LABELS)
    write(file, file.read_bytes()[:-300])
    assert complaint(data.from_npz, file).startswith(f"{file} cannot be read as an .npz")
    with file.open("wb") as one:
        np.save(one, PICTURES)
    assert "is one array, no archive" in complaint(data.from_npz, file)


# torch data sets


class Photographs:
    """A data set of PIL images with names of classes, as torchvision's without transforms."""

    classes = CLASSES

    def __len__(self) -> int:
        return 12

    def __getitem__(self, index: int) -> tuple[Image.Image, int]:
        return Image.fromarray(PICTURES[index]), LABELS[index]


class Stream(IterableDataset[Any]):
    def __init__(self, items: list[Any]) -> None:
        self.items = items

    def __iter__(self) -> Any:
        return iter(self.items)


def test_torch_datasets() -> None:
    photographs = data.from_torch(Photographs(), Photographs(), name="pets")
    assert (photographs.name, photographs.classes) == ("pets", CLASSES)
    same(photographs.train.inputs, normalised(PICTURES))
    assert torch.equal(photographs.train.inputs, photographs.test.inputs)
    assert photographs.test.targets.tolist() == LABELS

    x, y = torch.randn(5, 2, 3), torch.tensor([0, 1, 1, 0, 3])
    tensors = data.from_torch(TensorDataset(x, y), Stream(list(zip(x, y.tolist(), strict=True))))
    assert tensors.name == "tensordataset"
    for part in (tensors.train, tensors.test):
        assert torch.equal(part.inputs, x)
        assert torch.equal(part.targets, y)
    assert tensors.classes == ("0", "1", "2", "3")

    values = data.from_torch(TensorDataset(x.long(), torch.randn(5)))
    assert values.train.inputs.dtype == torch.float32
    assert not values.train.labelled


@pytest.mark.parametrize(
    ("dataset", "says"),
    [
        (Stream([]), "(train) has no samples"),
        (
            Stream([(torch.zeros(2), 0), torch.zeros(3)]),
            "item 1: expected (input, target)",
        ),
        (
            Stream([(torch.zeros(2), 0), (torch.zeros(3), 1)]),
            "the input has the shape (3,)",
        ),
        (Stream([("text", 0)]), "item 0: expected numbers or an image, got str"),
        (Stream([(torch.zeros(2), "cat")]), "expected numbers or an image, got Tensor"),
        (7, "int (train): expected a torch Dataset, got int"),
    ],
)
def test_torch_mistakes(dataset: Any, says: str) -> None:
    assert says in complaint(data.from_torch, dataset)


# By a path


def test_load_and_the_command_take_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_folder(tmp_path / "pets" / "train", np.tile(PICTURES, (4, 1, 1, 1))).parent
    write_folder(folder / "test")
    np.savez(tmp_path / "pets.npz", x_train=PICTURES, y_train=LABELS)
    (tmp_path / "mapped").mkdir()
    np.save(tmp_path / "mapped" / "x_train.npy", PICTURES.transpose(0, 3, 1, 2).copy())
    np.save(tmp_path / "mapped" / "y_train.npy", LABELS)
    for name in ("pets", "pets.npz", "mapped"):
        assert data.load(str(tmp_path / name)).classes
    assert "unknown data set" in complaint(data.load, str(tmp_path / "gone"))
    assert "classes are for data sets known by name" in complaint(data.load, str(folder), classes=2)
    call = f"run -a fedavg --data {folder} --rounds 1 --clients 3 --cohort 2 --server-samples 0"
    call += f" --model mlp --quiet --out {tmp_path / 'out'}"
    monkeypatch.setattr(sys, "argv", ["bellwether", *call.split()])
    with pytest.raises(SystemExit) as end:
        main()
    shown = capsys.readouterr()
    assert (end.value.code or 0, shown.err) == (0, "")
    assert "FedAvg" in shown.out
