"""Participation: who comes, how often, in which order, and what cannot be asked for."""

import dataclasses
import pickle
import tracemalloc
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import nn

from bellwether import SGD, Federation, train
from bellwether.algorithms import CATALOGUE, create
from bellwether.core.errors import InputError
from bellwether.federation.participation import (
    Bernoulli,
    Cyclic,
    Fixed,
    Incomplete,
    Markov,
    Uniform,
)


@given(
    population=st.integers(1, 40),
    clients=st.integers(1, 40),
    absent=st.integers(0, 39),
    seed=st.integers(0, 2**40),
)
@settings(max_examples=200, deadline=None)
def test_cohorts_are_distinct_clients_and_absentees_never_come(population, clients, absent, seed):
    assume(clients + absent <= population)
    some = Incomplete(clients, absent=absent)
    missing = some.absentees(population, seed)
    listed = Incomplete(clients, absent=np.array(missing[::-1], dtype=np.int32))
    assert len(set(missing)) == absent
    assert listed.absentees(population, seed + 1) == missing
    for number in range(1, 6):
        for participation, banned in ((Uniform(clients), ()), (some, missing)):
            cohort = participation.cohort(population, seed, number, 0)
            assert {type(client) for client in cohort} == {int}
            assert len(cohort) == len(set(cohort)) == clients
            assert set(cohort) <= set(range(population)) - set(banned)
        assert listed.cohort(population, seed, number, 0) == cohort


@pytest.mark.parametrize(
    ("participation", "coming"),
    [(Uniform(3), range(10)), (Incomplete(3, absent=[0, 4, 5, 9]), (1, 2, 3, 6, 7, 8))],
)
def test_everyone_who_comes_is_as_likely_at_every_position(participation, coming):
    rounds = 4000
    cohorts = np.array([participation.cohort(10, 7, r, 0) for r in range(1, rounds + 1)])
    share = 1 / len(coming)
    deviation = (share * (1 - share) / rounds) ** 0.5
    for position in range(3):
        counts = np.bincount(cohorts[:, position], minlength=10) / rounds
        assert counts[list(coming)] == pytest.approx(share, abs=4.5 * deviation)
    pairs = np.zeros((10, 10))
    for first, second, third in cohorts:
        for a, b in ((first, second), (first, third), (second, third)):
            pairs[min(a, b), max(a, b)] += 1
    together = pairs[np.ix_(coming, coming)][np.triu_indices(len(coming), 1)] / pairs.sum()
    assert together == pytest.approx(1 / len(together), rel=0.25)


@pytest.mark.parametrize("participation", [Uniform(5), Incomplete(5, absent=8)])
def test_a_cohort_depends_on_seed_round_and_exchange_alone(participation):
    seventh = participation.cohort(50, 3, 7, 1)
    in_order = [participation.cohort(50, 3, number, 1) for number in range(1, 8)]
    copy = pickle.loads(pickle.dumps(participation))
    assert in_order[-1] == seventh == copy.cohort(50, 3, 7, 1)
    others = [participation.cohort(50, 3, 7, 0), participation.cohort(50, 4, 7, 1), in_order[0]]
    assert seventh not in others


def test_golden_cohorts():
    assert Uniform(4).cohort(100, 0, 1, 0) == [45, 95, 16, 44]
    assert Incomplete(4, absent=3).absentees(100, 0) == [50, 77, 93]
    assert Incomplete(4, absent=3).cohort(100, 0, 1, 0) == [24, 39, 64, 27]


EACH_OF_TWENTY = [
    Uniform(8), Incomplete(8, absent=0), Bernoulli(0.4), Bernoulli([0.4] * 20), Markov(0.4, 0.6),
]  # fmt: skip


def test_no_two_participations_share_draws():
    """Each brings a client in with probability 0.4, so 20 clients in 400 rounds say a lot."""
    rounds = 400
    there = [presence(each, 20, rounds).ravel() - 0.4 for each in EACH_OF_TWENTY]
    between = np.corrcoef(there) - np.eye(len(there))
    between[2, 3] = between[3, 2] = 0  # one participation, whose chances are written in two ways
    assert abs(between).max() < 4.5 / (20 * rounds) ** 0.5


@pytest.mark.parametrize("participation", [*EACH_OF_TWENTY, Cyclic(8), Fixed([[1, 2], [3]])])
def test_a_round_does_not_depend_on_the_rounds_asked_before(participation):
    alone = participation.cohort(20, 6, 11, 0)
    in_order = [participation.cohort(20, 6, number, 0) for number in range(1, 12)]
    assert list(alone) == list(in_order[-1])


def test_absentees_follow_the_seed():
    absent = {tuple(Incomplete(2, absent=4).absentees(20, seed)) for seed in range(20)}
    assert len(absent) > 15
    assert set(np.concatenate(list(map(list, absent)))) == set(range(20))


@pytest.mark.parametrize(
    "participation",
    [
        Uniform(100),
        Incomplete(100, absent=1000),
        Cyclic(100),
        Bernoulli(1e-4),
        Bernoulli([1e-4] * 1_000_000),
    ],
)
def test_a_million_clients_cost_no_memory(participation):
    participation.cohort(1_000_000, 0, 2, 0)  # what does not depend on the round is kept
    tracemalloc.start()
    cohort = participation.cohort(1_000_000, 0, 1, 0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(set(cohort)) == pytest.approx(100, abs=45)
    assert peak < 200_000  # a permutation of the population takes 8 MB


def test_fixed_goes_round_its_schedule_in_the_given_order():
    fixed = Fixed([[3, 1], np.array([0]), (2, 5, 4)])
    fixed.check(6)
    cohorts = [list(fixed.cohort(6, 0, number, exchange=number % 2)) for number in range(1, 6)]
    assert cohorts == [[3, 1], [0], [2, 5, 4], [3, 1], [0]]
    assert {type(client) for client in fixed.cohort(6, 0, 2, 0)} == {int}
    assert fixed == Fixed(((3, 1), (0,), (2, 5, 4)))


def presence(participation, population, rounds, seed=0):
    """Rounds x clients: who came."""
    there = np.zeros((rounds, population), dtype=bool)
    for number in range(1, rounds + 1):
        there[number - 1, participation.cohort(population, seed, number, 0)] = True
    return there


CHANCES = [0.05, 0.2, 0.5, 0.9, 1.0, 0.0]


def test_bernoulli_clients_come_as_often_as_they_should_and_independently():
    rounds = 4000
    for chances, wish in ((CHANCES, CHANCES), ([0.3] * 6, 0.3)):
        there = presence(Bernoulli(wish), 6, rounds)
        deviation = np.sqrt(np.multiply(chances, np.subtract(1, chances)) / rounds)
        assert (abs(there.mean(axis=0) - chances) <= 4.5 * deviation).all()
        moving = there[:, :4] - there[:, :4].mean(axis=0)
        scale = rounds * np.outer(moving.std(axis=0), moving.std(axis=0))
        between = moving.T @ moving / scale - np.eye(4)  # clients
        after = moving[1:].T @ moving[:-1] / scale  # this round and the one before
        assert max(abs(between).max(), abs(after).max()) < 4.5 / rounds**0.5


def test_markov_clients_come_and_stay_as_long_as_they_should():
    rounds, arrive, leave = 20_000, [0.1, 0.5, 0.02, 1.0], [0.3, 0.5, 0.02, 0.25]
    there = presence(Markov(arrive, leave), 4, rounds)
    for client, (a, b) in enumerate(zip(arrive, leave, strict=True)):
        now, then = there[:-1, client], there[1:, client]
        for before, chance in ((False, a), (True, b)):
            moved = (then != now)[now == before]
            deviation = (chance * (1 - chance) / len(moved)) ** 0.5
            assert abs(moved.mean() - chance) <= 4.5 * deviation
        correlated = (2 - a - b) / (a + b)  # of the chain, whose eigenvalue is 1 - a - b
        share = a / (a + b)
        deviation = (share * (1 - share) * correlated / rounds) ** 0.5
        assert abs(there[:, client].mean() - share) <= 4.5 * deviation


def test_the_first_round_of_a_markov_chain_is_in_its_long_run():
    first = presence(Markov(0.02, 0.06), 20_000, 1)
    assert first.mean() == pytest.approx(0.25, abs=4.5 * (0.25 * 0.75 / 20_000) ** 0.5)


def test_a_markov_chain_does_not_depend_on_what_was_asked_before():
    def cohorts(rounds):
        return {r: Markov(0.2, 0.1).cohort(30, 5, r, 0) for r in rounds}

    forwards = cohorts(range(1, 40))
    Markov(0.2, 0.1).cohort(31, 5, 90, 0)
    backwards = cohorts(range(39, 0, -1))
    assert forwards == backwards
    assert Markov(0.2, 0.1).cohort(30, 6, 7, 0) != forwards[7]


@pytest.mark.parametrize("participation", [Bernoulli(0.5), Bernoulli([0.5] * 40), Markov(0.3, 0.3)])
def test_at_most_so_many_of_those_who_are_there_come(participation):
    some = dataclasses.replace(participation, clients=8)
    for number in range(1, 30):
        everybody = participation.cohort(40, 1, number, 0)
        assert len(set(everybody)) == len(everybody)
        first, second = (some.cohort(40, 1, number, exchange) for exchange in (0, 1))
        assert len(first) == len(second) == min(8, len(everybody))
        assert set(first) | set(second) <= set(everybody)
        assert first != second or len(first) < 2
        assert {type(client) for client in first} <= {int}
    positions = [participation.cohort(40, 1, number, 0)[0] for number in range(1, 30)]
    assert len(set(positions)) > 10  # in random order


def test_cyclic_clients_take_turns():
    cyclic = Cyclic(3)
    turns = [cyclic.cohort(7, 0, number, exchange=number % 2) for number in range(1, 8)]
    assert turns[:3] == [[0, 1, 2], [3, 4, 5], [6, 0, 1]]
    assert np.bincount(np.concatenate(turns)).tolist() == [3] * 7
    assert Cyclic(7).cohort(7, 0, 2, 0) == list(range(7))


@pytest.mark.parametrize("name", CATALOGUE)
@pytest.mark.parametrize("nobody", [Bernoulli(0.0), Markov(0.0, 1.0)])
def test_a_round_in_which_nobody_comes(name, nobody):
    """Only what the server does itself, if anything, moves the model."""
    sgd = SGD(lr=0.1, epochs=1)
    rng = np.random.default_rng(0)
    samples = rng.normal(size=(6, 3)), np.array([0, 1, 0, 1, 1, 0])
    method = create(name, client=sgd, server=sgd, blocks=2)
    federation = Federation.from_arrays([samples] * 4, server=samples)
    model = nn.Linear(3, 2).double()
    run = partial(train, method, federation, model, 3, participation=nobody, device="cpu")
    if name.startswith("FedBCGD"):
        with pytest.raises(InputError, match="needs a cohort of 2 clients or more, not 0"):
            run()
        return
    result = run()
    assert [record.cohort for record in result.history] == [(), (), ()]
    assert sum(record.bytes_down + record.bytes_up for record in result.history) == 0
    start = torch.cat([p.detach().reshape(-1) for p in model.parameters()])
    descends = {"Server only", "CLG-SGD", "FedCLG-C", "FedCLG-S", "SCAFFOLD+", "SAFARI"}
    assert torch.equal(result.model, start) == (name not in descends)  # FSL's rate follows clients


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Uniform(0), "clients a round must be at least 1, got 0"),
        (lambda: Uniform(2.0), "whole number, got 2.0"),
        (lambda: Uniform(True), "whole number, got True"),
        (lambda: Incomplete(0, absent=1), "at least 1, got 0"),
        (lambda: Incomplete(1, absent=-1), "absent clients must be at least 0, got -1"),
        (lambda: Incomplete(1, absent=0.5), "whole number, got 0.5"),
        (lambda: Incomplete(1, absent="3"), "whole number, got '3'"),
        (lambda: Incomplete(1, absent=[2, 5, 2]), "client 2 is twice in the absent clients"),
        (lambda: Incomplete(1, absent=[-2]), "in the absent clients must be at least 0, got -2"),
        (lambda: Fixed([]), "at least one cohort"),
        (lambda: Fixed([[1], []]), "a client in every cohort"),
        (lambda: Fixed([1, 2]), r"list of cohorts, .* such as Fixed\(\[\[0, 1\], \[2, 3\]\]\)"),
        (lambda: Fixed(3), "list of cohorts"),
        (lambda: Fixed(["01"]), "list of cohorts"),
        (lambda: Fixed([[0], [1, 2, 1]]), "client 1 is twice in cohort 2"),
        (lambda: Fixed([[0.0]]), "a client id in cohort 1 must be a whole number"),
        (lambda: Bernoulli(1.5), "the probability must lie between 0 and 1, got 1.5"),
        (lambda: Bernoulli([0.5, float("nan")]), "must lie between 0 and 1, got nan"),
        (lambda: Bernoulli("half"), "the probability must be a number, got 'half'"),
        (lambda: Bernoulli(0.5, clients=0), "clients a round must be at least 1, got 0"),
        (lambda: Markov(-0.1, 0.5), "arrive must lie between 0 and 1, got -0.1"),
        (lambda: Markov(0.1, 2), "leave must lie between 0 and 1, got 2"),
        (lambda: Markov([0.5, 0], [0.5, 0]), "arrive and leave must not both be 0"),
        (lambda: Cyclic(0), "clients a round must be at least 1, got 0"),
        (lambda: Fixed([[-1]]), "a client id in cohort 1 must be at least 0, got -1"),
    ],
)
def test_wrong_settings(make, message):
    with pytest.raises(InputError, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("participation", "population", "message"),
    [
        (Uniform(6), 5, "6 clients a round, but there are 5"),
        (Incomplete(6, absent=5), 10, "6 clients a round, but only 5 of 10 ever take part"),
        (Incomplete(1, absent=12), 10, "only 0 of 10"),
        (Incomplete(9, absent=[0, 1]), 10, "only 8 of 10"),
        (Incomplete(1, absent=[3, 10]), 10, "absent client 10 does not exist; .* 0 .. 9"),
        (Bernoulli([0.5] * 13), 10, "13 probabilities were given for 10 clients; give one each"),
        (Markov([0.5] * 13, 0.1), 10, "13 probabilities to arrive were given for 10 clients"),
        (Markov(0.5, [0.1] * 13), 10, "13 probabilities to leave were given for 10 clients"),
        (Cyclic(11), 10, "11 clients a round, but there are 10"),
        (Fixed([[0], [10, 2]]), 10, "client 10 of the fixed schedule .* 0 .. 9"),
    ],
)
def test_too_small_a_population(participation, population, message):
    with pytest.raises(InputError, match=message):
        participation.check(population)
    participation.check(13)
