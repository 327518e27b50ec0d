"""Files of experiments for tests: small enough to run in a second."""

from pathlib import Path

EXPERIMENT = """\
title = "small"

[data]
name = "digits"

[federation]
clients = 20

[federation.partition]
kind = "dirichlet"
alpha = 0.2
samples = 20

[federation.server]
kind = "sample"
samples = 40
fresh = true
disjoint = false

[participation]
kind = "uniform"
clients = 4

[model]
name = "mlp"
hidden = [16]

[algorithm]
name = "fedclg-c"

[algorithm.client]
lr = 0.1
epochs = 1
batch_size = 10

[algorithm.server]
lr = 0.05
epochs = 1
batch_size = 10

[training]
rounds = 6
checkpoint_every = 2

[engine]
workers = 1
"""

STUDY = """\
title = "two methods"
base = "small.toml"

[question]
kind = "rounds-to-target"
target = 0.3

[axes]
method = ["fedavg", { name = "fedclg-c", label = "ours" }]
participation.clients = [2, 4]
seeds = 2
"""


def line_of(text: str, words: str) -> int:
    """The number of the first line that begins with these words."""
    return next(n for n, line in enumerate(text.splitlines(), 1) if line.startswith(words))


def written(folder: Path, text: str = EXPERIMENT, name: str = "small.toml") -> Path:
    """A file with this text."""
    path = folder / name
    path.write_text(text)
    return path
