"""A million clients, and data larger than memory: what a fresh process needs for them."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

MEASURED = """
import json, resource, sys
import numpy as np
from torch import nn
from bellwether import SGD, FedAvg, Federation, federate, participation, partition, train

UNIT = 2**20 if sys.platform == "darwin" else 2**10

def memory():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / UNIT

def load(client):
    return np.full((4, 3), client % 7, np.float32), np.arange(4) % 2

def trained(federation, who):
    sgd, network = SGD(lr=0.1, epochs=1), nn.Linear(3, 2)
    result = train(FedAvg(sgd), federation, network, 3, participation=who, device="cpu")
    return [len(record.cohort) for record in result.history]

trained(Federation.lazy(9, load), participation.Uniform(2))  # what torch allocates once
before = memory()
{body}
print(json.dumps([memory() - before, seen]))
"""


def measured(body: str, *arguments: object) -> tuple[float, Any]:
    """The megabytes by which a fresh process grew, and what it saw."""
    code = MEASURED.format(body=body)
    command = [sys.executable, "-c", code, *map(str, arguments)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    grown, seen = json.loads(run.stdout)
    return grown, seen


def test_a_million_lazy_clients_are_trained_in_no_more_memory_than_nine() -> None:
    grown, seen = measured("""
everybody = Federation.lazy(1_000_000, load)
seen = [
    trained(everybody, participation.Uniform(5)),
    trained(everybody, participation.Incomplete(5, absent=1000)),
    trained(everybody, participation.Cyclic(5)),
    trained(everybody, participation.Bernoulli(1e-4, clients=5)),
]
""")
    assert seen == [[5, 5, 5]] * 4
    assert grown < 20


def test_a_million_clients_share_a_data_set() -> None:
    grown, seen = measured("""
data = np.zeros((1_000_000, 3), np.float32), np.arange(1_000_000) % 10
federation = federate(data, clients=1_000_000, partition=partition.IID())
seen = [federation.client(999_999).size, len(set(federation.manifest.clients.samples.tolist()))]
""")
    assert seen == [1, 1_000_000]
    assert grown < 300  # of them 60 for the set of a million numbers; one array a client takes 500


def test_of_a_mapped_file_only_the_clients_share_is_read(tmp_path: Path) -> None:
    """Two thousand samples of a megabyte each: a file of holes, which takes no disk."""
    grown, seen = measured(
        """
inputs = np.lib.format.open_memmap(sys.argv[1], "w+", np.float32, (2000, 2**18))
data = inputs, np.arange(2000) % 10
federation = federate(data, clients=1000, partition=partition.IID())
inputs[federation.manifest.clients[7], 0] = 1, 2  # seen, for nothing has been read yet
seen = federation.client(7).inputs[:, 0].tolist()
""",
        tmp_path / "large.npy",
    )
    assert seen == [1, 2]
    assert grown < 100
