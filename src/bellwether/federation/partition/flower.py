"""The partitioners of flwr-datasets, as partitions of ours."""

import copy
import inspect
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bellwether.core.errors import InputError
from bellwether.federation.groups import Indices
from bellwether.federation.partition.base import Partition, Shares

INDEX = "bellwether_index"
"""The column by which a sample is found again in what a partitioner gives back."""


@dataclass(frozen=True)
class FromFlower(Partition):
    """Shares as a partitioner of flwr-datasets makes them.

    It sees the samples' labels as the column `label` (so `partition_by="label"`), and further
    `columns`, such as who wrote a sample, with one value for every sample of the data set. Its
    draws follow its own seed, not the federation's.
    """

    partitioner: Any
    columns: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not hasattr(self.partitioner, "load_partition"):
            raise InputError(
                "FromFlower needs a partitioner of flwr_datasets.partitioner, such as "
                f"IidPartitioner(num_partitions=10), got {type(self.partitioner).__name__}"
            )
        if self.partitioner.is_dataset_assigned():
            raise InputError("FromFlower needs a partitioner that was not given a data set yet")

    def total(self, labels: Indices | None, available: Indices, clients: int) -> int:
        return sum(map(len, self._shares(labels, available, clients)))

    def split(
        self, labels: Indices | None, available: Indices, clients: int, rng: np.random.Generator
    ) -> Shares:
        shares = self._shares(labels, available, clients)
        empty = next((client for client, held in enumerate(shares) if not len(held)), None)
        if empty is not None:
            raise InputError(f"{self} leaves client {empty} without a sample; ask for fewer")
        return Shares(shares)

    def _shares(self, labels: Indices | None, available: Indices, clients: int) -> list[Indices]:
        try:
            from datasets import Dataset
        except ImportError as error:
            raise InputError(
                "FromFlower needs flwr-datasets; run: pip install 'bellwether-fl[flwr-datasets]'"
            ) from error
        columns = dict(self.columns) | ({} if labels is None else {"label": labels})
        for name, values in columns.items():
            if labels is not None and len(values) != len(labels):
                raise InputError(
                    f"{self}: the column {name!r} has {len(values)} values, "
                    f"but the data set {len(labels)} samples"
                )
        table = {name: np.asarray(values)[available] for name, values in columns.items()}
        partitioner = copy.deepcopy(self.partitioner)  # it takes a data set only once
        try:
            with warnings.catch_warnings():  # what is out of date in there is not the user's doing
                warnings.simplefilter("ignore", FutureWarning)
                partitioner.dataset = Dataset.from_dict({INDEX: available, **table})
                found = partitioner.num_partitions
                if found != clients:
                    raise InputError(
                        f"{self} makes {found} shares for {clients} clients; give federate "
                        f"clients={found}"
                    )
                parts = [partitioner.load_partition(client) for client in range(clients)]
        except InputError:
            raise
        except Exception as error:  # partitioners raise nearly anything
            reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
            raise InputError(
                f"{self} cannot share the columns {', '.join(table) or 'of no name'}: {reason}"
            ) from error
        if any(INDEX not in part.column_names for part in parts):
            raise InputError(f"{self} divides the features of samples, not the samples")
        return [np.sort(np.array(part[INDEX], dtype=np.int64)) for part in parts]

    def __str__(self) -> str:
        """Its name and settings: what tells it from others, in errors and in the manifest."""
        names = inspect.signature(type(self.partitioner)).parameters
        settings = {name: getattr(self.partitioner, f"_{name}", None) for name in names}
        listed = ", ".join(
            f"{name}={value.tolist() if isinstance(value, np.ndarray) else value!r}"
            for name, value in settings.items()
            if value is not None
        )
        return f"FromFlower({type(self.partitioner).__name__}({listed}))"
