"""Folders as `bellwether run --out` writes them, made from records without training."""

import dataclasses
import json
from pathlib import Path

from bellwether import federate, partition, server_data
from bellwether.algorithms import CATALOGUE
from bellwether.core.records import RoundRecord
from bellwether.data import load
from bellwether.experiments.results import Run


def write_run(folder: Path, run: Run, **identity: object) -> Path:
    """One run; a name of the catalogue gets the class of its method."""
    folder.mkdir(parents=True, exist_ok=True)
    method = CATALOGUE[run.algorithm].__name__ if run.algorithm in CATALOGUE else run.algorithm
    ran = {
        "algorithm": f"{method}(client=SGD(lr=0.05, epochs=1))",
        "participation": "Uniform(clients=10)",
        "population": 60,
        "parameters": 44_426,
        "dtype": "torch.float32",
        "seed": run.seed,
        "compress_up": None,
        "compress_down": None,
        "statistics": "average",
    }
    environment = {"run": ran | identity, "versions": {"bellwether": "0.1.0"}}
    (folder / "environment.json").write_text(json.dumps(environment))
    append(folder, *run.records)
    if run.complete:
        (folder / "model.safetensors").write_bytes(b"")
    return folder


def append(folder: Path, *records: RoundRecord) -> None:
    with (folder / "metrics.jsonl").open("a") as file:
        for record in records:
            values = dataclasses.asdict(record)
            del values["model"]
            file.write(json.dumps(values) + "\n")


def write_comparison(folder: Path, runs: tuple[Run, ...]) -> Path:
    """`<method>/seed-<n>`, and who holds what beside them."""
    for run in runs:
        write_run(folder / run.algorithm.lower().replace(" ", "-") / f"seed-{run.seed}", run)
    for seed in {run.seed for run in runs}:
        how = {"partition": partition.Dirichlet(0.3, samples=20), "seed": seed}
        server = server_data.Sample(samples=48, fresh=True)
        federation = federate(load("digits"), clients=60, server=server, **how)
        federation.manifest.save(folder / f"manifest-seed-{seed}.json")
    return folder
