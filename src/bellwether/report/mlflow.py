"""Runs in MLflow (extra `mlflow`): one run of an experiment each."""

import time
from collections.abc import Mapping

from bellwether.core.errors import InputError
from bellwether.core.records import RoundRecord
from bellwether.experiments.results import Run
from bellwether.report.trackers import scalars


class MLflow:
    """`train(..., on_round=MLflow("http://127.0.0.1:5000", "mine"))`; the step is the round.

    `address` is what MLflow calls a tracking URI.
    """

    def __init__(
        self, address: str, experiment: str, name: str = "", tags: Mapping[str, str] | None = None
    ) -> None:
        try:
            from mlflow import MlflowClient
            from mlflow.entities import Metric
            from mlflow.exceptions import MlflowException
        except ImportError:
            raise InputError(
                "MLflow is not installed; run: pip install 'bellwether-fl[mlflow]'"
            ) from None
        self._metric = Metric
        try:
            self._client = MlflowClient(address)
            known = self._client.get_experiment_by_name(experiment)
            place = known.experiment_id if known else self._client.create_experiment(experiment)
            run = self._client.create_run(place, run_name=name or None, tags=dict(tags or {}))
        except MlflowException as error:
            reason = str(error).splitlines()[0]
            raise InputError(f"MLflow at {address!r} cannot be used: {reason}") from error
        self._run = run.info.run_id

    def __call__(self, record: RoundRecord) -> None:
        """Take in a round."""
        now = time.time_ns() // 1_000_000
        metrics = [self._metric(n, float(v), now, record.round) for n, v in scalars(record).items()]
        self._client.log_batch(self._run, metrics=metrics)

    def close(self) -> None:
        """End the run."""
        self._client.set_terminated(self._run)


def followed(address: str, experiment: str, run: Run) -> MLflow:
    """A run of a comparison, by its method and seed."""
    tags = {"method": run.algorithm, "seed": str(run.seed)}
    return MLflow(address, experiment, f"{run.algorithm}, seed {run.seed}", tags)
