"""The benchmarks: fair turns, whole memory, nothing left behind, and a page that is up to date."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
BENCHMARKS = ROOT / "benchmarks"


@pytest.fixture(scope="module", autouse=True)
def beside() -> Iterator[None]:
    """The benchmarks are scripts that import each other by their bare names."""
    patch = pytest.MonkeyPatch()
    patch.syspath_prepend(str(BENCHMARKS))
    yield
    patch.undo()
    ours = {path.stem for path in BENCHMARKS.glob("*.py")}
    for name in ours & set(sys.modules):
        del sys.modules[name]


CONTENDER = """
import sys, time, os, subprocess
import turns
given = turns.arguments(None).parse_args()
turn = turns.Turns()
print("a library that talks on standard output")
{before}
turn.ready(["numpy"], data_seconds=0.0)
for number in range(turns.FOREVER):
    {each}
    turn()
"""


@pytest.fixture
def entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Makes a contender of a few lines."""
    from referee import Entry

    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    def make(each: str = "pass", before: str = "") -> Entry:
        (tmp_path / "toy.py").write_text(CONTENDER.format(each=each, before=before))
        return Entry("toy", "a toy", "toy")

    return make


def test_rounds_come_in_turns_and_their_seconds_are_real(entry: Callable[..., Any]) -> None:
    import referee

    with referee.running(entry("time.sleep(0.02)"), "A") as toy:
        assert toy.facts["versions"]["numpy"]
        seconds = toy.rounds(3)
        time.sleep(0.1)  # waiting is no part of a round
        seconds += toy.rounds(2)
    assert len(seconds) == 5
    assert all(each >= 0.02 for each in seconds)
    assert min(seconds[3:]) < 0.1


@pytest.mark.parametrize(
    ("toy", "reason"),
    [
        ({"each": "raise ValueError('no such layer')"}, "ValueError: no such layer"),
        ({"before": "turn.cannot('needs a GPU')"}, "needs a GPU"),
        ({"before": "os._exit(3)"}, "ended"),
    ],
)
def test_a_contender_that_fails_says_why(
    entry: Callable[..., Any], toy: dict[str, str], reason: str
) -> None:
    import memory
    import referee

    contender = referee.Contender(entry(**toy), "A")
    try:
        with pytest.raises(referee.Failed, match=reason):
            contender.warm_up()
    finally:
        contender.close()
    assert not memory.members(contender.mark)


def test_a_contender_that_hangs_is_ended_with_its_daemons(entry: Callable[..., Any]) -> None:
    import memory
    import referee

    sleeper = "[sys.executable, '-c', 'import time; time.sleep(600)']"
    daemon = f"subprocess.Popen({sleeper}, start_new_session=True)"
    contender = referee.Contender(entry("time.sleep(600 * (number > 0))", daemon), "A")
    try:
        contender._line(60)  # it is there
        assert contender.rounds(1, 60)
        assert len(memory.members(contender.mark)) == 2
        with pytest.raises(referee.Failed, match="no answer within 0 seconds"):
            contender.rounds(1, 0.01)
    finally:
        contender.close()
    assert not memory.members(contender.mark)


def test_memory_of_a_tree_counts_every_process_once() -> None:
    import memory

    held = 60_000_000
    program = (
        f"import os, sys; block = b'x' * {held}; pid = os.fork()\n"  # shared with the child
        f"mine = b'y' * {held} if not pid else b''\n"
        "print('there', flush=True) if not pid else None; sys.stdin.readline()"
    )
    mark = memory.new_mark()
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        env={memory.MARK: mark},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin
    assert process.stdout
    with process:
        process.stdout.readline()
        assert len(memory.members(mark)) == 2
        with memory.Watch(mark) as watch:
            pass
        process.stdin.close()
    assert watch.peak
    assert 2 * held < watch.peak < 2.8 * held


SAME = """
import plain, networks, torch
from workloads import WORKLOADS
torch.set_num_threads(1)
# One step of the whole data for every client: no draw can make a difference.
work = WORKLOADS["C"].changed(["clients=6", "cohort=6", "samples=8", "batch_size=8"])
data = work.holder(torch.from_numpy)
models = []
for rounds in (plain.rounds, plain.shared_rounds):
    torch.manual_seed(0)
    played = rounds(work, plain.Trainer(work, data, networks.make(work)))
    model = [next(played) for _ in range(3)][-1]
    models.append(torch.cat([value.flatten() for value in model]))
torch.testing.assert_close(*models, rtol=1e-5, atol=1e-6)
"""


def test_two_processes_train_what_one_trains() -> None:
    # Forks, so in a process that has no threads yet.
    subprocess.run([sys.executable, "-c", SAME], cwd=BENCHMARKS, check=True, timeout=300)


def test_the_page_is_as_its_results_say() -> None:
    import page

    results = json.loads((BENCHMARKS / "results.json").read_text())
    text = page.PAGE.read_text()
    assert page.page(text, results) == text, "run `python benchmarks/page.py`"


def test_the_page_says_where_bellwether_loses() -> None:
    import page

    def entry(title: str, seconds: float) -> dict[str, object]:
        return {"title": title, "seconds": [seconds] * 3, "ours": [0.1, 0.1, 0.2]}

    entries = {
        "ours": {"title": "Bellwether", "seconds": [0.1, 0.1, 0.2]},
        "quick": entry("Quick", 0.05),
        "slow": entry("Slow", 0.4),
        "away": entry("Away", 1.0) | {"seconds": [], "ours": [], "failed": "needs a GPU"},
    }
    machine = {"processor": "P", "cores": 2, "system": "S", "python": "3", "torch": "2"}
    machine |= {"load_before": 0.1, "quick": False}
    work = {"title": "few clients", "measured": "today", "entries": entries}
    text = page.block({"machine": machine, "contenders": {"A": work}})
    assert "| Quick | 0.0500 (2.00; 2.00..4.00) |" in text
    assert "| Slow | 0.400 (0.25; 0.25..0.50) |" in text
    lost = text.split("## Where Bellwether loses")[1]
    assert "A: Quick, by a factor of 2.00" in lost
    assert "Slow" not in lost
    assert "A: Away: needs a GPU" in lost
