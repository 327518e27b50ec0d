"""Named streams: the same name gives the same numbers, another name gives others."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bellwether.core.isolation import isolated
from bellwether.core.streams import SERVER, generator, key, permutation, seed_torch

NAMES = st.tuples(
    st.integers(0, 5),
    st.sampled_from(["batches", "noise", "method"]),
    st.lists(st.integers(SERVER, 12), max_size=3).map(tuple),
)


def test_the_numbers_of_published_results():
    """Who changes these changes every result: say so in the release notes."""
    stream = key(0, "batches", 1, 0, 3, 0)
    assert stream == 0x4FE09B4D36B4C8C0EAC56D2CE280F2E
    assert permutation(stream, 2, 10).tolist() == [0, 4, 7, 1, 2, 3, 8, 9, 5, 6]
    assert generator(0, "method", 1).integers(0, 1000, 5).tolist() == [957, 426, 73, 509, 844]
    with isolated():
        seed_torch(0, "noise", 1, 0, 3, 0)
        assert torch.randint(0, 1000, (5,)).tolist() == [109, 635, 609, 63, 98]


@settings(deadline=None, max_examples=60)
@given(st.lists(NAMES, unique=True, min_size=2, max_size=8), st.randoms(use_true_random=False))
def test_a_stream_depends_on_its_name_alone(names, random):
    def draw(name: tuple[int, str, tuple[int, ...]]) -> tuple[int, ...]:
        seed, purpose, address = name
        return tuple(generator(seed, purpose, *address).integers(0, 2**62, 3).tolist())

    first = {name: draw(name) for name in names}
    random.shuffle(names)
    assert {name: draw(name) for name in names} == first
    assert len(set(first.values())) == len(names)
    assert len({key(seed, purpose, *address) for seed, purpose, address in names}) == len(names)


@pytest.mark.parametrize("number", [np.int64(3), np.int32(3)])
def test_numpys_integers_name_the_same_stream(number):
    assert key(3, "batches", 3) == key(number, "batches", number)


@settings(deadline=None, max_examples=100)
@given(st.integers(0, 2**128 - 1), st.integers(0, 10**6), st.integers(0, 300))
def test_an_order_is_a_permutation(stream, epoch, count):
    order = permutation(stream, epoch, count)
    assert order.dtype == torch.int64
    assert sorted(order.tolist()) == list(range(count))


def splitmix(stream: int, epoch: int, sample: int) -> int:
    """Steele, Lea, Flood 2014, in whole numbers without a size."""
    mask = 2**64 - 1
    z = (stream + epoch * 0xD1B54A32D192ED03 + (sample + 1) * 0x9E3779B97F4A7C15) & mask
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return z ^ (z >> 31)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**128 - 1), st.integers(0, 10**6), st.integers(0, 50))
def test_an_order_sorts_the_samples_by_their_hashes(stream, epoch, count):
    expected = sorted(range(count), key=lambda sample: splitmix(stream, epoch, sample))
    assert permutation(stream, epoch, count).tolist() == expected


@pytest.mark.parametrize("what", ["streams", "epochs"])
def test_every_sample_comes_everywhere_equally_often(what):
    """Chi-square of (sample, position) over many orders; 49 free degrees."""
    draws, count = 4000, 8
    table = np.zeros((count, count))
    for i in range(draws):
        stream, epoch = (key(0, "batches", i), 0) if what == "streams" else (key(0, "one"), i)
        table[permutation(stream, epoch, count).numpy(), np.arange(count)] += 1
    expected = draws / count
    chi_square = ((table - expected) ** 2 / expected).sum()
    assert 20 < chi_square < 95  # 99.99 % of honest shuffles; below: suspiciously even


def test_torch_is_seeded_as_by_manual_seed():
    with isolated():
        seed_torch(7, "noise", 1, SERVER)
        mine = torch.rand(4)
        torch.manual_seed(key(7, "noise", 1, SERVER) & (2**63 - 1))
        assert torch.equal(torch.rand(4), mine)
        seed_torch(7, "noise", 2, SERVER)
        assert not torch.equal(torch.rand(4), mine)


def test_isolation_gives_back_randomness_and_threads():
    def fail() -> None:
        with isolated():
            assert torch.get_num_threads() == 1
            seed_torch(0, "noise")
            raise KeyError

    with isolated():
        torch.set_num_threads(3)
        torch.default_generator.manual_seed(11)
        expected = torch.rand(3)
        torch.default_generator.manual_seed(11)
        with pytest.raises(KeyError):
            fail()
        assert torch.get_num_threads() == 3
        assert torch.equal(torch.rand(3), expected)
