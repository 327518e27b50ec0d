"""Nothing is lost: real processes are killed, resumed, and end in the same bits."""

import json
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from torch import Tensor

from bellwether import SGD, Algorithm, Clients, FedAvg, Sent, Server, State, Upload, mean, train
from bellwether.core.errors import Diverged, InputError
from bellwether.core.participants import Client
from bellwether.experiments.run import Result
from bellwether.experiments.training import Interrupted
from test_same_bits import METHODS, batch_norm_network, federation

ROUNDS = 12


@dataclass(frozen=True)
class Count:
    visits: Tensor


@dataclass(frozen=True)
class Momentum(State):
    velocity: Tensor
    rounds: int = 0


@dataclass(frozen=True)
class Remembering(Algorithm):
    """A method with everything that must survive: server state, numbers, client memories."""

    client: SGD
    memory = Count

    def start(self, model: Tensor, server: Server) -> State:
        return Momentum(model, torch.zeros_like(model))

    def round(self, state: State, clients: Clients, server: Server) -> State:
        assert isinstance(state, Momentum)
        v = 0.5 * state.velocity + mean(clients.run(self.local, Sent(state.model))).change
        return Momentum(state.model + v + state.rounds * 1e-3, v, state.rounds + 1)

    def local(self, client: Client, sent: Sent) -> Upload:
        visits = client.memory.visits
        client.memory = Count(visits + 1)
        return Upload(client.descend(sent.model, self.client, 0.01 * visits).change)


ALL = {**METHODS, "Remembering": Remembering(SGD(lr=0.1, epochs=2, batch_size=8))}


def run(method: str, folder: Path | None = None, rounds: int = ROUNDS, **more: object) -> Result:
    return train(
        ALL[method],
        federation(),
        batch_norm_network,
        rounds,
        seed=5,
        run_dir=folder,
        checkpoint_every=3,
        **more,  # type: ignore[arg-type]
    )


def same(a: Result, b: Result) -> bool:
    return (
        torch.equal(a.model, b.model)
        and torch.equal(a.buffers, b.buffers)
        and [r.metrics for r in a.history] == [r.metrics for r in b.history]
        and [r.cohort for r in a.history] == [r.cohort for r in b.history]
    )


@pytest.mark.parametrize("method", ALL)
def test_resumed_from_a_checkpoint_in_the_middle(method: str, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    run(method, folder, rounds=7)
    assert same(run(method, folder, resume=True), run(method))
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert [line["round"] for line in lines] == list(range(1, ROUNDS + 1))


@pytest.mark.parametrize("method", ["FedCLGC", "Remembering"])
def test_killed_for_real(method: str, tmp_path: Path) -> None:
    """kill -9 at several instants of one run, resumed each time; the bits are the undisturbed."""
    folder = tmp_path / "run"
    code = (
        "import sys, time; from pathlib import Path; sys.path.insert(0, sys.argv[1]);"
        "from test_run_directory import run; folder = Path(sys.argv[3]);"
        "run(sys.argv[2], folder, resume=folder.exists(),"
        "on_round=lambda r: (print(r.round, flush=True), time.sleep(0.02)))"
    )
    command = [sys.executable, "-c", code, str(Path(__file__).parent), method, str(folder)]
    for lines, wait in ((2, 0.0), (3, 0.015), (4, 0.03)):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout
        seen = [process.stdout.readline() for _ in range(lines)]
        assert all(seen)
        time.sleep(wait)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        process.stdout.close()
    assert same(run(method, folder, resume=True), run(method))


def test_ctrl_c_keeps_what_is_done(tmp_path: Path) -> None:
    folder = tmp_path / "run"

    def interrupt(record: object) -> None:
        if record.round == 5:  # type: ignore[attr-defined]
            raise KeyboardInterrupt

    with pytest.raises(Interrupted, match="after round 5") as caught:
        run("FedCLGC", folder, on_round=interrupt)
    assert len(caught.value.result.history) == 5
    assert same(run("FedCLGC", folder, resume=True), run("FedCLGC"))


def test_a_damaged_checkpoint_falls_back_to_the_one_before(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    run("FedCLGC", folder, rounds=7)
    newest = max((folder / "checkpoint").glob("*.safetensors"))
    newest.write_bytes(newest.read_bytes()[:-7])
    with pytest.warns(UserWarning, match=r"round-00000007.* cannot be read .* of round 6"):
        assert same(run("FedCLGC", folder, resume=True), run("FedCLGC"))
    for file in (folder / "checkpoint").glob("*.safetensors"):
        file.write_bytes(b"")
    with pytest.raises(InputError, match="damaged"):
        run("FedCLGC", folder, resume=True)


def test_a_folder_is_never_taken_by_accident(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    run("FedAvg", folder, rounds=2)
    with pytest.raises(InputError, match="is not empty"):
        run("FedAvg", folder)
    with pytest.raises(InputError, match="was made with algorithm"):
        run("FedCLGC", folder, resume=True)
    with pytest.raises(InputError, match="there is no run"):
        run("FedAvg", tmp_path / "elsewhere", resume=True)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("mine")
    with pytest.raises(InputError, match="holds no run"):
        run("FedAvg", tmp_path / "notes", resume=True)
    with pytest.raises(InputError, match="needs run_dir"):
        run("FedAvg", resume=True)


def test_an_unwritable_folder_is_said_before_any_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    rounds: list[object] = []
    with pytest.raises(InputError, match="cannot write"):
        run("FedAvg", tmp_path / "file" / "run", on_round=rounds.append)
    assert not rounds


def test_a_run_that_fails_before_its_first_round_leaves_nothing(tmp_path: Path) -> None:
    method = FedAvg(SGD(lr=1e30, steps=9))
    (tmp_path / "mine").mkdir()
    for folder in (tmp_path / "new" / "run", tmp_path / "mine"):
        with pytest.raises(Diverged, match="round 1"):
            train(method, federation(), batch_norm_network, 2, run_dir=folder)
    assert list(tmp_path.rglob("*")) == [tmp_path / "mine"]


def test_the_final_model_is_on_disk(tmp_path: Path) -> None:
    from safetensors.torch import load_file

    result = train(
        FedAvg(SGD(lr=0.1, steps=1)), federation(), batch_norm_network, 2, run_dir=tmp_path / "r"
    )
    stored = load_file(tmp_path / "r" / "model.safetensors")
    assert torch.equal(stored["model"], result.model)
    assert torch.equal(stored["buffers"], result.buffers)
