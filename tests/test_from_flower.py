"""Partitioners of flwr-datasets as partitions of ours: what they share, and what they cannot."""

import numpy as np
import pytest

from bellwether import federate
from bellwether.core.errors import InputError
from bellwether.federation.partition import FromFlower
from bellwether.federation.server_data import FromClients, Sample

partitioner = pytest.importorskip("flwr_datasets.partitioner")

LABELS = np.arange(240) % 6
DATA = np.arange(240.0)[:, None], LABELS

EIGHT = [
    partitioner.IidPartitioner(num_partitions=8),
    partitioner.LinearPartitioner(num_partitions=8),
    partitioner.ShardPartitioner(8, partition_by="label", num_shards_per_partition=2, seed=3),
    partitioner.PathologicalPartitioner(8, partition_by="label", num_classes_per_partition=3),
    partitioner.DirichletPartitioner(8, partition_by="label", alpha=0.5, min_partition_size=1),
]


@pytest.mark.parametrize("server", [None, Sample(samples=30), FromClients(2, 1)])
@pytest.mark.parametrize("theirs", EIGHT, ids=lambda theirs: type(theirs).__name__)
def test_shares_are_theirs_and_no_sample_comes_twice(theirs, server):
    federation = federate(DATA, clients=8, partition=FromFlower(theirs), server=server)
    manifest = federation.manifest
    held = np.concatenate(list(manifest.clients))
    apart = [held, manifest.left] + ([manifest.pool] if isinstance(server, Sample) else [])
    assert sorted(np.concatenate(apart)) == list(range(240))
    for client in range(8):
        samples = federation.client(client)
        assert samples.targets.tolist() == LABELS[samples.inputs[:, 0].long()].tolist()
        assert manifest.labels[client].sum() == samples.size >= 1
    assert federate(DATA, clients=8, partition=FromFlower(theirs), server=server).manifest == (
        manifest
    )
    assert type(theirs).__name__ in manifest.partition
    assert not theirs.is_dataset_assigned()  # it was lent, and can be used again


def test_pathological_clients_have_the_wanted_labels_and_writers_their_own_samples():
    theirs = partitioner.PathologicalPartitioner(
        8, partition_by="label", num_classes_per_partition=3
    )
    manifest = federate(DATA, clients=8, partition=FromFlower(theirs)).manifest
    assert ((manifest.labels > 0).sum(axis=1) == 3).all()
    writers = np.repeat(["ada", "bo", "cy"], [100, 90, 50])
    natural = FromFlower(partitioner.NaturalIdPartitioner("writer"), {"writer": writers})
    shares = federate(DATA, clients=3, partition=natural).manifest.clients
    assert sorted(map(len, shares)) == [50, 90, 100]
    assert all(len(set(writers[share])) == 1 for share in shares)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FromFlower(3), r"needs a partitioner .* got int"),
        (lambda: FromFlower(EIGHT[0], {"writer": [1]}), "'writer' has 1 values, but .* 240"),
        (lambda: FromFlower(partitioner.IidPartitioner(5)), "makes 5 shares for 8 clients"),
        (
            lambda: FromFlower(partitioner.NaturalIdPartitioner("writer")),
            "cannot share the columns label",
        ),
        (
            lambda: FromFlower(
                partitioner.DirichletPartitioner(8, "label", alpha=1e-3, min_partition_size=0)
            ),
            "leaves client . without a sample",
        ),
    ],
)
def test_what_cannot_be_shared(make, message):
    with pytest.raises(InputError, match=message) as caught:
        federate(DATA, clients=8, partition=make())
    assert "\n" not in str(caught.value)
