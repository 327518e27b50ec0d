"""Is a difference more than noise? Tests of paired differences, exact for few pairs.

Two methods that were trained from the same seed met the same clients, cohorts and initial model:
a seed is a pair, and what is tested is the difference within it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MOST_EXACT = 20
"""Of more pairs not every sign is tried: the t test, by then as good, stands in."""

ROUNDING = 1e-9
"""Sums that differ by this part of their size are the same sum, added in another order."""


@dataclass(frozen=True)
class Paired:
    """What n paired differences say. A value is None where there are too few of them."""

    pairs: int
    mean: float | None
    low: float | None
    """The 95 % confidence interval of the mean, if the differences are normal (Student's t)."""
    high: float | None
    p_signs: float | None
    """Two-sided, by the mean over all 2^n flips of signs (Fisher 1935)."""
    p_ranks: float | None
    """Two-sided, Wilcoxon's signed ranks (1945), exact; ties share ranks, zeros are left out."""
    p_t: float | None
    """Two-sided, Student's t."""


def paired(differences: Sequence[float]) -> Paired:
    """The tests of the differences of some pairs; they must be finite."""
    values = np.asarray(differences, dtype=np.float64)
    n = len(values)
    if n == 0:
        return Paired(0, None, None, None, None, None, None)
    mean = math.fsum(values) / n
    if n == 1:
        return Paired(1, mean, None, None, None, None, None)
    error = float(values.std(ddof=1)) / math.sqrt(n)
    half = student_quantile(0.975, n - 1) * error
    p_t: float | None = 1.0
    if error > ROUNDING * abs(mean):
        p_t = 2 * (1 - student_cdf(abs(mean) / error, n - 1))
    elif mean:  # all differences are the same: no spread to compare them with
        p_t = None
    p_signs = sign_flips(values) if n <= MOST_EXACT else p_t
    return Paired(n, mean, mean - half, mean + half, p_signs, signed_ranks(values), p_t)


def sign_flips(values: NDArray[np.float64]) -> float:
    """The share of the 2^n flips of signs whose sum is as far from 0 as the one observed."""
    sums = np.zeros(1)
    for value in values:
        sums = np.concatenate([sums + value, sums - value])
    observed = abs(math.fsum(values)) - ROUNDING * float(np.abs(values).sum())
    return float(np.mean(np.abs(sums) >= observed))


def signed_ranks(values: NDArray[np.float64]) -> float:
    """The share of the flips of signs whose rank sum is as far from its mean as the observed.

    Counted by the sums that can be reached, of doubled ranks, which are whole also where tied.
    """
    kept = values[values != 0]
    sizes = np.abs(kept)
    below = (sizes[:, None] > sizes).sum(axis=1)
    upto = (sizes[:, None] >= sizes).sum(axis=1)
    doubled = below + upto + 1
    total = int(doubled.sum())
    ways = np.zeros(total + 1)
    ways[0] = 1.0
    for rank in doubled:
        ways[rank:] = ways[rank:] + ways[:-rank]
    observed = abs(2 * int(doubled[kept > 0].sum()) - total)
    away = np.abs(2 * np.arange(total + 1) - total)
    return float(ways[away >= observed].sum() / ways.sum())


def smallest_p(pairs: int) -> float:
    """The least p that flips of signs of so many pairs can give: all of the same sign."""
    return min(1.0, 2.0 ** (1 - pairs))


def holm(values: Sequence[float | None]) -> tuple[float | None, ...]:
    """The p values, adjusted for being several (Holm 1979); what is None counts for nothing.

    In rising order p_(k) becomes max over j <= k of min(1, (m - j + 1) p_(j)).
    """
    known = sorted((p, at) for at, p in enumerate(values) if p is not None)
    adjusted: list[float | None] = [None] * len(values)
    highest = 0.0
    for rank, (p, at) in enumerate(known):
        highest = max(highest, min(1.0, (len(known) - rank) * p))
        adjusted[at] = highest
    return tuple(adjusted)


def pairs_needed(level: float, tests: int) -> int:
    """The least number of pairs that could give a p of this level after Holm's correction."""
    return 1 + math.ceil(math.log2(tests / level))


def student_cdf(t: float, freedom: int) -> float:
    """P(T <= t) for a whole number of degrees of freedom (Abramowitz and Stegun 26.7.3-4)."""
    angle = math.atan(t / math.sqrt(freedom))
    cosine = math.cos(angle) ** 2
    odd = freedom % 2
    term, total = 1.0, 0.0
    for k in range(freedom // 2):
        total += term
        term *= cosine * (2 * k + 1 + odd) / (2 * k + 2 + odd)
    if odd:
        inside = 2 / math.pi * (angle + math.sin(angle) * math.cos(angle) * total)
    else:
        inside = math.sin(angle) * total
    return 0.5 + inside / 2


def student_quantile(p: float, freedom: int) -> float:
    """The t that `student_cdf` takes to p >= 1/2, by bisection."""
    low, high = 0.0, 1.0
    while student_cdf(high, freedom) < p:
        high *= 2
    while (middle := (low + high) / 2) not in (low, high):
        low, high = (middle, high) if student_cdf(middle, freedom) < p else (low, middle)
    return high
