"""Federations: who holds what, the server's data, the manifest, and what users get wrong."""

import dataclasses
import json
import pickle
import tracemalloc

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bellwether.core.dataset import ALIGNMENT, Dataset, Samples
from bellwether.core.errors import InputError
from bellwether.federation import Federation, Manifest, federate
from bellwether.federation.partition import IID, Dirichlet, LabelsPerClient
from bellwether.federation.server_data import Sample


def dataset(size=600, labels=5, seed=0):
    """Inputs that name their sample: row i is (i, i, i)."""
    targets = np.random.default_rng(seed).integers(0, labels, size)
    targets[:labels] = np.arange(labels)
    inputs = np.repeat(np.arange(size, dtype=np.float32)[:, None], 3, axis=1)
    return Dataset("toy", Samples(inputs, targets), Samples(inputs[:20], targets[:20]))


def indices(samples):
    return samples.inputs[:, 0].long().tolist()


def pair(size=4, shape=(3,), label=1, dtype=np.float32):
    return np.zeros((size, *shape), dtype), np.full(size, label)


def load(client):
    """A loader that can be pickled."""
    return np.full((2, 3), client, np.float32), np.array([0, client % 4])


PARTITIONS = st.sampled_from([IID(), IID(20), Dirichlet(0.2), Dirichlet(5, 15), LabelsPerClient(2)])


@given(
    partition=PARTITIONS,
    clients=st.integers(1, 20),
    fraction=st.floats(0.001, 0.5),
    samples=st.none() | st.integers(1, 200),
    fresh=st.booleans(),
    disjoint=st.booleans(),
    seed=st.integers(0, 99),
)
@settings(max_examples=150, deadline=None)
def test_everything_has_one_holder_and_the_server_its_share(
    partition, clients, fraction, samples, fresh, disjoint, seed
):
    data = dataset()
    server = Sample(samples, None if samples else fraction, fresh, disjoint)
    try:
        federation = federate(data, clients=clients, partition=partition, server=server, seed=seed)
    except InputError:
        federation = None
    # Only these can fail: the others share whatever there is.
    assert federation or fresh or not disjoint or partition.samples
    assume(federation)
    manifest = federation.manifest
    held = [indices(federation.client(client)) for client in range(clients)]
    assert held == [list(map(int, indices_)) for indices_ in manifest.clients]
    together = [index for client in held for index in client]
    assert len(set(together)) == len(together)
    wanted = samples or max(1, round(fraction * len(together)))
    for number in (1, 2):
        of_server = indices(federation.server(number))
        assert len(set(of_server)) == len(of_server) == wanted
        assert set(of_server) <= set(manifest.pool.tolist())
        assert set(of_server).isdisjoint(together) if disjoint else set(of_server) <= set(together)
    held_or_left = {*together, *manifest.pool.tolist()}
    assert sorted([*held_or_left, *manifest.left.tolist()]) == list(range(600))
    if partition.samples is None and not isinstance(partition, LabelsPerClient):
        more = len(together) + clients  # a sample more for everyone would not have fitted
        assert more + disjoint * (samples or max(1, round(fraction * more))) > 600
    labels = data.train.targets.numpy()
    for client, row in enumerate(manifest.labels):
        assert row.tolist() == np.bincount(labels[held[client]], minlength=5).tolist()
    assert (
        manifest.server_labels.tolist() == np.bincount(labels[manifest.pool], minlength=5).tolist()
    )
    assert manifest.sizes.tolist() == manifest.labels.sum(axis=1).tolist() == list(map(len, held))


def test_clients_get_private_aligned_copies_with_their_own_targets():
    data = dataset()
    federation = federate(data, clients=7)
    first = federation.client(3)
    assert torch.equal(first.targets, data.train.targets[indices(first)])
    assert first.inputs.data_ptr() % ALIGNMENT == first.targets.data_ptr() % ALIGNMENT == 0
    first.inputs.zero_()
    assert federation.client(3).inputs.sum() > 0
    assert federation.test.size == 20
    assert federation.classes == 5
    assert federation.population == 7
    assert not federation.has_server_data


def test_a_pair_of_arrays_is_a_data_set_without_a_test_set():
    data = dataset()
    plain = federate((data.train.inputs.numpy(), data.train.targets.numpy()), clients=4)
    assert plain.test is None
    assert indices(plain.client(2)) == indices(federate(data, clients=4).client(2))


def test_fresh_server_data_differ_by_round_and_repeat_within_it():
    server = Sample(samples=30, fresh=True)
    federation = federate(dataset(), clients=10, partition=IID(40), server=server, seed=5)
    seventh = indices(federation.server(7))
    rounds = [indices(federation.server(number)) for number in range(1, 60)]
    assert rounds[6] == seventh == indices(federation.server(7))
    assert len({tuple(drawn) for drawn in rounds}) == 59
    assert set().union(*rounds) == set(federation.manifest.pool.tolist())
    other = dataclasses.replace(federation.manifest, seed=6)
    assert other.server_samples(7).tolist() != seventh


def test_server_data_drawn_once_stay():
    for disjoint in (True, False):
        server = Sample(fraction=0.1, disjoint=disjoint)
        federation = federate(dataset(), clients=10, server=server, seed=5)
        assert indices(federation.server(1)) == indices(federation.server(900))
        other = federate(dataset(), clients=10, server=server, seed=6)
        assert indices(other.server(1)) != indices(federation.server(1))


def test_data_set_aside_have_the_labels_of_the_population():
    data, server = dataset(20_000), Sample(samples=4000)
    federation = federate(data, clients=100, partition=Dirichlet(0.05), server=server)
    assert federation.manifest.similarity > 0.999
    expected = np.bincount(data.train.targets, minlength=5) / 5
    assert federation.manifest.server_labels == pytest.approx(expected, rel=0.1)


def test_a_fraction_holds_where_no_size_fits_exactly():
    # 109 samples, 10 clients: 9 aside leave 10 a client and call for 10; 10 aside leave 9 a
    # client and call for 9. So the server gets 9 of 10 aside, and the tenth is nobody's.
    manifest = federate(dataset(109), clients=10, server=Sample(fraction=0.1)).manifest
    assert (manifest.sizes == 9).all()
    assert len(manifest.pool) == 9
    assert len(manifest.left) == 10


def test_the_partition_depends_on_the_seed_and_not_on_fresh_server_data():
    partition = Dirichlet(0.3, 20)
    alone = federate(dataset(), clients=10, partition=partition)
    server = Sample(samples=30, fresh=True)
    assisted = federate(dataset(), clients=10, partition=partition, server=server)
    assert indices(alone.client(4)) == indices(assisted.client(4))
    other = federate(dataset(), clients=10, partition=partition, seed=1)
    assert indices(alone.client(4)) != indices(other.client(4))


def test_the_manifest_for_people():
    server = Sample(fraction=0.05, fresh=True)
    partition = LabelsPerClient(2, samples=40)
    federation = federate(dataset(), clients=10, partition=partition, server=server, seed=3)
    assert str(federation.manifest).splitlines() == [
        "toy: 10 clients, LabelsPerClient(labels=2, samples=40), seed 3",
        "samples a client: 40",
        "labels a client: 2 of 5",
        "server: 20 of 200 samples, drawn anew in each round, Sample(samples=None, fraction=0.05, "
        "fresh=True, disjoint=True); cosine with the clients' labels "
        f"{federation.manifest.similarity:.4f}",
        "held by nobody: 0 samples",
    ]
    a = federation.manifest.server_labels / 200
    b = federation.manifest.population_labels / 400
    cosine = sum(a * b) / (sum(a * a) * sum(b * b)) ** 0.5
    assert federation.manifest.similarity == pytest.approx(cosine)
    uneven = dataclasses.replace(
        federation.manifest, clients=[[0], [1, 2], [3, 4, 5, 6]], notes=["careful"], server=None
    )
    assert "samples a client: min 1, median 2, max 4" in str(uneven)
    assert str(uneven).endswith("note: careful")
    assert "server: no data" in str(uneven)


@pytest.mark.parametrize(
    ("server", "partition"),
    [
        (None, Dirichlet(1e-9)),
        (Sample(samples=9), IID()),
        (Sample(fraction=0.1, fresh=True), LabelsPerClient(3, 30)),
    ],
)
def test_a_manifest_comes_back_from_its_file(tmp_path, server, partition):
    manifest = federate(dataset(), clients=12, partition=partition, server=server).manifest
    manifest.save(tmp_path / "manifest.json")
    again = Manifest.load(tmp_path / "manifest.json")
    assert again == manifest
    assert str(again) == str(manifest)
    assert again.labels.shape == (12, 5)
    assert again.server_samples(4).tolist() == manifest.server_samples(4).tolist()
    assert again != dataclasses.replace(manifest, pool=[1])
    assert bool(manifest.notes) == isinstance(partition, Dirichlet)
    assert [path.name for path in tmp_path.iterdir()] == ["manifest.json"]


def test_a_manifest_without_labels_comes_back(tmp_path):
    inputs = np.arange(20.0)[:, None]
    manifest = federate((inputs, inputs * 2), clients=3, server=Sample(samples=2)).manifest
    manifest.save(tmp_path / "manifest.json")
    assert Manifest.load(tmp_path / "manifest.json") == manifest
    assert manifest.labels.shape == (3, 0)
    assert manifest.similarity is None
    assert "cosine" not in str(manifest)


def test_manifests_that_cannot_be_written_or_read(tmp_path):
    manifest = federate(dataset(), clients=3).manifest
    (tmp_path / "file").write_text("{}")
    (tmp_path / "list").write_text(json.dumps([1]))
    (tmp_path / "half").write_text('{"dataset": "to')
    with pytest.raises(InputError, match=r"cannot write .*manifest"):
        manifest.save(tmp_path / "file" / "manifest.json")
    with pytest.raises(InputError, match=r"cannot read the manifest .*absent"):
        Manifest.load(tmp_path / "absent")
    for name in ("file", "list", "half"):
        with pytest.raises(InputError, match=f"{name} is not a manifest"):
            Manifest.load(tmp_path / name)
    with pytest.raises(ValueError, match="read-only"):
        manifest.clients[0][0] = 1


def test_arrays_of_each_client():
    x = torch.arange(12.0).reshape(4, 3)
    federation = Federation.from_arrays(
        clients=[(x, [0, 1, 2, 0]), (x[:1].numpy(), np.array([7], np.uint8))],
        server=[x + 100, torch.tensor([1, 1, 1, 1])],
        test=(x, [9, 0, 0, 0]),
    )
    assert federation.population == 2
    assert federation.classes == 10
    assert torch.equal(federation.client(0).inputs, x)
    assert federation.client(1).targets.tolist() == [7]
    assert federation.client(1).targets.dtype == torch.int64
    assert torch.equal(federation.server(1).inputs, federation.server(2).inputs)
    assert federation.server(1).inputs[0, 0] == 100
    assert federation.test.size == 4
    assert federation.manifest is None
    assert Federation.from_arrays([(x, x[:, 0])]).classes is None


def test_a_million_lazy_clients_cost_nothing_until_one_is_asked_for():
    calls = []

    def counted(client):
        calls.append(client)
        return load(client)

    tracemalloc.start()
    federation = Federation.lazy(1_000_000, counted, test=pair())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert not calls
    assert peak < 10_000  # bytes: nothing is kept for a client
    assert federation.client(999_999).inputs[0, 0] == 999_999
    assert federation.client(np.int64(5)).targets.tolist() == [0, 1]
    assert calls == [999_999, 5]
    assert {type(client) for client in calls} == {int}
    assert federation.population == 1_000_000
    assert federation.classes is None
    assert len(pickle.dumps(Federation.lazy(1_000_000, load))) < 2000


@pytest.mark.parametrize(
    "make",
    [
        lambda: federate(
            dataset(), clients=9, partition=IID(30), server=Sample(samples=9, fresh=True)
        ),
        lambda: federate(dataset(), clients=9, server=Sample(samples=9)),
        lambda: Federation.from_arrays([pair(), pair(label=0)], server=pair(), test=pair()),
        lambda: Federation.lazy(9, load, server=pair()),
    ],
)
def test_federations_can_be_pickled(make):
    federation = make()
    copy = pickle.loads(pickle.dumps(federation))
    for client in range(federation.population):
        assert all(map(torch.equal, copy.client(client), federation.client(client)))
    assert all(map(torch.equal, copy.server(3), federation.server(3)))
    assert (copy.population, copy.classes) == (federation.population, federation.classes)
    assert copy.manifest == federation.manifest


def test_pickling_slices_does_not_take_the_whole_along():
    whole = torch.zeros(64_000, 4)
    slices = [(whole[k : k + 64], torch.zeros(64)) for k in range(0, 6400, 64)]
    assert len(pickle.dumps(Federation.from_arrays(slices))) < 400_000  # whole: 1 MB, each time


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Federation.from_arrays([]), "at least one client"),
        (lambda: Federation.from_arrays([pair(), ([], [])]), "client 1 has no samples"),
        (lambda: Federation.from_arrays([pair(), ([1], [1, 2])]), "client 1: 1 inputs but 2"),
        (lambda: Federation.from_arrays(pair()), r"client 0: expected a pair .* got ndarray"),
        (lambda: Federation.from_arrays([(1, 2, 3)]), "got tuple of length 3"),
        (
            lambda: Federation.from_arrays([([[1], [1, 2]], [0, 1])]),
            "every row of one length",
        ),
        (
            lambda: Federation.from_arrays([pair(), pair(shape=(4,))]),
            r"client 1 and client 0 do not fit together: .* inputs \[4\] .* but inputs \[3\]",
        ),
        (lambda: Federation.from_arrays([pair(), pair(dtype=float)]), "float64, .*float32"),
        (lambda: Federation.from_arrays([pair(), pair(label=0.5)]), "float64 here but .*int64"),
        (lambda: Federation.from_arrays([pair()], test=pair(shape=(2,))), "the test set and"),
        (lambda: Federation.from_arrays([pair()], server=pair(shape=())), "the server and client"),
        (lambda: Federation.from_arrays([pair(), pair(label=-1)]), "client 1 has the label -1"),
        (lambda: Federation.lazy(0, load), "population must be at least 1"),
        (lambda: Federation.lazy(2.5, load), "population must be a whole number"),
        (lambda: Federation.lazy(3, [load]), "load must be a function"),
        (lambda: Federation.lazy(3, load, server=pair(label=-2)), "the server has the label -2"),
        (lambda: Federation.lazy(3, load).client(3), "no client 3; the ids are 0 .. 2"),
        (lambda: Federation.lazy(3, load).client(-1), "id must be at least 0, got -1"),
        (lambda: Federation.lazy(3, load).client(1.0), "id must be a whole number"),
        (lambda: Federation.lazy(3, load).server(1), "has no data; give it server="),
        (lambda: Federation.lazy(3, load, server=pair()).server(-1), "round must be at least 0"),
    ],
)
def test_wrong_federations(make, message):
    with pytest.raises(InputError, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("nonsense", "message"),
    [
        (None, "client 2: expected a pair"),
        ("ab", "client 2: expected a pair"),
        (np.zeros((2, 3)), "client 2: expected a pair"),
        ((None, None), "client 2: inputs must be numbers"),
        ((np.zeros((2, 3), np.float32), ["a", "b"]), "client 2: targets must be numbers"),
        ((np.zeros((0, 3), np.float32), []), "client 2 has no samples"),
        (pair(label=-1), "client 2 has the label -1"),
        (pair(shape=(5,)), "client 2 and client 0 do not fit together"),
    ],
)
def test_a_loader_that_returns_nonsense_for_one_client(nonsense, message):
    federation = Federation.lazy(4, lambda client: nonsense if client == 2 else load(client))
    federation.client(0)
    with pytest.raises(InputError, match=message) as caught:
        federation.client(2)
    assert "\n" not in str(caught.value)
    federation.client(3)


def test_lazy_clients_must_look_like_the_server_and_an_error_of_the_loader_is_its_own():
    federation = Federation.lazy(4, load, server=pair(shape=(5,)))
    with pytest.raises(InputError, match="client 1 and the server do not fit together"):
        federation.client(1)
    with pytest.raises(KeyError):
        Federation.lazy(4, {0: pair()}.__getitem__).client(1)


DATA = dataset(100)
REGRESSION = (np.zeros((10, 2)), np.zeros(10))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: federate(DATA, clients=0), "clients must be at least 1"),
        (lambda: federate(DATA, clients=2.0), "clients must be a whole number"),
        (lambda: federate(DATA, clients=101), "101 clients cannot share 100 samples"),
        (lambda: federate(DATA, clients=2, seed=0.5), "seed must be a whole number"),
        (lambda: federate(DATA, clients=2, partition=IID), r"partition must come .* IID\(\)"),
        (lambda: federate(DATA, clients=2, partition="iid"), "partition must come from"),
        (lambda: federate(DATA, clients=2, server=pair()), "server must come from .*from_arrays"),
        (lambda: federate(DATA, clients=2, server=Sample), "server must come from"),
        (lambda: federate("mnist", clients=2), "the training set: expected a pair"),
        (lambda: federate(REGRESSION, clients=2, partition=Dirichlet(1)), "needs one class label"),
        (
            lambda: federate(
                (np.zeros((4, 2)), np.eye(4, dtype=int)), clients=2, partition=Dirichlet(1)
            ),
            "needs one class label",
        ),
        (lambda: federate((np.zeros(3), [0, -1, 2]), clients=2), "has the label -1"),
        (lambda: Sample(), "either samples=... or fraction=..."),
        (lambda: Sample(samples=1, fraction=0.1), "either samples=... or fraction=..."),
        (lambda: Sample(samples=0), "server's samples must be at least 1"),
        (lambda: Sample(fraction=0), "fraction must be finite and above 0"),
        (lambda: Sample(fraction=float("nan")), "fraction must be finite and above 0"),
        (
            lambda: federate(DATA, clients=2, server=Sample(samples=100)),
            "100 samples leave none of 100 to the clients",
        ),
        (
            lambda: federate(DATA, clients=2, partition=IID(40), server=Sample(samples=21)),
            "need 80, but there are 79 to share; ask for at most 39 each",
        ),
        (
            lambda: federate(DATA, clients=2, server=Sample(samples=5, fresh=True)),
            "more than the 0 that no client holds; give the partition samples=.*disjoint=False",
        ),
        (
            lambda: federate(DATA, clients=2, partition=IID(45), server=Sample(10, fresh=True)),
            "10 samples a round need more than the 10 that no client holds",
        ),
        (
            lambda: federate(DATA, clients=2, server=Sample(samples=101, disjoint=False)),
            "101 samples of server data are more than the 100 that the clients hold",
        ),
    ],
)
def test_what_cannot_be_federated(make, message):
    with pytest.raises(InputError, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)
