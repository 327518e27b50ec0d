"""Samples by label: counted, pooled and dealt out."""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from bellwether.core.errors import InputError
from bellwether.federation.groups import Counts, Groups, Indices


def known(labels: Indices | None, wish: str) -> Indices:
    """The labels, which this wish cannot do without."""
    if labels is None:
        raise InputError(
            f"{wish} needs one class label (a whole number) a sample, which these targets are not; "
            "use IID()"
        )
    return labels


def label_counts(labels: Indices | None, available: Indices, wish: str) -> Indices:
    """How many samples are available of each label of which there is any, by ascending label."""
    return np.unique(known(labels, wish)[available], return_counts=True)[1].astype(np.int64)


def label_pools(
    labels: Indices | None, available: Indices, rng: np.random.Generator, wish: str
) -> list[Indices]:
    """The available samples of each such label, shuffled."""
    held = label_counts(labels, available, wish)
    shuffled = rng.permutation(available)
    by_label = shuffled[np.argsort(np.asarray(labels)[shuffled], kind="stable")]
    return np.split(by_label, np.cumsum(held)[:-1])


def deal(pools: Sequence[Indices], counts: Indices) -> Groups:
    """Deal each label's pool from its top, by the counts (clients x labels)."""
    owners = [np.repeat(np.arange(len(counts)), column) for column in counts.T]
    tops = [pool[:used] for pool, used in zip(pools, counts.sum(axis=0), strict=True)]
    owner, dealt = np.concatenate(owners), np.concatenate(tops)
    return Groups(dealt[np.lexsort((dealt, owner))], counts.sum(axis=1))


def grouped(labels: Indices, indices: Indices) -> list[Indices]:
    """The indices of each label 0 .. largest, in their order."""
    counts = np.bincount(labels[indices], minlength=int(labels.max()) + 1)
    by_label = indices[np.argsort(labels[indices], kind="stable")]
    return np.split(by_label, np.cumsum(counts)[:-1])


def cosine(one: npt.NDArray[np.integer], other: npt.NDArray[np.integer]) -> float:
    """How alike two label counts are: 1 when they are proportional, nan when one is empty."""
    a, b = np.asarray(one, dtype=float), np.asarray(other, dtype=float)
    norms = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / norms if norms else math.nan


def histograms(labels: Indices | None, groups: Groups, columns: int) -> Counts:
    """Samples by group and label, 0 .. columns-1; none without labels."""
    counts = np.zeros((len(groups), 0 if labels is None else columns), dtype=np.int32)
    if labels is not None:
        owners = np.repeat(np.arange(len(groups)), groups.sizes)
        np.add.at(counts, (owners, labels[groups.samples]), 1)
    counts.setflags(write=False)
    return counts


def draw(source: Indices, size: int, rng: np.random.Generator) -> Indices:
    """Uniformly without replacement, in ascending order."""
    return np.sort(rng.choice(source, size, replace=False, shuffle=False))


def draw_by_label(groups: Sequence[Indices], quotas: Indices, rng: np.random.Generator) -> Indices:
    """So many of each group, in ascending order."""
    drawn = [draw(group, quota, rng) for group, quota in zip(groups, quotas, strict=True)]
    return np.sort(np.concatenate(drawn))
