"""Small files of image data sets, as people have them on disk."""

import gzip
import io
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from PIL import Image
from pyarrow import parquet as pq

from bellwether.data import catalogue

RNG = np.random.Generator(np.random.Philox(1))
GRAY = RNG.integers(0, 256, (5, 28, 28), dtype=np.uint8)
COLOUR = RNG.integers(0, 256, (5, 32, 32, 3), dtype=np.uint8)
LABELS = [3, 0, 9, 3, 1]


def idx_bytes(array: np.ndarray) -> bytes:
    return struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape) + array.tobytes()


def write(file: Path, content: bytes) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    return file


def write_idx(
    folder: Path,
    images: np.ndarray = GRAY,
    labels: Iterable[int] = LABELS,
    starts: tuple[str, str] = ("train", "t10k"),
    end: str = ".gz",
) -> Path:
    """The four files; the test images are the training images in reverse."""
    y = np.array(list(labels), dtype=np.uint8)
    for start, step in zip(starts, (1, -1), strict=True):
        for kind, array in (("images-idx3", images[::step]), ("labels-idx1", y[::step])):
            content = idx_bytes(array)
            content = gzip.compress(content) if end == ".gz" else content
            write(folder / f"{start}-{kind}-ubyte{end}", content)
    return folder


def encoded(image: np.ndarray, kind: str = "PNG") -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, kind)
    return buffer.getvalue()


def write_parquet(
    file: Path, images: Iterable[Any], labels: Iterable[Any] = LABELS, names: str = "img label"
) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    image_name, label_name = names.split()
    pq.write_table(pa.table({image_name: list(images), label_name: list(labels)}), file)
    return file


def write_cifar(folder: Path, images: np.ndarray = COLOUR) -> Path:
    structs = [{"bytes": encoded(image), "path": "a.png"} for image in images]
    write_parquet(folder / "train-00000-of-00001.parquet", structs)
    write_parquet(folder / "test-00000-of-00001.parquet", structs[::-1], LABELS[::-1])
    return folder


def pixels(inputs: torch.Tensor, name: str) -> np.ndarray:
    """Normalised inputs back as bytes, channels last."""
    entry = catalogue.CATALOGUE[name]
    mean, deviation = (np.array(v)[:, None, None] for v in (entry.mean, entry.deviation))
    values = (inputs.double().numpy() * deviation + mean) * entry.white
    assert np.abs(values - values.round()).max() < 1e-3
    whole: np.ndarray = values.round().astype(np.uint8)
    return whole.transpose(0, 2, 3, 1)
