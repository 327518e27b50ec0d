"""The documents tell the truth: sources, programs, commands, paths, what methods send."""

import ast
import inspect
import re
import shlex
import sys
import tomllib
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
import typer
from torch import nn

from bellwether import (
    SGD,
    FedAvg,
    FedCLGC,
    Federation,
    algorithms,
    data,
    models,
    participation,
    train,
)
from bellwether.cli import app

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = {name: (ROOT / name).read_text() for name in ("README.md", "CONTRIBUTING.md")}
README, CONTRIBUTING = DOCUMENTS.values()
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FOLDERS = {"src", "tests", "docs", "benchmarks"}
SUFFIXES = {".py", ".md", ".txt", ".toml"}
"""What tells a path in this repository from other words."""


def blocks(text: str, language: str) -> list[str]:
    return [code for kind, code in FENCE.findall(text) if kind == language]


def lines_of_code(text: str) -> Iterator[str]:
    """Every shell line, and every piece of code within a sentence."""
    for block in blocks(text, "sh"):
        yield from block.replace("\\\n", " ").splitlines()
    for span in re.findall(r"`([^`]+)`", FENCE.sub("", text)):
        yield " ".join(span.split())


def commands(text: str, program: str) -> list[list[str]]:
    """The arguments of every call of the program."""
    lines = (line for line in lines_of_code(text) if line.split()[:1] == [program])
    return [shlex.split(line, comments=True)[1:] for line in lines]


def programs(text: str) -> list[str]:
    return [b for b in blocks(text, "python") if b.startswith(("import ", "from "))]


@pytest.fixture
def execute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], dict[str, Any]]:
    """Run a program in a folder and a namespace of its own."""

    def execute(program: str) -> dict[str, Any]:
        module = ModuleType("shown_in_a_document")
        monkeypatch.setitem(sys.modules, module.__name__, module)  # dataclasses look it up
        monkeypatch.chdir(tmp_path)
        exec(compile(program, module.__name__, "exec"), module.__dict__)
        return vars(module)

    return execute


def holder(samples: int, draw: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    x = torch.randn(samples, 50, generator=draw)
    return x, torch.randint(10, (samples,), generator=draw)


@pytest.fixture(scope="module")
def federation() -> Federation:
    draw = torch.Generator().manual_seed(0)
    return Federation.from_arrays([holder(20, draw) for _ in range(8)], holder(20, draw))


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(50, 100), nn.ReLU(), nn.Linear(100, 10))


def test_the_readme_shows_fedclg_c_as_it_stands() -> None:
    source = inspect.getsource(sys.modules[FedCLGC.__module__])
    shown = [b for b in blocks(README, "python") if b not in programs(README)]
    assert shown == [source[source.index("@dataclass") :]]


@pytest.mark.parametrize("program", programs(README))
def test_a_program_of_the_readme_runs_and_learns(
    program: str, execute: Callable[[str], Any], capsys: pytest.CaptureFixture[str]
) -> None:
    execute(program)
    assert ast.literal_eval(capsys.readouterr().out)["accuracy"] > 0.9


def test_there_is_a_program_in_each_document() -> None:
    assert all(map(programs, DOCUMENTS.values()))
    assert blocks(CONTRIBUTING, "python") == programs(CONTRIBUTING)


def test_the_method_in_contributing_is_fedprox(
    execute: Callable[[str], Any], federation: Federation
) -> None:
    """Without its term it is FedAvg to the bit; with it, clients stay closer to the model."""
    method = execute(*programs(CONTRIBUTING))["FedProx"]
    sgd = SGD(lr=0.1, epochs=5, batch_size=10)

    def end(algorithm: Any) -> torch.Tensor:
        return train(algorithm, federation, network, rounds=2).model

    start = train(FedAvg(sgd), federation, network, rounds=0).model
    average = end(FedAvg(sgd))
    assert torch.equal(end(method(sgd, mu=0.0)), average)
    assert (end(method(sgd, mu=2.0)) - start).norm() < 0.8 * (average - start).norm()


ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in README.split("<!-- methods -->")[1].split("<!-- /methods -->")[0].split("\n")[3:-1]
]


def test_the_table_lists_every_method() -> None:
    listed = {name: name_in_code for name, name_in_code, *_ in ROWS}
    known = {name: f"`{method.__name__}`" for name, method in algorithms.CATALOGUE.items()}
    assert list(listed.items()) == list(known.items())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_the_table_says_what_goes_each_way(row: list[str], federation: Federation) -> None:
    """Messages in multiples of the model, to the hundredth: an envelope is less than that."""
    name, _, _, down, up, _ = row
    sgd = SGD(lr=0.01, epochs=1, batch_size=10)
    method = algorithms.create(name, client=sgd, server=sgd)
    result = train(method, federation, network, 6, participation=participation.Uniform(4))
    model = 4 * result.model.nbytes
    for cell, sent in (
        (down, {round(record.bytes_down / model, 2) for record in result.history}),
        (up, {round(record.bytes_up / model, 2) for record in result.history}),
    ):
        assert sent == {float(Fraction(number)) for number in cell.split(", or ")}


def test_every_make_target_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    calls = [call for text in DOCUMENTS.values() for call in commands(text, "make")]
    named = {target for call in calls for target in call}
    assert {"demo", "test", "test-slow"} <= named <= targets


CALLS = [call for text in DOCUMENTS.values() for call in commands(text, "bellwether")]


def test_every_command_is_shown() -> None:
    group: Any = typer.main.get_command(app)
    assert {name for name, *_ in CALLS} == set(group.commands)


@pytest.mark.parametrize("call", CALLS, ids=" ".join)
def test_a_command_is_understood(call: list[str]) -> None:
    """Its options exist and their values fit; nothing is run."""
    group: Any = typer.main.get_command(app)
    name, *arguments = call
    if arguments in ([], ["--help"]):
        assert name in group.commands
        return
    command = group.commands[name]
    while arguments and arguments[0] in getattr(command, "commands", ()):
        name, *arguments = arguments
        command = command.commands[name]
    given = command.make_context(name, arguments).params
    for algorithm in given.get("algorithm") or []:
        algorithms.find(algorithm)
    assert given.get("dataset", "digits") in data.names()
    assert given.get("model") in {None, *models.names()}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_path_exists(name: str) -> None:
    text = DOCUMENTS[name]
    words = {word for line in lines_of_code(text) for word in line.split()}
    paths = {w for w in words if w.split("/")[0] in FOLDERS or Path(w).suffix in SUFFIXES}
    links = set(re.findall(r"\]\(([^)]+)\)", FENCE.sub("", text)))
    sections = {
        f"#{title.lower().replace(' ', '-')}"
        for title in re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    }
    paths |= links - sections
    assert len(paths) > 5
    assert [path for path in sorted(paths) if not (ROOT / path).exists()] == []


def test_every_extra_exists() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = set(re.findall(r"\.\[(\w+)\]", README))
    assert named
    assert named <= set(project["optional-dependencies"])
