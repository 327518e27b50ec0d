"""What clients keep, against a plain dict: every moment stays true, RAM and disk stay bounded."""

import copy
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from torch import Tensor

from bellwether import SGD, Federation, Scaffold, train
from bellwether.core.errors import InputError
from bellwether.core.snapshot import Snapshot
from bellwether.core.store import Store


@dataclass(frozen=True)
class Memory:
    control: Tensor
    drift: Tensor


def memory(number: int, size: int = 5) -> Memory:
    draw = torch.Generator().manual_seed(number)
    return Memory(torch.randn(size, generator=draw), torch.randn(size, generator=draw).double())


RECORD = 64 + 64
"""Bytes of a `memory` of 5 numbers."""


def equal(left: Memory, right: Memory) -> bool:
    pairs = zip(vars(left).values(), vars(right).values(), strict=True)
    return all(a.dtype == b.dtype and torch.equal(a, b) for a, b in pairs)


clients = st.integers(0, 9)


class Moments(RuleBasedStateMachine):
    """Moments of a run, kept and left in any order, beside dicts that say the same."""

    @rule(budget=st.integers(0, 5))
    @precondition(lambda self: not hasattr(self, "moments"))
    def begin(self, budget: int) -> None:
        self.store = Store(budget * RECORD)
        self.budget, self.number = budget * RECORD, 0
        self.moments: list[tuple[Snapshot[Memory], dict[int, Memory]]]
        self.moments = [(Snapshot(self.store), {})]

    @rule(at=st.integers(0, 3), cohort=st.lists(clients, max_size=6), accepted=st.booleans())
    @precondition(lambda self: hasattr(self, "moments"))
    def round(self, at: int, cohort: list[int], accepted: bool) -> None:
        before, plain = self.moments[-1 - at % len(self.moments)]
        draft, changed = before.draft(), dict(plain)
        for client in cohort:
            self.number += 1
            draft[client] = changed[client] = memory(self.number)
            assert client in draft
        some = [*cohort, 0, 1]
        asked = draft.of(some)
        assert set(asked) == {c for c in some if c in changed}
        if accepted:
            self.moments.append((draft.commit(), changed))
        for client, value in asked.items():
            assert equal(value, changed[client])
            assert value.control.data_ptr() % 64 == 0

    @rule(at=st.integers(0, 3))
    @precondition(lambda self: len(getattr(self, "moments", [])) > 1)
    def leave(self, at: int) -> None:
        del self.moments[at % len(self.moments)]

    @rule(at=st.integers(0, 3))
    @precondition(lambda self: hasattr(self, "moments"))
    def copy(self, at: int) -> None:
        snapshot, plain = self.moments[at % len(self.moments)]
        self.moments.append((copy.deepcopy(snapshot), dict(plain)))

    @invariant()
    def true(self) -> None:
        for snapshot, plain in getattr(self, "moments", []):
            assert len(snapshot) == len(plain)
            assert set(snapshot) == plain.keys()
            assert all(equal(snapshot[client], plain[client]) for client in plain)
            assert 10 not in snapshot
            with pytest.raises(KeyError):
                snapshot[10]

    @invariant()
    def bounded(self) -> None:
        assert not hasattr(self, "store") or self.store.in_ram <= self.budget

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.moments.clear()
            assert self.store.in_ram == 0


TestMoments = Moments.TestCase
TestMoments.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)


def open_files(folder: Path) -> list[int]:
    """The sizes of this process's files in a folder, with or without a name."""
    links = [Path("/proc/self/fd") / name for name in os.listdir("/proc/self/fd")]
    return [
        link.stat().st_size
        for link in links
        if link.is_symlink() and str(link.readlink()).startswith(f"{folder}/")
    ]


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="no /proc to look at open files")
def test_the_file_has_no_name_and_holds_what_lives(tmp_path: Path) -> None:
    store = Store(budget=3 * RECORD, folder=tmp_path)
    now: Snapshot[Memory] = Snapshot(store)
    for number in range(200):
        draft = now.draft()
        for client in range(number % 2, 20, 2):
            draft[client] = memory(100 * number + client)
        now = draft.commit()
        assert os.listdir(tmp_path) == []
    (size,) = open_files(tmp_path)
    assert size <= (20 + 10) * RECORD  # the clients', and those that one round replaces
    assert all(equal(now[c], memory(100 * (198 + c % 2) + c)) for c in range(20))
    del now, draft, store
    assert open_files(tmp_path) == []


def test_within_the_budget_no_file_is_made(tmp_path: Path) -> None:
    missing = tmp_path / "missing"  # to write there would fail
    draft = Snapshot[Memory](Store(budget=10 * RECORD, folder=missing)).draft()
    for client in range(10):
        draft[client] = memory(client)
    with pytest.raises(InputError, match="raise memory_budget"):
        draft[10] = memory(10)
    assert all(equal(draft.commit()[c], memory(c)) for c in range(10))


def test_a_piece_of_something_large_keeps_nothing_else_alive() -> None:
    store = Store()
    cohort = torch.randn(100, 5)
    record = store.put(Memory(cohort[3], cohort[4]))
    kept = record.value()
    assert torch.equal(kept.control, cohort[3])
    assert kept.control.untyped_storage().nbytes() == kept.control.nbytes
    cohort.zero_()  # a buffer may be used again
    assert kept.control.any()


@pytest.mark.parametrize(
    ("value", "message"),
    [("notes", "not str"), (Memory(torch.ones(2), 1.0), "whose drift is float")],  # type: ignore[arg-type]
)
def test_only_vectors_are_kept(value: object, message: str) -> None:
    with pytest.raises(InputError, match=f"dataclass of vectors.* {message}"):
        Store().put(value)


@contextmanager
def no_file_above(size: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_is_one_clear_line_and_loses_nothing() -> None:
    now: Snapshot[Memory] = Snapshot(Store(budget=0))
    for client in range(3):
        draft = now.draft()
        draft[client] = memory(client)
        now = draft.commit()
    draft = now.draft()
    message = r"write down what clients keep: .* memory_budget"
    with no_file_above(3 * RECORD + 7), pytest.raises(InputError, match=message):
        draft[0] = memory(100)
    assert all(equal(now[client], memory(client)) for client in range(3))


def federation() -> Federation:
    draw = torch.Generator().manual_seed(0)
    rows = [(torch.randn(6, 4, generator=draw), torch.randint(3, (6,), generator=draw))] * 8
    return Federation.from_arrays(rows)


def test_the_budget_leaves_the_bits_alone(tmp_path: Path) -> None:
    def run(**more: object) -> Tensor:
        network = torch.nn.Linear(4, 3)
        with torch.no_grad():
            network.weight.fill_(0.1), network.bias.fill_(0)
        method = Scaffold(SGD(lr=0.1, epochs=2, batch_size=2))
        return train(method, federation(), network, 9, **more).model  # type: ignore[arg-type]

    assert torch.equal(run(memory_budget=0), run())
    assert torch.equal(run(memory_budget=500, run_dir=tmp_path / "run"), run())
    with pytest.raises(InputError, match="memory_budget must be at least 0"):
        run(memory_budget=-1)
