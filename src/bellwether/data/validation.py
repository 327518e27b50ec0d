"""A validation split: samples to tune by, so that nobody tunes on the test samples."""

from dataclasses import replace

import torch

from bellwether.core.dataset import Dataset
from bellwether.core.errors import InputError
from bellwether.core.streams import generator


def hold_out(dataset: Dataset, share: float, seed: int) -> Dataset:
    """The data set with this share of its training samples, drawn by the seed, as test samples.

    Its own test samples are not in it.
    """
    count = round(share * dataset.train.size)
    if not 0 < count < dataset.train.size:
        raise InputError(
            f"validation={share} of {dataset.train.size} training samples leaves "
            f"{'none to measure on' if count <= 0 else 'nothing to train on'}"
        )
    order = torch.from_numpy(generator(seed, "validation").permutation(dataset.train.size))
    held, kept = (order[part].sort().values for part in (slice(count), slice(count, None)))
    return replace(dataset, train=dataset.train.take(kept), test=dataset.train.take(held))
