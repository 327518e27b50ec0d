"""`load`: a data set by its name, as normalised tensors."""

import os

import numpy as np
import torch
from torch import Tensor

from bellwether.core.dataset import Dataset, Samples
from bellwether.core.errors import InputError, unknown
from bellwether.data import digits, files, idx, places
from bellwether.data.cache import cached
from bellwether.data.catalogue import CATALOGUE, Entry
from bellwether.data.part import Part, Pixels


def load(name: str, root: str | os.PathLike[str] | None = None) -> Dataset:
    """The data set of this name: float32 inputs [count, channels, height, width], int64 labels.

    Looks for files in `root`, then in the folder that the environment variable BELLWETHER_DATA
    names, in the user's cache folder and where a system package puts them. Pixels are scaled to
    0..1, then (pixel - mean) / deviation with the constants of each channel in the catalogue.
    """
    entry = CATALOGUE.get(name)
    if entry is None:
        raise unknown("data set", name, CATALOGUE)
    if entry.folders:
        train, test, source = _found(name, entry, root)
    else:
        (train, test), source = digits.read(), digits.SOURCE
    return Dataset(name, _samples(train, entry), _samples(test, entry), entry.classes, source)


def _found(name: str, entry: Entry, root: str | os.PathLike[str] | None) -> tuple[Part, Part, str]:
    looked = places.places(entry, root)
    for place in looked:
        for folder in places.candidates(entry, place):
            if (pairs := files.idx_files(folder, entry)) is not None:
                train, test = (idx.read_part(pair, entry) for pair in pairs)
                if len(train.labels) == entry.transposed_release:
                    train, test = _transposed(train), _transposed(test)
                return train, test, str(folder)
            if (shards := files.parquet_files(folder, entry)) is not None:
                train, test = (_decoded(part, entry) for part in shards)
                return train, test, str(folder)
    raise places.not_found(name, entry, looked)


def _decoded(shards: files.Shards, entry: Entry) -> Part:
    def decode() -> Part:
        try:
            from bellwether.data import parquet
        except ImportError as error:
            raise InputError(
                f"reading {shards[0]} needs pyarrow and Pillow; "
                "run: pip install 'bellwether-fl[parquet]'"
            ) from error
        return parquet.read_part(shards, entry)

    return cached(shards, (entry.shape, len(entry.classes)), decode)


def _transposed(part: Part) -> Part:
    return part._replace(images=part.images.transpose(0, 2, 1, 3))


def _samples(part: Part, entry: Entry) -> Samples:
    return Samples(normalised(part.images, entry), torch.from_numpy(part.labels))


def normalised(images: Pixels, entry: Entry) -> Tensor:
    """(pixel / white - mean) / deviation in float32, channels first, without a wider copy."""
    inputs = torch.empty((len(images), *entry.shape), dtype=torch.float32)
    for channel, (mean, deviation) in enumerate(zip(entry.mean, entry.deviation, strict=True)):
        plane = inputs.numpy()[:, channel]
        scale = np.float32(1 / (entry.white * deviation))
        np.multiply(images[..., channel], scale, out=plane, dtype=np.float32)
        plane -= np.float32(mean / deviation)
    return inputs
