"""Participation: who comes, how often, in which order, and what cannot be asked for."""

import pickle
import tracemalloc

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bellwether.core.errors import InputError
from bellwether.federation.participation import Fixed, Incomplete, Uniform


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
    assert Incomplete(4, absent=3).cohort(100, 0, 1, 0) == [44, 95, 16, 42]


def test_absentees_follow_the_seed():
    absent = {tuple(Incomplete(2, absent=4).absentees(20, seed)) for seed in range(20)}
    assert len(absent) > 15
    assert set(np.concatenate(list(map(list, absent)))) == set(range(20))


@pytest.mark.parametrize("participation", [Uniform(100), Incomplete(100, absent=1000)])
def test_a_million_clients_cost_no_memory(participation):
    tracemalloc.start()
    cohort = participation.cohort(1_000_000, 0, 1, 0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(set(cohort)) == 100
    assert peak < 200_000  # a permutation of the population takes 8 MB


def test_fixed_goes_round_its_schedule_in_the_given_order():
    fixed = Fixed([[3, 1], np.array([0]), (2, 5, 4)])
    fixed.check(6)
    cohorts = [list(fixed.cohort(6, 0, number, exchange=number % 2)) for number in range(1, 6)]
    assert cohorts == [[3, 1], [0], [2, 5, 4], [3, 1], [0]]
    assert {type(client) for client in fixed.cohort(6, 0, 2, 0)} == {int}
    assert fixed == Fixed(((3, 1), (0,), (2, 5, 4)))


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
        (Fixed([[0], [10, 2]]), 10, "client 10 of the fixed schedule .* 0 .. 9"),
    ],
)
def test_too_small_a_population(participation, population, message):
    with pytest.raises(InputError, match=message):
        participation.check(population)
    participation.check(13)
