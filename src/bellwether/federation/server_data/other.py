"""Samples of another source."""

from dataclasses import dataclass

import numpy as np

from bellwether.core.dataset import Dataset
from bellwether.core.errors import InputError
from bellwether.federation.checks import whole
from bellwether.federation.labels import draw, label_pools
from bellwether.federation.server_data.base import Holdings, Pool, ServerData
from bellwether.federation.sources import Pair, checked


@dataclass(frozen=True)
class Other(ServerData):
    """Training samples of another data set, or of a pair (X, y) (FSLsyn).

    All of them, `samples` drawn uniformly, or `per_label` of each label that it has. Its labels
    must mean what the clients' labels mean, and its samples have their shape.
    """

    dataset: Dataset | Pair
    samples: int | None = None
    per_label: int | None = None

    def __post_init__(self) -> None:
        dataset = self.dataset
        if not isinstance(dataset, Dataset):
            dataset = Dataset("other arrays", checked(dataset, "the server's data set"))
        object.__setattr__(self, "dataset", dataset)
        if self.samples is not None and self.per_label is not None:
            raise InputError("Other: give samples=... or per_label=..., not both")
        for name in ("samples", "per_label"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, whole(getattr(self, name), f"Other's {name}", 1))

    @property
    def source(self) -> Dataset:
        """The other data set."""
        assert isinstance(self.dataset, Dataset)
        return self.dataset

    def pool(self, held: Holdings, rng: np.random.Generator) -> Pool:
        train = self.source.train
        everything = np.arange(train.size)
        if self.per_label is not None:
            pools = label_pools(train.class_labels, everything, rng, f"{self}, per label,")
            fewest = min(map(len, pools))
            if fewest < self.per_label:
                raise InputError(
                    f"{self.source.name} has labels with {fewest} samples; ask for at most so "
                    "many per label"
                )
            everything = np.sort(np.concatenate([pool[: self.per_label] for pool in pools]))
        elif self.samples is not None:
            if self.samples > train.size:
                raise InputError(
                    f"{self.source.name} has {train.size} training samples, fewer than "
                    f"{self.samples}; ask for less"
                )
            everything = draw(everything, self.samples, rng)
        return Pool(everything, source=self.source)

    def __str__(self) -> str:
        amount = {"samples": self.samples, "per_label": self.per_label}
        given = [f"{name}={value}" for name, value in amount.items() if value is not None]
        return f"Other({', '.join([self.source.name, *given])})"
