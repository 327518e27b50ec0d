"""Partitions: exact sizes, no sample twice, the wanted labels, the same for the same seed."""

import itertools

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bellwether.core.errors import InputError
from bellwether.core.streams import generator
from bellwether.federation.partition import IID, Dirichlet, DirichletByClass, LabelsPerClient

FIVE_BY_TWENTY = np.arange(100) % 5
GOLDEN_IID = [[2, 3, 4, 3, 8], [1, 7, 4, 5, 3], [5, 3, 5, 6, 1], [6, 4, 4, 2, 4], [6, 3, 3, 4, 4]]
GOLDEN_DIRICHLET = [
    [0, 3, 10, 5, 2],
    [1, 17, 1, 0, 1],
    [10, 0, 9, 1, 0],
    [2, 0, 0, 14, 4],
    [7, 0, 0, 0, 13],
]
GOLDEN_LABELS = [
    [0, 0, 5, 6, 5],
    [5, 6, 0, 5, 0],
    [6, 5, 5, 0, 0],
    [0, 5, 0, 5, 6],
    [5, 0, 6, 0, 5],
]
GOLDEN_BY_CLASS = [
    [0, 10, 19, 1, 1],
    [2, 8, 0, 2, 0],
    [12, 1, 1, 7, 17],
    [3, 1, 0, 10, 1],
    [3, 0, 0, 0, 1],
]


def split(partition, labels, clients, seed=0, available=None):
    available = np.arange(len(labels)) if available is None else available
    return partition.split(labels, available, clients, generator(seed, "test"))


def histograms(shares, labels):
    return np.array([np.bincount(labels[held], minlength=labels.max() + 1) for held in shares])


@st.composite
def problems(draw):
    """Labels (some rare), a part of them that is available, and clients to share it."""
    counts = draw(st.lists(st.integers(1, 40), min_size=1, max_size=6))
    seed = draw(st.integers(0, 99))
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.repeat(np.arange(len(counts)) * 2, counts))
    available = np.flatnonzero(rng.random(len(labels)) < draw(st.sampled_from([0.6, 1.0])))
    clients = draw(st.integers(1, 12))
    assume(len(available) >= clients)
    return labels, available, clients, seed


def check_shares(shares, available, clients, size):
    assert [held.dtype for held in shares] == [np.int64] * clients
    assert [len(held) for held in shares] == [size] * clients
    together = np.concatenate(shares)
    assert len(np.unique(together)) == len(together)
    assert np.isin(together, available).all()
    assert all((np.diff(held) > 0).all() for held in shares)


@given(
    problem=problems(),
    alpha=st.sampled_from([None, 5e-324, 1e-3, 0.1, 0.5, 10.0, 1.7e308]),
    fewer=st.booleans(),
)
@settings(max_examples=150, deadline=None)
def test_equal_sizes_are_exact_and_nothing_comes_twice(problem, alpha, fewer):
    labels, available, clients, seed = problem
    largest = len(available) // clients
    samples = max(1, largest // 2) if fewer else None
    partition = IID(samples) if alpha is None else Dirichlet(alpha, samples)
    shares, notes = split(partition, labels, clients, seed, available)
    check_shares(shares, available, clients, samples or largest)
    assert partition.total(labels, available, clients) == clients * (samples or largest)
    again = split(partition, labels, clients, seed, available)
    assert again.notes == notes
    assert all(map(np.array_equal, shares, again.clients))


@given(problem=problems(), c=st.integers(1, 6), less=st.integers(0, 3))
@settings(max_examples=150, deadline=None)
def test_every_client_has_exactly_its_labels_dealt_evenly(problem, c, less):
    labels, available, clients, seed = problem
    present = np.unique(labels[available])
    assume(c <= len(present))
    largest = LabelsPerClient(c).total(labels, available, clients) // clients
    assume(largest - less >= c)
    samples = largest - less if less else None
    shares, notes = split(LabelsPerClient(c, samples), labels, clients, seed, available)
    check_shares(shares, available, clients, largest - less)
    assert not notes
    counts = histograms(shares, labels)[:, present]
    has = counts > 0
    assert (has.sum(axis=1) == c).all()
    assert set(has.sum(axis=0)) <= {clients * c // len(present), -(-clients * c // len(present))}
    assert all(np.ptp(row[row > 0]) <= 1 for row in counts)


@given(
    problem=problems(),
    alpha=st.sampled_from([5e-324, 1e-3, 0.1, 10.0, 1.7e308]),
    at_least=st.integers(1, 4),
)
@settings(max_examples=150, deadline=None)
def test_by_class_everything_is_given_away_and_nobody_is_left_short(problem, alpha, at_least):
    labels, available, clients, seed = problem
    partition = DirichletByClass(alpha, at_least)
    if len(available) < clients * at_least:
        assert partition.total(labels, available, clients) == 0
        with pytest.raises(InputError, match=f"but there are {len(available)} to share"):
            split(partition, labels, clients, seed, available)
        return
    shares, notes = split(partition, labels, clients, seed, available)
    assert np.array_equal(np.sort(np.concatenate(shares)), available)
    assert partition.total(labels, available, clients) == len(available)
    assert min(map(len, shares)) >= at_least
    assert all((np.diff(held) > 0).all() for held in shares)
    again = split(partition, labels, clients, seed, available)
    assert again.notes == notes
    assert all(map(np.array_equal, shares, again.clients))


def test_by_class_shares_have_the_moments_of_the_distribution():
    # E sum_i p_i^2 = (alpha + 1) / (N alpha + 1); n draws from p add (1 - E sum p^2) / n.
    labels, clients, size = np.arange(100_000) % 200, 20, 500
    counts = histograms(split(DirichletByClass(0.3), labels, clients).clients, labels)
    squares = (0.3 + 1) / (20 * 0.3 + 1)
    assert ((counts / size) ** 2).sum(axis=0).mean() == pytest.approx(
        squares + (1 - squares) / size, rel=0.1
    )
    assert len(set(counts.sum(axis=1))) > 10  # sizes differ


def test_by_class_the_poor_take_from_the_rich_and_a_note_counts_them():
    shares, notes = split(DirichletByClass(1e-6, at_least=3), np.repeat([0, 1], [60, 40]), 8)
    sizes = sorted(map(len, shares))
    assert sizes[:-2] == [3] * 6  # two clients drew a class each
    assert sum(sizes) == 100
    assert notes == (
        "DirichletByClass(alpha=1e-06, at_least=3): 6 of 8 clients drew fewer than 3 samples and "
        "took the rest from those who hold most",
    )
    assert not split(DirichletByClass(100.0), FIVE_BY_TWENTY, 5).notes


def feasible(held, clients, c, size):
    """By trying every way to give each client c labels, some of them one sample more."""
    each, larger = divmod(size, c)
    hands = []
    for chosen in itertools.combinations(range(len(held)), c):
        for more in itertools.combinations(chosen, larger):
            hands.append([(k in chosen) * each + (k in more) for k in range(len(held))])
    even = {clients * c // len(held), -(-clients * c // len(held))}
    for deal in itertools.combinations_with_replacement(hands, clients):
        need = np.array(deal)
        if set((need > 0).sum(axis=0)) <= even and (need.sum(axis=0) <= held).all():
            return True
    return False


@given(
    held=st.lists(st.integers(1, 9), min_size=1, max_size=4),
    clients=st.integers(1, 4),
    c=st.integers(1, 3),
)
@settings(max_examples=60, deadline=None)
def test_the_largest_size_is_the_largest_there_is(held, clients, c):
    assume(c <= len(held))
    labels = np.repeat(np.arange(len(held)), held)
    partition = LabelsPerClient(c)
    largest = partition.total(labels, np.arange(len(labels)), clients) // clients
    assert not feasible(held, clients, c, max(largest + 1, c))
    if largest:
        assert feasible(held, clients, c, largest)
        assert len(split(partition, labels, clients).clients[0]) == largest
    with pytest.raises(InputError, match=f"largest feasible size is {largest} samples"):
        split(LabelsPerClient(c, max(largest + 1, c)), labels, clients)


def test_one_label_a_client_is_one_to_one():
    shares = split(LabelsPerClient(1), FIVE_BY_TWENTY, 5).clients
    counts = histograms(shares, FIVE_BY_TWENTY)
    assert sorted(map(tuple, counts)) == sorted(map(tuple, np.eye(5, dtype=int) * 20))


def test_labels_are_combined_at_random():
    shares = split(LabelsPerClient(2), FIVE_BY_TWENTY, 10).clients
    pairs = {tuple(np.flatnonzero(row)) for row in histograms(shares, FIVE_BY_TWENTY)}
    assert len(pairs) > 5  # a dealer who goes round the labels in order makes only five


@pytest.mark.parametrize("partition", [IID(4), Dirichlet(0.5, 4), LabelsPerClient(2, 4)])
def test_another_seed_is_another_partition(partition):
    one, other = (
        np.concatenate(split(partition, FIVE_BY_TWENTY, 5, seed).clients) for seed in (1, 2)
    )
    assert not np.array_equal(one, other)
    assert sorted(one) != sorted(other)  # other samples too, not only other owners


@pytest.mark.parametrize(
    ("partition", "expected"),
    [
        (IID(), GOLDEN_IID),
        (Dirichlet(0.3), GOLDEN_DIRICHLET),
        (LabelsPerClient(3, 16), GOLDEN_LABELS),
        (DirichletByClass(0.5), GOLDEN_BY_CLASS),
    ],
)
def test_golden_label_histograms(partition, expected):
    shares = split(partition, FIVE_BY_TWENTY, 5).clients
    assert histograms(shares, FIVE_BY_TWENTY).tolist() == expected


@pytest.mark.parametrize("alpha", [0.05, 0.3, 1.0, 20.0])
def test_dirichlet_proportions_have_the_moments_of_the_distribution(alpha):
    # E sum p_k^2 = (alpha + 1) / (L alpha + 1); n draws from p add (1 - E sum p_k^2) / n.
    labels, clients, size = np.arange(200_000) % 10, 400, 100
    counts = histograms(split(Dirichlet(alpha, size), labels, clients).clients, labels)
    measured = ((counts / size) ** 2).sum(axis=1).mean()
    squares = (alpha + 1) / (10 * alpha + 1)
    assert measured == pytest.approx(squares + (1 - squares) / size, rel=0.06)
    assert counts.sum(axis=0) / counts.sum() == pytest.approx(np.full(10, 0.1), abs=0.06)


def test_dirichlet_extremes():
    labels = np.arange(20_000) % 10
    single = histograms(split(Dirichlet(1e-4, 20), labels, 100).clients, labels)
    assert (single.max(axis=1) == 20).mean() > 0.95
    even = histograms(split(Dirichlet(1e6, 200), labels, 50).clients, labels)
    assert abs(even - 20).max() < 20
    assert not split(Dirichlet(1.7e308, 20), labels, 50).notes  # p is uniform, not lost


def test_clients_whose_labels_ran_out_are_counted_and_filled():
    labels = np.repeat([0, 1], [5, 45])
    shares, notes = split(Dirichlet(1e-6), labels, 10)
    counts = histograms(shares, labels)
    mixed = int(((counts > 0).sum(axis=1) == 2).sum())
    assert counts.sum(axis=0).tolist() == [5, 45]
    assert mixed <= 1
    assert len(notes) == 1
    assert "of 10 clients found none of their labels left" in notes[0]
    assert not split(Dirichlet(10.0, 2), FIVE_BY_TWENTY, 10).notes


@pytest.mark.parametrize(
    ("partition", "clients", "message"),
    [
        (IID(), 101, "101 clients cannot share 100 samples"),
        (Dirichlet(1.0), 101, "101 clients cannot share 100 samples"),
        (IID(11), 10, "need 110, but there are 100 to share; ask for at most 10 each"),
        (Dirichlet(1.0, 51), 2, "need 102, .* at most 50 each"),
        (LabelsPerClient(6), 2, "more labels than the 5 .*at most 5"),
        (LabelsPerClient(1, 21), 5, "5 clients: the largest feasible size is 20 samples"),
        (LabelsPerClient(1), 101, "the largest feasible size is 0 .*fewer clients"),
    ],
)
def test_what_cannot_be_shared(partition, clients, message):
    with pytest.raises(InputError, match=message):
        split(partition, FIVE_BY_TWENTY, clients)


@pytest.mark.parametrize("partition", [Dirichlet(1.0), DirichletByClass(1.0), LabelsPerClient(2)])
def test_label_partitions_need_labels(partition):
    for ask in (partition.total, lambda *given: partition.split(*given, generator(0, "test"))):
        with pytest.raises(InputError, match=r"needs one class label .*use IID\(\)"):
            ask(None, np.arange(10), 2)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: IID(0), "samples per client must be at least 1, got 0"),
        (lambda: IID(2.0), "whole number, got 2.0"),
        (lambda: IID(True), "whole number, got True"),
        (lambda: Dirichlet(0), "alpha must be finite and above 0, got 0"),
        (lambda: Dirichlet(-0.5), "above 0, got -0.5"),
        (lambda: Dirichlet(float("nan")), "above 0, got nan"),
        (lambda: Dirichlet(float("inf")), "above 0, got inf"),
        (lambda: Dirichlet("0.3"), "alpha must be a number, got '0.3'"),
        (lambda: Dirichlet(0.3, samples=1.5), "whole number"),
        (lambda: DirichletByClass(0), "DirichletByClass's alpha must be finite and above 0"),
        (lambda: DirichletByClass(1, at_least=0), "at_least must be at least 1, got 0"),
        (lambda: LabelsPerClient(0), "labels per client must be at least 1, got 0"),
        (lambda: LabelsPerClient(2.5), "whole number, got 2.5"),
        (lambda: LabelsPerClient(3, samples=2), "2 samples cannot have 3 labels"),
    ],
)
def test_wrong_settings(make, message):
    with pytest.raises(InputError, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_settings_are_plain_numbers():
    assert repr(Dirichlet(np.float64(0.5), np.int64(3))) == "Dirichlet(alpha=0.5, samples=3)"
    assert repr(Dirichlet(1)) == "Dirichlet(alpha=1.0, samples=None)"
