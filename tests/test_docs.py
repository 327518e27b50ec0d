"""The documents tell the truth: tables are as counted, examples run, links lead somewhere."""

import contextlib
import dataclasses
import importlib.util
import io
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import torch

from bellwether import SGD, Algorithm, FedAvg
from bellwether.algorithms import CATALOGUE, create
from bellwether.experiments import perform
from bellwether.experiments.config.config import load
from bellwether.experiments.study import read
from bellwether.testing.playing import played
from bellwether.testing.problems import quadratics

DOCS = Path(__file__).resolve().parents[1] / "docs"
DOCUMENTS = sorted(DOCS.rglob("*.md"))
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")


def loaded(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate_docs", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    return loaded(DOCS / "generate.py")


@pytest.fixture
def namespace() -> Iterator[dict[str, object]]:
    module = ModuleType("of_a_document")
    sys.modules[module.__name__] = module
    yield module.__dict__
    del sys.modules[module.__name__]


def test_tables_are_as_counted(generate: ModuleType) -> None:
    pages = generate.pages()
    assert len(pages) == len(CATALOGUE) + 1
    for path, text in pages.items():
        assert path.read_text() == text, f"run `python docs/generate.py`: {path.name} is old"


def test_a_wrong_table_is_noticed(generate: ModuleType) -> None:
    costs = generate.costs("FedCLG-C")
    right = generate.table_of(costs)
    cheaper = generate.table_of(dataclasses.replace(costs, down="d"))
    text = (DOCS / "methods" / "fedclg-c.md").read_text()
    assert generate.page(text, right) == text != generate.page(text, cheaper)


def test_costs_known_by_hand(generate: ModuleType) -> None:
    """Of methods whose costs can be read off their formulas."""
    costs = generate.costs
    assert costs("FedAvg") == generate.Costs("d", "d", "E", "none", "nothing", "d", "not used")
    assert costs("FedCLG-S") == generate.Costs(
        "d", "2 d", "E + 1", "E_s + 1", "nothing", "d", "needed"
    )
    assert costs("FedBCGD+") == generate.Costs(
        "2 d", "1/2 d", "2 E + 1", "none", "d", "3 d", "not used"
    )
    one = generate.work(create("scaffold", client=SGD(0.01, epochs=1), option=1))
    assert one.client == 2.0  # the full gradient, then one step


def test_every_method_has_a_page_and_every_page_a_method(generate: ModuleType) -> None:
    pages = {path.name for path in (DOCS / "methods").glob("*.md")}
    assert pages == {generate.filename(name) for name in CATALOGUE} | {"README.md"}
    index = (DOCS / "methods" / "README.md").read_text()
    for name in CATALOGUE:
        page = DOCS / "methods" / generate.filename(name)
        assert page.read_text().startswith(f"# {name}\n")
        guide = index.partition("<!-- costs -->")[0]
        assert f"[{name}]({page.name})" in guide, f"when is {name} to be chosen?"


@pytest.mark.parametrize("name", CATALOGUE)
def test_the_example_of_a_page_makes_its_method(
    name: str, generate: ModuleType, namespace: dict[str, object]
) -> None:
    (source,) = PYTHON.findall((DOCS / "methods" / generate.filename(name)).read_text())
    imports, _, made = source.strip().partition("\n\n")
    exec(imports, namespace)
    assert type(eval(made, namespace)) is CATALOGUE[name]


def broken(document: Path, text: str) -> list[str]:
    """The relative links that lead nowhere."""
    places = [link.partition("#")[0] for link in LINK.findall(text) if "://" not in link]
    return [place for place in places if place and not (document.parent / place).exists()]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    assert broken(document, document.read_text()) == []


def test_a_broken_link_is_noticed() -> None:
    text = "[a](fedavg.md), [b](fedavgg.md), [c](https://example.org/x), [d](#which-one)"
    assert broken(DOCS / "methods" / "README.md", text) == ["fedavgg.md"]


def test_the_tutorial_runs(namespace: dict[str, object]) -> None:
    blocks = PYTHON.findall((DOCS / "write-your-own.md").read_text())
    said = []
    for block in blocks:
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(compile(block, "write-your-own.md", "exec"), namespace)
        said.append(out.getvalue())
    assert said[1].startswith("FedProx keeps what a method must")
    assert said[-1].startswith("learns (quadratics): on quadratics the loss does not fall")
    final = namespace["final"]
    assert isinstance(final, dict)
    assert list(final) == ["FedAvg", "FedProx"]
    assert all(0.4 < accuracy < 1 for accuracy in final.values())
    assert final["FedAvg"] != final["FedProx"]


def test_the_tutorials_fedprox_is_fedprox(namespace: dict[str, object]) -> None:
    """Without its term it is FedAvg; the larger mu, the closer to the start it stays."""
    source = PYTHON.findall((DOCS / "write-your-own.md").read_text())[0]
    exec(compile(source, "write-your-own.md", "exec"), namespace)
    fedprox = namespace["FedProx"]
    assert isinstance(fedprox, type)
    assert issubclass(fedprox, Algorithm)
    problem, sgd = quadratics(), SGD(lr=0.1, steps=3)

    def end(method: Algorithm) -> torch.Tensor:
        model: torch.Tensor = played(method, problem).moments[-1].state.model
        return model

    assert torch.equal(end(fedprox(sgd, mu=0.0)), end(FedAvg(sgd)))
    start = played(FedAvg(sgd), problem).moments[0].state.model
    near, far = (torch.dist(end(fedprox(sgd, mu=mu)), start) for mu in (5.0, 0.5))
    assert 0 < near < far < torch.dist(end(FedAvg(sgd)), start)


EXAMPLES = sorted((DOCS / "examples").glob("*.toml"))
TOML = re.compile(r"^```toml\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_examples_are_shown_as_they_stand() -> None:
    shown = [block for document in DOCUMENTS for block in TOML.findall(document.read_text())]
    assert sorted(shown) == sorted(file.read_text() for file in EXAMPLES)


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda path: path.name)
def test_an_example_runs_two_rounds(file: Path, tmp_path: Path) -> None:
    """An experiment as it is, a study by the first and the last of its runs."""
    cells = []
    if "[axes]" in file.read_text():
        study = read.load(file)
        of_grid = [
            run for p in study.tuning_cells().values() for _, own in p.values() for run in own
        ]
        cells = [each.config.text for each in (of_grid[-1], *study.cells()[:1])]
    for number, text in enumerate(cells or [file.read_text()]):
        copy = tmp_path / f"{number}.toml"
        copy.write_text(text)
        two = load(copy, ["training.rounds=2", "engine.workers=1"])
        assert len(perform.begin(two, tmp_path / str(number)).history) == 2
