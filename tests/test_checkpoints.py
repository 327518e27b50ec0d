"""Checkpoints write what changed, and whatever breaks, a sound one serves in the same bits."""

import os
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from bellwether import SGD, Federation, Scaffold, State, train
from bellwether.compression import TopK
from bellwether.core.rounds import Progress
from bellwether.core.snapshot import Snapshot
from bellwether.core.store import Store
from bellwether.experiments import checkpoints
from bellwether.experiments.checkpoints import Checkpoints
from bellwether.experiments.run import Result
from bellwether.federation.participation import Uniform

SIZE = 50


@dataclass(frozen=True)
class Memory:
    control: Tensor


def progress(round: int, before: Progress | None, cohort: set[int]) -> Progress:
    """The next moment: each client of the cohort keeps a memory that says the round and who."""
    old = before or Progress(0, State(torch.zeros(SIZE)), torch.zeros(2), *empty())
    memories, residuals = old.memories.draft(), old.residuals.draft()
    for client in cohort:
        memories[client] = Memory(torch.full((SIZE,), float(round + 1000 * client)))
        if client % 3 == 0:
            residuals[client] = {f"{round % 2}.Upload.change": torch.full((3,), float(round))}
    state = State(torch.full((SIZE,), float(round)))
    return Progress(round, state, torch.zeros(2), memories.commit(), residuals.commit())


def empty() -> tuple[Snapshot, Snapshot]:
    store = Store(budget=300)
    return Snapshot(store), Snapshot(store)


def said(moment: Progress) -> dict[str, object]:
    """All that a moment holds, as plain values."""
    return {
        "round": moment.round,
        "state": moment.state.model.tolist(),
        "memories": {c: memory.control.tolist() for c, memory in moment.memories.items()},
        "residuals": {
            c: {name: v.tolist() for name, v in kept.items()}
            for c, kept in moment.residuals.items()
        },
    }


def files(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_size for path in folder.iterdir()}


Steps = st.lists(
    st.tuples(
        st.sets(st.integers(0, 30), max_size=8),
        st.sampled_from(["round", "save", "save", "reopen", "damage", "lose"]),
    ),
    max_size=15,
)


@settings(max_examples=50, deadline=None)
@example([(set(), "save"), (set(), "damage"), (set(), "round"), (set(), "damage")], 1)
@given(Steps, st.sampled_from([1, 500, checkpoints.PART]))
def test_what_was_saved_is_what_is_loaded(steps: list[tuple[set[int], str]], part: int) -> None:
    """Against a list of all that was ever saved; each save may be the last thing that happened."""
    with tempfile.TemporaryDirectory() as place, pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoints, "PART", part)
        patch.setattr(os, "fsync", lambda _: None)  # nobody pulls the plug here
        folder = Path(place) / "checkpoint"
        written, now, changed = Checkpoints(folder), progress(0, None, set()), set[int]()
        sound: list[dict[str, object]] = []
        for cohort, then in steps:
            now = progress(now.round + 1, now, cohort)
            changed |= cohort
            if then == "round":
                continue
            written.save(now, changed)
            sound, changed = [said(now), *sound][:2], set()
            live = len(now.memories) * (4 * SIZE + 150) + len(now.residuals) * 250
            assert sum(files(folder).values()) < 3 * live + 4000 * (1 + len(files(folder)))
            if then == "save":
                continue
            if then in ("damage", "lose") and len(sound) > 1:
                newest = f"*-{now.round:08d}*.safetensors"
                victim = sorted(folder.glob(newest))[len(cohort) % len(list(folder.glob(newest)))]
                data = bytearray(victim.read_bytes())
                data[len(data) // 2] ^= 1
                victim.write_bytes(data) if then == "damage" else victim.unlink()
                sound = sound[1:]
            written = Checkpoints(folder)
            with warnings.catch_warnings(record=True) as spoken:
                warnings.simplefilter("always")
                loaded = written.load(progress(0, None, set()), Memory)
            assert loaded is not None
            assert said(loaded) == sound[0]
            assert bool(spoken) == (loaded.round != now.round)
            now = loaded


def test_a_checkpoint_writes_what_changed(tmp_path: Path) -> None:
    written, now = Checkpoints(tmp_path), progress(1, None, set(range(10_000)))
    written.save(now, set(range(10_000)))
    before, spent = files(tmp_path), []
    for round in range(2, 30):
        cohort = set(range(10 * round, 10 * round + 10))
        now = progress(round, now, cohort)
        written.save(now, cohort)
        after = files(tmp_path)
        new = after.keys() - before.keys() | {tmp_path / "latest.json"}
        spent.append(sum(after[path] for path in new))
        before = after
    one = 4 * SIZE + 250
    assert min(spent) < 10 * one + 3000
    assert sum(spent) / len(spent) < 60 * one + 3000  # small segments become one now and then
    assert len(after) < 15


def federation() -> Federation:
    draw = torch.Generator().manual_seed(0)
    return Federation.from_arrays(
        [
            (torch.randn(6, 20, generator=draw), torch.randint(3, (6,), generator=draw))
            for _ in range(12)
        ]
    )


def run(folder: Path | None, rounds: int, **more: object) -> Result:
    """Residuals and memories, few of them in RAM, a checkpoint each round."""
    return train(
        Scaffold(SGD(lr=0.1, epochs=1, batch_size=2)),
        federation(),
        lambda: torch.nn.Linear(20, 3),
        rounds,
        participation=Uniform(3),
        seed=5,
        run_dir=folder,
        resume=folder is not None and folder.exists() and any(folder.iterdir()),
        checkpoint_every=1,
        memory_budget=600,
        compress_up=TopK(0.2),
        eval_every=0,
        **more,  # type: ignore[arg-type]
    )


DIE_AT_EVERY_STEP = """
import os, signal, sys, traceback
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import torch
from test_checkpoints import run

place, rounds = Path(sys.argv[2]), 3
end = run(None, rounds).model
EVENTS = {"open", "os.rename", "os.remove", "os.chmod", "os.mkdir", "os.truncate"}

def in_child(work):
    child = os.fork()
    if not child:
        code = 1
        try:
            work()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1]

def until(step, folder):
    left = [step]
    def watch(event, args):
        if event in EVENTS and str(args[0]).startswith(str(folder)):
            left[0] -= 1
            if not left[0]:
                os.kill(os.getpid(), signal.SIGKILL)
    sys.addaudithook(watch)
    run(folder, rounds)

def resumed(folder):
    if (folder / "environment.json").exists():
        assert torch.equal(run(folder, rounds).model, end), folder
        assert not [*(folder / "checkpoint").glob("*.tmp")]

step, dead = 0, 0
while True:
    step += 1
    folder = place / str(step)
    status = in_child(lambda: until(step, folder))
    if os.WIFEXITED(status):
        assert not os.WEXITSTATUS(status), step
        break
    assert os.WTERMSIG(status) == signal.SIGKILL
    assert in_child(lambda: resumed(folder)) == 0, step
    dead += 1
print(dead)
"""


def test_killed_between_any_two_file_operations(tmp_path: Path) -> None:
    """A real kill -9 at each of them in turn; each time the run goes on to the same bits."""
    command = [sys.executable, "-c", DIE_AT_EVERY_STEP, str(Path(__file__).parent), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 50


def test_killed_at_any_instant(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    code = (
        "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[1]);"
        "from test_checkpoints import run;"
        "run(Path(sys.argv[2]), 60, on_round=lambda r: print(r.round, flush=True))"
    )
    command = [sys.executable, "-c", code, str(Path(__file__).parent), str(folder)]
    for lines, wait in ((3, 0.0), (9, 0.0011), (20, 0.0023), (7, 0.0037)):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout
        assert all(process.stdout.readline() for _ in range(lines))
        time.sleep(wait)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        process.stdout.close()
    assert sorted(os.listdir(folder)) == ["checkpoint", "environment.json", "metrics.jsonl"]
    assert torch.equal(run(folder, 60).model, run(None, 60).model)
