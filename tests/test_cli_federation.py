"""`bellwether federation show`, and the options that it shares with `bellwether run`."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bellwether import participation, partition, server_data
from bellwether.cli import main
from bellwether.cli.world import PARTICIPATIONS, PARTITIONS, SERVERS, World
from bellwether.federation import Manifest

Command = Callable[[str], tuple[int, str, str]]


@pytest.fixture
def bellwether(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    """The command, run in this process in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    for name, value in {"NO_COLOR": "1", "COLUMNS": "100", "TERM": "dumb"}.items():
        monkeypatch.setenv(name, value)

    def run(line: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["bellwether", *line.split()])
        with pytest.raises(SystemExit) as end:
            main()
        return int(end.value.code or 0), *capsys.readouterr()

    return run


def test_a_table_a_page_and_a_manifest(bellwether: Command, tmp_path: Path) -> None:
    code, table, error = bellwether(
        "federation show --clients 20 --samples 30 --partition labels --labels 3 --seed 4"
        " --server from-clients --server-clients 4 --server-samples 5 --cohort 6"
        " --participation incomplete --absent 2,9 --rounds 30 --save who.json"
    )
    assert code == 0, error
    manifest = Manifest.load(tmp_path / "who.json")
    assert manifest.partition == "LabelsPerClient(labels=3, samples=30)"
    assert manifest.seed == 4
    lines = [" ".join(line.split()) for line in table.splitlines()]
    assert "clients 20, LabelsPerClient(labels=3, samples=30), seed 4" in lines
    assert "samples a client 30" in lines
    assert "labels a client 3" in lines
    assert f"held by nobody {len(manifest.left)} samples" in lines
    population, server = manifest.population_labels, manifest.server_labels
    for label, holders in enumerate((manifest.labels > 0).sum(axis=0)):
        shares = (100 * population[label] / 600, 100 * server[label] / 20)
        wanted = f"{label} {holders} {population[label]} {shares[0]:.1f} % "
        assert f"{wanted}{server[label]} {shares[1]:.1f} %" in lines
    text = " ".join(lines)
    assert f"cosine with the clients' labels {manifest.similarity:.4f}" in text
    assert "rounds 1 to 30: 6 clients a round; 18 of 20 came" in text
    assert "2 never do: 2, 9" in text
    assert f"The pictures: {tmp_path / 'runs' / 'federation.html'}" in lines
    assert (tmp_path / "runs" / "federation.html").stat().st_size > 100_000
    assert f"Who holds what: {tmp_path / 'who.json'}" in lines


def test_notes_are_shown_and_a_server_without_data_has_no_column(bellwether: Command) -> None:
    shown = bellwether("federation show --alpha 1e-9 --clients 9 --server none")[1]
    assert "note: Dirichlet(alpha=1e-09, samples=None): " in " ".join(shown.split())
    assert "server no data" in " ".join(shown.split())
    assert "server's" not in shown


def test_show_shows_what_run_makes(bellwether: Command, tmp_path: Path) -> None:
    world = "--partition by-class --alpha 0.4 --clients 12 --server shifted --cosine 0.9 --seed 3"
    assert bellwether(f"federation show {world} --save shown.json")[0] == 0
    run = f"run -a fedavg {world} --rounds 1 --epochs 1 --participation cyclic --out here --quiet"
    assert bellwether(run)[0] == 0
    assert Manifest.load("shown.json") == Manifest.load("here/manifest-seed-3.json")
    records = (tmp_path / "here/fedavg/seed-3/metrics.jsonl").read_text().splitlines()
    assert json.loads(records[0])["cohort"] == [0, 1, 2, 3]


MADE = [
    (World(), partition.Dirichlet(0.2)),
    (World(alpha=0.5, samples=9), partition.Dirichlet(0.5, 9)),
    (World(partition="iid", samples=9), partition.IID(9)),
    (World(partition="labels", labels=3), partition.LabelsPerClient(3)),
    (World(partition="by-class", at_least=4), partition.DirichletByClass(0.2, 4)),
    (World(), server_data.Sample(samples=100)),
    (World(server_samples=9, fresh=True), server_data.Sample(samples=9, fresh=True)),
    (
        World(server_fraction=0.1, fresh=True, overlap=True),
        server_data.Sample(fraction=0.1, fresh=True, disjoint=False),
    ),
    (World(server="shifted"), server_data.Shifted(0.95)),
    (
        World(server="shifted", cosine=0.8, server_samples=9, overlap=True),
        server_data.Shifted(0.8, samples=9, disjoint=False),
    ),
    (
        World(server="from-clients", server_clients="9", server_samples=5),
        server_data.FromClients(9, 5),
    ),
    (
        World(server="from-clients", server_clients="0,7", server_samples=5),
        server_data.FromClients([0, 7], 5),
    ),
    (World(), participation.Uniform(4)),
    (World(participation="incomplete", absent="7"), participation.Incomplete(4, absent=7)),
    (
        World(participation="incomplete", absent="7,", cohort=2),
        participation.Incomplete(2, absent=[7]),
    ),
    (World(participation="fixed", schedule="0,1;2"), participation.Fixed([[0, 1], [2]])),
    (World(participation="bernoulli", probability="0.3"), participation.Bernoulli(0.3)),
    (
        World(participation="bernoulli", probability="0.3,1", cohort=1),
        participation.Bernoulli([0.3, 1], clients=1),
    ),
    (
        World(participation="markov", arrive="0.1", leave="0.2,0.3"),
        participation.Markov(0.1, [0.2, 0.3]),
    ),
    (World(participation="cyclic", cohort=9), participation.Cyclic(9)),
]


@pytest.mark.parametrize(("world", "expected"), MADE, ids=[repr(each) for _, each in MADE])
def test_options_make_what_python_makes(world: World, expected: object) -> None:
    assert expected in (world.share, world.owned, world.coming)


def test_no_samples_is_no_server_data() -> None:
    assert World(server="none").owned is World(server_samples=0).owned is None
    other = World(server="other", server_data="digits", server_per_label=3).owned
    assert str(other) == "Other(digits, per_label=3)"


def test_everything_there_is_can_be_chosen() -> None:
    """But FromFlower, which takes an object; options cannot name one."""
    made = {choice.make for choice in (*PARTITIONS.values(), *PARTICIPATIONS.values())}
    rooms = partition.__all__ + participation.__all__
    kinds = {getattr(partition, n, None) or getattr(participation, n, None) for n in rooms}
    assert kinds - made == {partition.FromFlower, partition.Partition, partition.Shares}
    assert len(SERVERS) == 5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--partition dirichlett", "unknown partition 'dirichlett'; did you mean dirichlet?"),
        ("--server sampel", "unknown server 'sampel'; did you mean sample?"),
        ("--participation uniforms", "unknown participation 'uniforms'; did you mean uniform?"),
        (
            "--partition iid --alpha 0.1",
            "--alpha is for --partition dirichlet or by-class, not iid",
        ),
        (
            "--partition by-class --samples 9",
            "--samples is for --partition dirichlet, iid or labels",
        ),
        ("--absent 4", "--absent is for --participation incomplete, not uniform"),
        ("--cosine 0.9", "--cosine is for --server shifted, not sample"),
        ("--participation incomplete", "--participation incomplete needs --absent"),
        ("--participation markov --arrive 0.1", "--participation markov needs --leave"),
        ("--participation fixed", "--participation fixed needs --schedule"),
        ("--server from-clients --server-samples 5", "needs --server-clients"),
        ("--server from-clients --server-clients 5", "needs --server-samples"),
        ("--server other", "--server other needs --server-data"),
        ("--server other --server-data minst", "did you mean mnist"),
        ("--participation incomplete --absent x", "--absent takes a number or numbers with commas"),
        ("--participation fixed --schedule 0,a", "--schedule takes a number or numbers"),
        ("--participation fixed --schedule ;", "at least one cohort"),
        ("--participation bernoulli --probability 2", "must lie between 0 and 1"),
        ("--server-samples 9 --server-fraction 0.1", "either samples=... or fraction=..."),
        ("--server-samples 5000", "5000 samples leave none of 1442 to the clients"),
        ("--clients 5 --cohort 6", "asks for 6 clients a round, but there are 5"),
        ("--out file/sub.html", "cannot write"),
    ],
)
def test_a_mistake_is_one_line(
    bellwether: Command, tmp_path: Path, options: str, message: str
) -> None:
    (tmp_path / "file").write_text("in the way")
    code, _, error = bellwether(f"federation show {options}")
    assert code == 2
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    assert message in error
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
