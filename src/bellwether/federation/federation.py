"""A federation: what each client and the server hold, and the test samples."""

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import torch

from bellwether.core import interfaces
from bellwether.core.dataset import Dataset, Gathered, Samples
from bellwether.core.errors import InputError
from bellwether.core.streams import generator
from bellwether.federation.checks import whole
from bellwether.federation.groups import Groups
from bellwether.federation.labels import histograms
from bellwether.federation.manifest import Manifest
from bellwether.federation.partition import IID, Partition
from bellwether.federation.server_data import Holdings, Other, Pool, ServerData
from bellwether.federation.sources import (
    Listed,
    Loaded,
    Pair,
    Same,
    Shared,
    Source,
    alike,
    checked,
    count_classes,
)

_SERVER, _TRAIN, _TEST = "the server", "the training set", "the test set"
_EQUAL_SHARES = IID()


class Federation(interfaces.Federation):
    """Who holds what: made by `federate`, `Federation.from_arrays` or `Federation.lazy`.

    It can be pickled when the function given to `lazy` can.
    """

    def __init__(
        self,
        population: int,
        client: Source,
        server: Source | None = None,
        test: Samples | None = None,
        *,
        sizes: Sequence[int] | None = None,
        classes: int | None = None,
        manifest: Manifest | None = None,
    ) -> None:
        self._population = whole(population, "population", 1)
        self._client = client
        self._server = server
        self._test = test
        self._sizes = sizes
        self._samples = None if sizes is None else sum(sizes)
        self._classes = classes
        self._manifest = manifest

    @classmethod
    def from_arrays(
        cls, clients: Iterable[Pair], server: Pair | None = None, test: Pair | None = None
    ) -> "Federation":
        """From each client's own (X, y); whole arrays are shared, slices are copied."""
        held = _checked({f"client {client}": pair for client, pair in enumerate(clients)})
        if not held:
            raise InputError("a federation needs at least one client")
        others = _checked({_SERVER: server, _TEST: test})
        alike(held | others)
        return cls(
            len(held),
            Listed(tuple(held.values())),
            _every_round(others.get(_SERVER)),
            others.get(_TEST),
            sizes=[each.size for each in held.values()],
            classes=count_classes(held | others),
        )

    @classmethod
    def lazy(
        cls,
        population: int,
        load: Callable[[int], Pair],
        server: Pair | None = None,
        test: Pair | None = None,
    ) -> "Federation":
        """From a function that loads a client's (X, y) by its id; nothing is kept of a client."""
        if not callable(load):
            raise InputError("load must be a function from a client's id to its (X, y)")
        others = _checked({_SERVER: server, _TEST: test})
        return cls(
            population,
            Loaded(load, alike(others)),
            _every_round(others.get(_SERVER)),
            others.get(_TEST),
        )

    @property
    def population(self) -> int:
        return self._population

    @property
    def samples(self) -> int:
        """n, the samples of all clients together; lazy clients are not counted."""
        if self._samples is None:
            raise InputError("nobody knows how many samples all lazy clients hold together")
        return self._samples

    @property
    def test(self) -> Samples | None:
        return self._test

    @property
    def has_server_data(self) -> bool:
        return self._server is not None

    @property
    def classes(self) -> int | None:
        """The largest label anywhere + 1; None for values to regress and for lazy clients."""
        return self._classes

    @property
    def manifest(self) -> Manifest | None:
        """Who holds which samples of the data set; None when it was not `federate` that decided."""
        return self._manifest

    def client(self, client: int) -> Samples:
        number = whole(client, "a client's id")
        if number >= self._population:
            raise InputError(
                f"there is no client {number}; the ids are 0 .. {self._population - 1}"
            )
        return self._client(number)

    def sizes(self, clients: Sequence[int]) -> Sequence[int] | None:
        return None if self._sizes is None else [self._sizes[client] for client in clients]

    def server(self, round: int) -> Samples:
        if self._server is None:
            raise InputError("the server of this federation has no data; give it server=...")
        return self._server(whole(round, "a round"))

    @property
    def gathered(self) -> Gathered | None:
        return self._client.gathered

    def on(self, device: torch.device, dtype: torch.dtype) -> "Federation":
        """With its samples there, floating values in this precision; lazy clients load as before.

        For a GPU: what a round needs is then there already.
        """

        def move(held: Samples) -> Samples:
            return Samples(*(t.to(device, dtype if t.is_floating_point() else None) for t in held))

        moved = copy.copy(self)
        moved._client = self._client.moved(move)
        moved._server = self._server and self._server.moved(move)
        moved._test = self._test and move(self._test)
        return moved

    def __repr__(self) -> str:
        server = "with" if self.has_server_data else "without"
        return f"<Federation: {self._population} clients, {server} server data>"


def federate(
    dataset: Dataset | Pair,
    *,
    clients: int,
    partition: Partition = _EQUAL_SHARES,
    server: ServerData | None = None,
    seed: int = 0,
) -> Federation:
    """Share the training samples of a data set, or those of a pair (X, y) without a test set."""
    clients, seed = whole(clients, "clients", 1), whole(seed, "seed")
    # A class has its instances' methods too: `IID` for `IID()` is an easy mistake.
    if isinstance(partition, type) or not isinstance(partition, Partition):
        raise InputError(
            f"partition must come from bellwether.partition, such as IID(), got {partition!r}"
        )
    if server is not None and (isinstance(server, type) or not isinstance(server, ServerData)):
        raise InputError(
            "server must come from bellwether.server_data, such as Sample(samples=100); "
            "samples of your own go to Federation.from_arrays"
        )
    if isinstance(dataset, Dataset):
        name, parties = dataset.name, _checked({_TRAIN: dataset.train, _TEST: dataset.test})
    else:
        name, parties = "arrays", _checked({_TRAIN: dataset})
    if isinstance(server, Other):
        parties[server.source.name] = server.source.train
    alike(parties)
    manifest, owned = _decide(name, parties[_TRAIN], clients, partition, server, seed)
    of_server = Shared(owned, manifest.server_samples)
    return Federation(
        clients,
        Shared(parties[_TRAIN], manifest.clients.__getitem__),
        (of_server if manifest.drawn is not None else Same(of_server(1))) if server else None,
        parties.get(_TEST),
        sizes=manifest.sizes.tolist(),
        classes=count_classes(parties),
        manifest=manifest,
    )


def _decide(
    name: str,
    train: Samples,
    clients: int,
    partition: Partition,
    server: ServerData | None,
    seed: int,
) -> tuple[Manifest, Samples]:
    """Who gets which of the training samples, and the samples that the server's are among."""
    labels = train.class_labels
    aside, available = np.empty(0, dtype=np.int64), np.arange(train.size)
    rng = generator(seed, "server data")
    if server is not None:
        aside, available = server.set_aside(labels, train.size, partition, clients, rng)
    shares = partition.split(labels, available, clients, generator(seed, "partition"))
    owned = Groups.of(shares.clients)
    free = np.ones(train.size, dtype=bool)
    free[owned.samples] = False
    pool = Pool(aside)
    if server is not None:
        held = Holdings(labels, aside, owned, np.setdiff1d(np.flatnonzero(free), aside))
        pool = server.pool(held, rng)
    source = train if pool.source is None else pool.source.train
    if pool.source is None:
        free[pool.indices] = False
    of_pool = source.class_labels
    columns = max(
        (1 + int(each.max()) for each in (labels, of_pool) if each is not None), default=0
    )
    return Manifest(
        dataset=name,
        partition=str(partition),
        server=None if server is None else str(server),
        seed=seed,
        clients=owned,
        pool=pool.indices,
        drawn=pool.drawn,
        quotas=pool.quotas,
        source=pool.source.name if pool.source else None,
        left=np.flatnonzero(free),
        labels=histograms(labels, owned, columns),
        server_labels=histograms(of_pool, Groups.of([pool.indices]), columns)[0],
        notes=shares.notes,
    ), source


def _checked(pairs: Mapping[str, Pair | None]) -> dict[str, Samples]:
    return {owner: checked(pair, owner) for owner, pair in pairs.items() if pair is not None}


def _every_round(held: Samples | None) -> Source | None:
    return None if held is None else Same(held)
