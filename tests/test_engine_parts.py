"""The parts of the workers' engine: blocks of memory, parcels, and the order of the work."""

from dataclasses import dataclass
from random import Random
from typing import Any

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings
from torch import Tensor, nn

from bellwether.engines.arena import Arena
from bellwether.engines.jobs import Job
from bellwether.engines.parcels import Parcel, Place, Unfit, opened

DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.uint8, torch.bool]


@given(st.lists(st.tuples(st.integers(0, 20_000), st.booleans(), st.integers(0, 99))))
def test_blocks_never_overlap_and_are_used_again(steps: list[tuple[int, bool, int]]) -> None:
    arena = Arena()
    held: dict[int, int] = {}
    peak = 0
    for size, gives_back, which in steps:
        if gives_back and held:
            start = sorted(held)[which % len(held)]
            del held[start]
            arena.give_back(start)
        else:
            start = arena.take(size)
            assert start % 64 == 0
            held[start] = size
            arena.upto(start + size)[start : start + size] = b"x" * size
        ends = [0, *(start + size for start, size in sorted(held.items()))]
        assert all(end <= start for end, start in zip(ends, sorted(held), strict=False))
        peak = max(peak, arena.taken)
    for start in held:
        arena.give_back(start)
    everything = arena.take(peak)
    assert everything == 0  # one gap again
    arena.close()


@dataclass(frozen=True)
class Message:
    name: str
    vectors: tuple[Tensor, ...]
    more: Any = None


vector = st.builds(
    lambda shape, dtype, seed: torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(
        dtype
    ),
    st.lists(st.integers(0, 5), max_size=3),
    st.sampled_from(DTYPES),
    st.integers(0, 99),
)


@settings(deadline=None)
@given(st.lists(vector, max_size=5), st.booleans(), st.sampled_from([0, 64, 4096]))
def test_a_parcel_arrives_as_it_was(vectors: list[Tensor], copy: bool, start: int) -> None:
    strided = torch.arange(24.0).reshape(4, 6).T
    message = Message("é", (*vectors, *vectors, strided), {"weights": nn.Linear(2, 3), 5: None})
    parcel = Parcel(message)
    arena = Arena()
    buffer = arena.upto(arena.take(start + parcel.size) + start + parcel.size)
    arrived: Message = opened(buffer, parcel.write(buffer, start), copy=copy)
    assert arrived.name == "é"
    for one, other in zip(message.vectors, arrived.vectors, strict=True):
        assert one.dtype == other.dtype
        assert torch.equal(one, other)
        assert other.data_ptr() % 64 == 0
    count = len(vectors)
    for one, other in zip(arrived.vectors[:count], arrived.vectors[count : 2 * count], strict=True):
        assert one is other  # sent once
    assert torch.equal(message.more["weights"].weight, arrived.more["weights"].weight)
    if vectors and vectors[0].numel():  # a copy is the receiver's own
        buffer[start : start + parcel.size] = bytes(parcel.size)
        assert torch.equal(arrived.vectors[0], vectors[0] if copy else torch.zeros_like(vectors[0]))
    arena.close()


def test_vectors_lie_beside_the_pickle_and_nothing_nameless_is_sent() -> None:
    place = Parcel(Message("large", (torch.zeros(10_000),))).write(bytearray(50_000))
    assert place == Place(0, 40_000, place.skeleton)
    assert place.skeleton < 500
    with pytest.raises(Unfit, match="lambda"):
        Parcel(lambda: None)


@settings(deadline=None)
@given(
    st.lists(st.floats(1, 100), min_size=1, max_size=40),
    st.integers(1, 50),
    st.integers(1, 6),
    st.integers(1, 20),
    st.floats(0, 200),
    st.integers(0, 2**32).map(Random),
)
def test_all_is_done_and_read_in_order_within_the_window(
    costs: list[float], window: int, workers: int, most: int, least: float, chance: Random
) -> None:
    """Workers answer, die and are waited for in any order; reading never gets stuck."""
    job = Job([(p,) for p in range(len(costs))], costs, window)
    out: list[tuple[int, ...]] = []
    read: list[int] = []
    while job.unread:
        bundle = job.take(workers, most, least) if chance.random() < 0.7 else []
        assert sum(map(len, bundle)) <= most
        assert [costs[p] for (p,) in bundle] == sorted((costs[p] for (p,) in bundle), reverse=True)
        out += bundle
        assert all(p < job.next + window for (p,) in out)
        if out and chance.random() < 0.7:
            group = out.pop(chance.randrange(len(out)))
            if chance.random() < 0.2:
                job.put_back(group)
            else:
                job.finish(group, [f"result {group[0]}"])
        if job.ready and chance.random() < 0.7:
            read.append(job.next)
            assert job.read() == f"result {read[-1]}"
        if not (bundle or out or job.ready):
            out += job.take(workers, most, least)
            assert out or not job.unread
    assert read == list(range(len(costs)))
    assert job.idle


def test_the_longest_go_first_and_bundles_shrink() -> None:
    job = Job([(p,) for p in range(6)], [1, 5, 2, 9, 2, 1], window=6)
    taken = [job.take(2, most=10) for _ in range(6)]
    assert taken == [[(3,)], [(1,)], [(2,)], [(4,)], [(0,)], [(5,)]]
    even = Job([(p,) for p in range(100)], [1.0] * 100, window=100)
    sizes = []
    while bundle := even.take(2, most=100, least=5):
        sizes.append(len(bundle))
    assert sizes == [25, 18, 14, 10, 8, 6, 5, 5, 5, 4]
    assert sum(sizes) == 100
