"""An experiment's file: what it takes, what it refuses and where, and that it reads back equal."""

import inspect
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bellwether import SGD, algorithms, compression, participation, partition, server_data
from bellwether.cli import world
from bellwether.core.errors import InputError
from bellwether.experiments.config import tree as whole
from bellwether.experiments.config.config import Config, from_tree, load
from bellwether.experiments.config.explain import explain
from bellwether.experiments.config.meanings import MEANINGS
from bellwether.experiments.config.schema import REQUIRED, Choice, Key, Node, Table
from bellwether.experiments.config.source import Source
from bellwether.experiments.config.write import toml
from bellwether.experiments.study.questions import QUESTION
from bellwether.models.catalogue import CATALOGUE as NETWORKS
from experiment_files import EXPERIMENT, line_of, written

SGD_TABLE = {"lr": 0.1, "epochs": 2}


def read(text: str) -> Config:
    return from_tree(tomllib.loads(text), Source("small.toml", text))


# Reads back equal.

Scalars = (
    st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"]))
)
Keys = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
Trees = st.recursive(
    st.dictionaries(Keys, Scalars | st.lists(Scalars, max_size=3), max_size=4),
    lambda inner: st.dictionaries(Keys, Scalars | inner | st.lists(inner, max_size=2), max_size=4),
    max_leaves=12,
)


@given(Trees)
def test_what_is_written_reads_back_equal(tree: dict[str, Any]) -> None:
    assert tomllib.loads(toml(tree)) == tree


def values(key: Key) -> st.SearchStrategy[Any]:
    """Values of a key that its maker takes, too, as a rule."""
    if "Literal" in str(key.hint):
        return st.sampled_from(key.adapter.json_schema().get("enum", [key.default]))
    if bool in getattr(key.hint, "__args__", (key.hint,)):
        return st.booleans()
    if float in getattr(key.hint, "__args__", (key.hint,)):
        return st.floats(0.01, 0.9)
    return st.just(key.default)


@st.composite
def drawn(draw: st.DrawFn, node: Node) -> dict[str, Any]:
    """A table with what it needs and some of what it may have."""
    if isinstance(node, Choice):
        name = draw(st.sampled_from(sorted(node.options)))
        return {node.tag: name, **draw(drawn(node.options[name]))}
    if node.make is SGD:
        return {**SGD_TABLE, "decay": draw(st.floats(0.5, 1.0))}
    tree: dict[str, Any] = {}
    for name, key in node.keys.items():
        if key.default is not REQUIRED and key.default is not None and draw(st.booleans()):
            tree[name] = draw(values(key))
    for name, inner in node.tables.items():
        if inner.default is REQUIRED or draw(st.booleans()):
            tree[name] = draw(drawn(inner))
    return tree


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(sorted(whole.ALGORITHM.options)), st.data())
def test_a_config_reads_back_equal(name: str, data: st.DataObject) -> None:
    tree = tomllib.loads(EXPERIMENT)
    tree["algorithm"] = {"name": name, **data.draw(drawn(whole.ALGORITHM.options[name]))}
    config = from_tree(tree, Source("drawn"))
    again = read(config.text)
    assert again == config
    assert again.text == config.text
    assert repr(again.experiment.algorithm) == repr(config.experiment.algorithm)


# Everything can be reached, and is what Python would make.


@pytest.mark.parametrize("name", algorithms.CATALOGUE)
def test_every_method_is_reached(name: str) -> None:
    method = algorithms.CATALOGUE[name]
    sides = {"client", "server"} & inspect.signature(method).parameters.keys()
    tree = tomllib.loads(EXPERIMENT)
    tree["algorithm"] = {"name": name, **dict.fromkeys(sides, SGD_TABLE)}
    made = from_tree(tree, Source("file")).experiment.algorithm
    assert made == method(**dict.fromkeys(sides, SGD(0.1, epochs=2)))


OTHER = {"dataset": {"name": "digits"}, "per_label": 3}
MADE: dict[str, list[tuple[dict[str, Any], Any]]] = {
    "federation.partition": [
        ({"kind": "iid"}, partition.IID()),
        ({"kind": "dirichlet", "alpha": 1}, partition.Dirichlet(1.0)),
        ({"kind": "by-class", "alpha": 0.5}, partition.DirichletByClass(0.5)),
        ({"kind": "labels", "labels": 2}, partition.LabelsPerClient(2)),
    ],
    "federation.server": [
        ({"kind": "sample", "fraction": 0.1}, server_data.Sample(fraction=0.1)),
        ({"kind": "shifted", "cosine": 0.9}, server_data.Shifted(0.9)),
        (
            {"kind": "from-clients", "clients": [3, 1], "samples": 2},
            server_data.FromClients([1, 3], 2),
        ),
        ({"kind": "other", **OTHER}, None),
    ],
    "participation": [
        ({"kind": "uniform", "clients": 3}, participation.Uniform(3)),
        (
            {"kind": "incomplete", "clients": 3, "absent": [0, 2]},
            participation.Incomplete(3, [0, 2]),
        ),
        ({"kind": "fixed", "schedule": [[0, 1], [2]]}, participation.Fixed([[0, 1], [2]])),
        ({"kind": "bernoulli", "probability": 0.5}, participation.Bernoulli(0.5)),
        ({"kind": "markov", "arrive": 0.5, "leave": 0.1}, participation.Markov(0.5, 0.1)),
        ({"kind": "cyclic", "clients": 3}, participation.Cyclic(3)),
    ],
    "training.compress_up": [
        ({"kind": "half"}, compression.Half()),
        ({"kind": "quantise", "bits": 4}, compression.Quantise(bits=4)),
        ({"kind": "top-k", "fraction": 0.1}, compression.TopK(0.1)),
        ({"kind": "random-k", "fraction": 0.1}, compression.RandomK(0.1)),
    ],
}


@pytest.mark.parametrize(
    ("place", "table", "wanted"),
    [(place, table, wanted) for place, pairs in MADE.items() for table, wanted in pairs],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_every_choice_is_what_python_makes(place: str, table: dict[str, Any], wanted: Any) -> None:
    tree = tomllib.loads(EXPERIMENT)
    *outer, last = place.split(".")
    inner = tree
    for name in outer:
        inner = inner[name]
    inner[last] = table
    made: Any = from_tree(tree, Source("file")).experiment
    for name in place.split("."):
        made = made[name] if isinstance(made, dict) else getattr(made, name)
    if wanted is None:
        assert str(made()) == "Other(digits, per_label=3)"
    else:
        assert made == wanted


def test_nothing_is_missing_from_the_choices() -> None:
    """What Python exports, the file knows, under the names of the command line."""
    for room, protocols, place in (
        (partition, {"Partition", "Shares", "FromFlower"}, "federation.partition"),
        (server_data, {"ServerData", "Holdings", "Pool"}, "federation.server"),
        (participation, set(), "participation"),
        (compression, set(), "training.compress_up"),
    ):
        made = {type(w).__name__ for _, w in MADE[place] if w is not None}
        made |= {"Other"} if place == "federation.server" else set()
        assert made == set(room.__all__) - protocols
        node = _node(place)
        assert isinstance(node, Choice)
        assert {table["kind"] for table, _ in MADE[place]} == set(node.options)
    for choices, place in (
        (world.PARTITIONS, "federation.partition"),
        (world.SERVERS, "federation.server"),
        (world.PARTICIPATIONS, "participation"),
    ):
        node = _node(place)
        assert isinstance(node, Choice)
        assert set(choices) - {"none"} == set(node.options)
    assert set(whole.MODEL.options) == set(NETWORKS)


def _node(place: str) -> Node:
    node: Node = whole.ROOT
    for name in place.split("."):
        assert isinstance(node, Table)
        node = node.tables[name]
    return node


def test_a_network_takes_its_factorys_arguments() -> None:
    experiment = read(EXPERIMENT).experiment
    network = experiment.model.maker(experiment.dataset)()
    assert [tuple(p.shape) for p in network.parameters()] == [(16, 64), (16,), (10, 16), (10,)]


def test_what_depends_on_other_values_is_filled_in() -> None:
    text = EXPERIMENT.replace('[model]\nname = "mlp"\nhidden = [16]\n', "")
    text = text.replace('[participation]\nkind = "uniform"\nclients = 4\n', "")
    tree = read(text).tree
    assert tree["model"] == {"name": "digits-cnn"}
    assert tree["participation"] == {"kind": "uniform", "clients": 10}


def test_each_key_has_a_meaning_and_each_meaning_a_key() -> None:
    used: set[str] = set()

    def look(node: Node) -> None:
        for option in node.options.values() if isinstance(node, Choice) else [node]:
            for name, each in {**option.keys, **option.tables}.items():
                assert each.meaning, name
                used.add(each.meaning)
            for inner in option.tables.values():
                look(inner)

    look(whole.ROOT)
    look(QUESTION)
    assert used == set(MEANINGS.values())


# What is refused, and where.

REFUSED = {
    "an unknown table": (
        "[training]",
        "[trainng]",
        "unknown key 'trainng'; did you mean training?",
    ),
    "an unknown key": (
        "alpha = 0.2",
        "alhpa = 0.2",
        "unknown key 'alhpa' in [federation.partition] of kind = \"dirichlet\"; "
        "did you mean alpha?",
    ),
    "an unknown key within a value of several lines": (
        "lr = 0.1",
        "schedule = [\n  1,\n  2,\n]\nlr = 0.1",
        "unknown key 'schedule' in [algorithm.client]; "
        "known: lr, epochs, steps, batch_size, decay, min_lr, weight_decay",
    ),
    "an unknown name": (
        'name = "fedclg-c"',
        'name = "fedclgc"',
        "unknown name 'fedclgc' in [algorithm]; did you mean fedclg-c?",
    ),
    "a wrong type": (
        "rounds = 6",
        'rounds = "six"',
        "[training] rounds must be a whole number, not 'six'",
    ),
    "a whole number that is true": (
        "rounds = 6",
        "rounds = true",
        "[training] rounds must be a whole number, not True",
    ),
    "a number that is none": (
        "lr = 0.1",
        "lr = nan",
        "[algorithm.client] lr must be a number, not nan",
    ),
    "a list of something else": (
        "hidden = [16]",
        'hidden = [16, "a"]',
        "[model] hidden must be a list, each a whole number, not [16, 'a']",
    ),
    "a value that its maker refuses": (
        "alpha = 0.2",
        "alpha = -1",
        "Dirichlet's alpha must be finite and above 0, got -1.0",
    ),
    "a table that is unknown": (
        "[model]",
        "[model.a]\nb = 1\n[model]",
        "unknown key 'a' in [model]",
    ),
    "a server of a method that has none": (
        'name = "fedclg-c"',
        'name = "fedavg"',
        "unknown key 'server' in [algorithm] of name = \"fedavg\"; "
        "known: global_lr, weights, client",
    ),
    "no TOML": ("[model]", "[model", "this is no TOML: Expected ']' at the end of a table"),
    "a cohort above the population": (
        "clients = 4",
        "clients = 40",
        "[participation] Uniform(clients=40) asks for 40 clients a round, but there are 20",
    ),
    "negative rounds": (
        "rounds = 6",
        "rounds = -6",
        "[training] rounds must be at least 0, got -6",
    ),
}
PLACES = {
    "an unknown key within a value of several lines": "schedule",
    "a server of a method that has none": "[algorithm.server]",
    "a cohort above the population": "[participation]",
    "negative rounds": "[training]",
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_mistake_is_said_with_its_line(name: str, tmp_path: Path) -> None:
    old, new, message = REFUSED[name]
    text = EXPERIMENT.replace(old, new, 1)
    file = written(tmp_path, text)
    with pytest.raises(InputError) as refused:
        load(file)
    line = line_of(text, PLACES.get(name, new.splitlines()[0]))
    assert str(refused.value).startswith(f"{file}:{line}: {message}")
    assert "\n" not in str(refused.value)


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    server = EXPERIMENT[EXPERIMENT.index("[federation.server]") : EXPERIMENT.index("[particip")]
    for cut, place, message in (
        (server, "[algorithm]", "[algorithm] FedCLGC needs data at the server; add"),
        ("lr = 0.05\n", "[algorithm.server]", "[algorithm.server] needs lr, the learning rate"),
        ("epochs = 1\n", "[algorithm.client]", "SGD needs exactly one of epochs and steps"),
        ('name = "fedclg-c"\n', "[algorithm]", '[algorithm] needs name = "...": fedavg, '),
    ):
        text = EXPERIMENT.replace(cut, "", 1)
        file = written(tmp_path, text)
        with pytest.raises(InputError) as refused:
            load(file)
        assert str(refused.value).startswith(f"{file}:{line_of(text, place)}: {message}")
    with pytest.raises(
        InputError, match=r"small\.toml: there is no \[federation\], who holds what"
    ):
        load(written(tmp_path, EXPERIMENT.replace("[federation", "[data.federation")[:40]))
    with pytest.raises(InputError, match=r"cannot read .*nowhere\.toml: No such file"):
        load(tmp_path / "nowhere.toml")


def test_set_changes_keys_and_says_where_it_was_wrong(tmp_path: Path) -> None:
    file = written(tmp_path)
    changed = load(file, ["algorithm.client.lr=0.5", "algorithm.name=FedCLG-S", "title=a b"])
    assert changed.tree["algorithm"]["client"]["lr"] == 0.5
    assert changed.tree["algorithm"]["name"] == "fedclg-s"
    assert changed.tree["title"] == "a b"
    stepped = load(file, ["algorithm.client.epochs=", "algorithm.client.steps=3"])
    assert "epochs" not in stepped.tree["algorithm"]["client"]
    for wrong, message in {
        "algorithm.client.lr=x": "--set algorithm.client.lr=x: [algorithm.client] lr must be a",
        "algorithm.clent.lr=1": "--set algorithm.clent.lr=1: unknown key 'clent'",
        "rounds": "--set rounds: write it as algorithm.client.lr=0.1",
        "title.a=1": "--set title.a=1: title is a value, not a table",
    }.items():
        with pytest.raises(InputError) as refused:
            load(file, [wrong])
        assert str(refused.value).startswith(message)


def test_every_place_is_explained() -> None:
    def look(path: str) -> None:
        told = explain(path)
        assert told.lines or not told.more, path
        for further in told.more:
            look(further)

    look("")
    lines = {line.name: line for line in explain("algorithm.FedCLG-C").lines}
    assert lines["client.lr"].default == "required"
    assert lines["global_lr"].default == "1.0"
    assert explain("partition.dirichlet") == explain("federation.partition.dirichlet")
    assert [line.name for line in explain("training.rounds").lines] == ["rounds"]
    assert "rise-time" in str(explain("question", {"question": QUESTION}))
    with pytest.raises(InputError, match="no 'algoritm' to explain; did you mean algorithm"):
        explain("algoritm")
