"""Tests of paired differences, against SciPy and against counting by hand."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from bellwether.experiments.statistics import (
    holm,
    paired,
    pairs_needed,
    sign_flips,
    smallest_p,
    student_cdf,
    student_quantile,
)

VALUES = st.floats(-1, 1).map(lambda value: round(value, 3))
DIFFERENCES = st.lists(VALUES, min_size=2, max_size=9)
UNEQUAL = DIFFERENCES.filter(lambda values: len(set(values)) > 1)


@given(UNEQUAL)
def test_the_t_test_and_its_interval_are_scipys(values):
    found, expected = paired(values), stats.ttest_1samp(values, 0.0)
    assert found.p_t == pytest.approx(expected.pvalue, rel=1e-6, abs=1e-9)
    interval = expected.confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high), abs=1e-9)
    assert found.mean == pytest.approx(np.mean(values), abs=1e-12)


@given(UNEQUAL)
def test_the_flips_of_signs_are_scipys_permutation_test(values):
    expected = stats.permutation_test(
        (np.array(values),),
        lambda x, axis: np.sum(x, axis=axis),
        permutation_type="samples",
        n_resamples=np.inf,
        vectorized=True,
    )
    assert paired(values).p_signs == pytest.approx(min(1.0, expected.pvalue))


@given(st.lists(VALUES.filter(bool), min_size=1, max_size=9, unique_by=abs))
def test_the_signed_ranks_are_scipys_where_it_is_exact(values):
    expected = stats.wilcoxon(values, method="exact").pvalue if len(values) > 1 else None
    assert paired(values).p_ranks == (None if expected is None else pytest.approx(expected))


@given(DIFFERENCES)
def test_the_signed_ranks_count_every_flip_with_ties_and_zeros_too(values):
    kept = [value for value in values if value]
    ranks = stats.rankdata(np.abs(kept)) if kept else []
    sums = [np.dot(ranks, signs) for signs in itertools.product((-1, 1), repeat=len(kept))]
    observed = abs(np.dot(ranks, np.sign(kept)))
    assert paired(values).p_ranks == np.mean(np.abs(sums) >= observed)


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 7, 19, 40])
def test_students_distribution_is_scipys(freedom):
    for t in (-3.0, -0.5, 0.0, 0.1, 1.0, 2.5, 12.0):
        assert student_cdf(t, freedom) == pytest.approx(stats.t.cdf(t, freedom), abs=1e-14)
    for p in (0.5, 0.6, 0.9, 0.975, 0.999):
        assert student_quantile(p, freedom) == pytest.approx(stats.t.ppf(p, freedom), rel=1e-9)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_holms_correction_by_its_definition(values):
    """An hypothesis falls at level a when every one before it, and it, passes its own bar."""
    adjusted = holm(values)
    order = np.argsort(values, kind="stable")
    for level in (0.01, 0.05, 0.3):
        bars = [level / (len(values) - rank) for rank in range(len(values))]
        falls = list(itertools.accumulate(
            (values[at] <= bar for at, bar in zip(order, bars, strict=True)), lambda a, b: a and b
        ))  # fmt: skip
        for at, fallen in zip(order, falls, strict=True):
            if math.isclose(adjusted[at], level, rel_tol=1e-9):
                continue  # on the bar, where rounding decides
            assert (adjusted[at] <= level) == fallen


def test_holm_leaves_out_what_is_not_known():
    assert holm([0.01, None, 0.04]) == (0.02, None, 0.04)
    assert holm([None]) == (None,)


def test_few_pairs_cannot_say_more_than_they_can():
    assert paired([]).p_signs is None
    assert (paired([0.3]).mean, paired([0.3]).p_signs, paired([0.3]).low) == (0.3, None, None)
    for n in range(2, 8):
        best = paired(np.linspace(1, 2, n)).p_signs
        assert best == smallest_p(n) == paired(np.linspace(1, 2, n)).p_ranks
    assert smallest_p(5) == 0.0625
    assert [pairs_needed(0.05, tests) for tests in (1, 2, 4)] == [6, 7, 8]
    assert smallest_p(6) <= 0.05 < smallest_p(5)


def test_differences_without_spread():
    same = paired([0.1] * 5)
    assert (same.p_signs, same.p_t) == (0.0625, None)
    none = paired([0.0] * 5)
    assert (none.p_signs, none.p_ranks, none.p_t, none.low, none.high) == (1, 1, 1, 0, 0)


def test_many_pairs_take_no_time_that_doubles_with_each():
    values = np.random.default_rng(0).normal(0.3, 1, 200)
    found = paired(values)
    assert found.p_signs == found.p_t == pytest.approx(stats.ttest_1samp(values, 0).pvalue)
    assert sign_flips(values[:20]) == pytest.approx(stats.ttest_1samp(values[:20], 0)[1], rel=0.1)
