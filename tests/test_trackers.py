"""What TensorBoard and MLflow are told is what was recorded."""

import sys

import pytest
from torch import nn

from bellwether import SGD, FedAvg, Federation, train
from bellwether.core.errors import InputError
from bellwether.report.mlflow import MLflow
from bellwether.report.tensorboard import TensorBoard
from bellwether.report.trackers import scalars
from run_folders import write_comparison
from test_cli import bellwether  # noqa: F401, a fixture
from test_report import example


def board(folder):
    """Step and value by name, as TensorBoard itself reads them."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder)).Reload()
    return {
        name: [(event.step, event.value) for event in events.Scalars(name)]
        for name in events.Tags()["scalars"]
    }


@pytest.fixture
def address(tmp_path, monkeypatch):
    """A store of MLflow in a folder; it asks to be told that this is meant."""
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    return f"file:{tmp_path / 'store'}"


def store(address):
    """Step and value by name, of every run by its name."""
    from mlflow import MlflowClient

    client = MlflowClient(address)
    runs = client.search_runs([each.experiment_id for each in client.search_experiments()])
    return {
        run.info.run_name: (
            run.info.status,
            {
                name: [(m.step, m.value) for m in client.get_metric_history(run.info.run_id, name)]
                for name in run.data.metrics
            },
        )
        for run in runs
    }


def expected(records):
    names = scalars(records[0])
    return {name: [(r.round, pytest.approx(scalars(r)[name])) for r in records] for name in names}


def test_while_training(tmp_path, address):
    draws = [([[float(i), 1.0]] * 4, [i % 2] * 4) for i in range(4)]
    federation = Federation.from_arrays(clients=draws, test=draws[0])
    trackers = [TensorBoard(tmp_path / "board"), MLflow(address, "mine", "one")]

    def told(record):
        for tracker in trackers:
            tracker(record)

    method = FedAvg(SGD(lr=0.1, epochs=1))
    result = train(method, federation, nn.Linear(2, 2), 3, on_round=told)
    for tracker in trackers:
        tracker.close()
    assert board(tmp_path / "board") == expected(result.history)
    assert store(address) == {"one": ("FINISHED", expected(result.history))}


def test_from_folders(bellwether, tmp_path, address):  # noqa: F811
    runs = [run for run in example().runs if run.algorithm == "FedCLG-C"][:2]
    write_comparison(tmp_path / "runs", tuple(runs))
    command = ("report", "runs", "--format", "csv", "--tensorboard", "board", "--mlflow", address)
    assert bellwether(*command).returncode == 0
    for run in runs:
        folder = tmp_path / "board" / "fedclg-c" / f"seed-{run.seed}"
        assert board(folder) == expected(run.records)
        assert store(address)[f"FedCLG-C, seed {run.seed}"][1] == expected(run.records)
    again = bellwether(*command)
    assert again.returncode == 2
    assert "is there already; remove it" in again.stderr


def test_without_them_one_line_says_what_to_install(tmp_path, monkeypatch):
    for name in ("mlflow", "torch.utils.tensorboard"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(InputError, match=r"pip install 'bellwether-fl\[tensorboard\]'"):
        TensorBoard(tmp_path / "board")
    with pytest.raises(InputError, match=r"pip install 'bellwether-fl\[mlflow\]'"):
        MLflow("file:x", "mine")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("address")
def test_an_address_that_is_none_is_one_line():
    with pytest.raises(InputError, match="MLflow at 'nonsense://x' cannot be used") as caught:
        MLflow("nonsense://x", "mine")
    assert "\n" not in str(caught.value)
