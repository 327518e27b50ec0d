"""Where the time of rounds goes: every moment in one part, and no bit of the training changed."""

import io
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from torch import nn

from bellwether import Diverged, FedAvg, FedCLGC, InputError, Profile, participation, train
from bellwether.core import profile as parts
from bellwether.engines import local as engine
from bellwether.engines.local import Local
from bellwether.experiments.run import Result
from bellwether.experiments.training import Interrupted
from bellwether.report.profile_table import profile_table
from test_same_bits import CLIENT, SERVER, federation
from test_workers import network


def plain_network() -> nn.Module:
    """Without noise or batch-norm, so that clients can be computed side by side."""
    return nn.Sequential(nn.Linear(6, 9), nn.ReLU(), nn.Linear(9, 3))


METHOD = FedCLGC(CLIENT, SERVER)


def run(profile: Profile | None, where: Local | None = None, **more: Any) -> Result:
    settings = {"participation": participation.Uniform(4), "model": network} | more
    return train(METHOD, federation(), rounds=3, seed=3, engine=where, profile=profile, **settings)


class Clock:
    """Moves when it is told to."""

    now = 0

    def __call__(self) -> int:
        return self.now

    def pass_(self, time: int) -> None:
        self.now += time


def test_each_moment_counts_for_the_innermost_part() -> None:
    clock = Clock()
    profile = Profile(clock)

    def inner(time: int) -> int:
        clock.pass_(time)
        return time

    inside = profile.wrap("inner", inner)

    def outer() -> None:
        clock.pass_(1)
        assert inside(10) == 10
        clock.pass_(2)

    def items() -> Iterator[int]:
        for _ in range(3):
            clock.pass_(100_000)
            yield inside(1_000_000)

    with profile.round():
        clock.pass_(100)
        profile.wrap("outer", outer)()
        profile.wrap("whole", outer, whole=True)()
        inside(1000)
        for _ in profile.each("items", items()):
            clock.pass_(10_000_000)  # what the reader does is not theirs
    inside(5)  # in no round
    assert profile.nanoseconds == {
        parts.OTHER: 30_000_100,
        "outer": 3,
        "whole": 13,
        "inner": 10 + 1000 + 3_000_000,
        "items": 300_000,
    }
    assert profile.rounds == 1


Tree = st.recursive(
    st.integers(0, 9),
    lambda tree: st.tuples(
        st.sampled_from("abc"), st.booleans(), st.booleans(), st.lists(tree, max_size=4)
    ),
)


@given(st.lists(Tree, max_size=6))
def test_parts_add_up_whatever_nests_and_fails(program: list[Any]) -> None:
    clock = Clock()
    profile = Profile(clock)

    def play(tree: Any) -> None:
        if isinstance(tree, int):
            return clock.pass_(tree)
        name, whole, fails, children = tree

        def body() -> None:
            for child in children:
                play(child)
            if fails:
                raise ValueError

        try:
            profile.wrap(name, body, whole)()
        except ValueError:
            clock.pass_(1)
        return None

    for tree in program:
        with profile.round():
            play(tree)
        clock.pass_(0)
    assert sum(profile.nanoseconds.values()) == clock.now
    assert all(spent >= 0 for spent in profile.nanoseconds.values())


IN_PROCESS = {parts.GRADIENTS, parts.STEPS, parts.LOADING, parts.COPYING}
ROUND = {parts.SERVER, parts.METHOD, parts.EVALUATION, parts.DISK, parts.DIAGNOSTICS, parts.OTHER}
PLACES: dict[str, tuple[Callable[[], Local], set[str]]] = {
    "in this process": (Local, IN_PROCESS),
    "side by side": (lambda: Local(batch_clients=2), IN_PROCESS),
    "in workers": (lambda: Local(workers=2), {parts.WAITING, parts.COPYING}),
}


@pytest.mark.parametrize("place", PLACES)
def test_all_parts_of_a_run_and_nothing_else(place: str, tmp_path: Path) -> None:
    """By a clock that ticks at every look: the parts are all ticks but those between rounds."""
    where, expected = PLACES[place]
    ticks = itertools.count()
    profile = Profile(lambda: next(ticks))
    more = {"run_dir": tmp_path / "run", "checkpoint_every": 1, "diagnose_every": 2}
    run(profile, where(), model=plain_network, **more)
    assert set(profile.nanoseconds) == expected | ROUND
    assert all(spent > 0 for spent in profile.nanoseconds.values())
    assert sum(profile.nanoseconds.values()) == next(ticks) - 1 - (profile.rounds - 1)
    assert profile.rounds == 3
    workers = IN_PROCESS | {parts.OTHER} if place == "in workers" else set()
    assert set(profile.in_workers) == workers
    assert all(spent > 0 for spent in profile.in_workers.values())


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_workers_say_how_long_they_worked(start: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However they begin; a workplace that could not be sent would be warned of."""
    monkeypatch.setattr(engine, "start_method", lambda: start)
    profile = Profile()
    run(profile, Local(workers=2))
    assert set(profile.in_workers) == IN_PROCESS | {parts.OTHER}
    assert profile.nanoseconds[parts.WAITING] > 0
    assert parts.GRADIENTS not in profile.nanoseconds


class Asked(Local):
    """Counts the evaluations that it is asked for."""

    evaluations = 0

    def scores(self, evaluation: Any) -> Any:
        self.evaluations += 1
        return super().scores(evaluation)


def test_workers_still_evaluate() -> None:
    where = Asked(workers=2)
    run(Profile(), where)
    assert where.evaluations == 3


@pytest.mark.parametrize("place", PLACES)
def test_no_bit_and_no_object_of_the_user_changes(place: str) -> None:
    where, method, held = PLACES[place][0], dict(vars(METHOD)), federation()
    before = dict(vars(held))
    model = plain_network if place == "side by side" else network
    plain, timed = (run(p, where(), model=model) for p in (None, Profile()))
    assert plain.model.numpy().tobytes() == timed.model.numpy().tobytes()
    assert plain.buffers.numpy().tobytes() == timed.buffers.numpy().tobytes()
    assert [r.metrics for r in plain.history] == [r.metrics for r in timed.history]
    train(METHOD, held, model, 1, engine=where(), profile=Profile())
    assert vars(METHOD) == method
    assert vars(held) == before


def test_after_a_stopped_run_it_still_adds_up() -> None:
    ticks = itertools.count()
    profile = Profile(lambda: next(ticks))

    def stop(record: Any) -> None:
        if record.round == 2:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted):
        run(profile, on_round=stop)
    assert profile.rounds == 2
    with pytest.raises(Diverged):
        train(FedAvg(CLIENT), federation(), network, 9, loss=lambda o, t: o.sum() * float("nan"),
              profile=profile)  # fmt: skip
    run(profile)
    assert profile.rounds == 6
    assert sum(profile.nanoseconds.values()) == next(ticks) - 1 - 5


def test_workers_that_diagnose_do_not_count_as_working_in_the_round() -> None:
    profile = Profile()
    with profile.round():
        profile.wrap(parts.DIAGNOSTICS, profile.add_worker, whole=True)(9, {parts.STEPS: 5})
        profile.add_worker(4, {parts.STEPS: 1})
    assert profile.in_workers == {parts.STEPS: 1, parts.COPYING: 3}


def test_the_table_adds_up() -> None:
    profile = Profile()
    profile.nanoseconds.update({parts.WAITING: 3_000_000, parts.DISK: 1_000_000})
    profile.rounds = 2
    profile.add_worker(8_000_000, {parts.STEPS: 6_000_000})
    file = io.StringIO()
    Console(width=80, file=file).print(profile_table("[FedAvg]", profile))
    text = file.getvalue()
    assert "[FedAvg]: where a round's time went (mean of 2)" in text
    rows = [line.partition("%")[0] + "%" for line in text.splitlines() if "%" in line]
    assert [row.split() for row in rows] == [
        ["waiting", "for", "workers", "0.00150", "75.0%"],
        ["disk", "0.00050", "25.0%"],
        ["a", "round", "0.00200", "100.0%"],
        ["clients'", "steps", "0.00300", "75.0%"],
        ["copying", "vectors", "0.00100", "25.0%"],
        ["all", "workers", "0.00400", "100.0%"],
    ]
    assert "2.67 times what was waited" in text


@pytest.mark.parametrize("wrong", [True, Profile])
def test_what_is_no_profile(wrong: Any) -> None:
    with pytest.raises(InputError, match=r"profile must be such as Profile\(\)"):
        run(wrong)


def test_the_table_of_no_round() -> None:
    assert profile_table("FedAvg", Profile()).row_count == 0
