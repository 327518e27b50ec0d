"""Runs read back from their folders, compared with a baseline, and written as tables."""

import csv
import io
import json
import math
import re
import shutil
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from torch import nn

from bellwether import SGD, FedAvg, Federation, train
from bellwether.core.errors import InputError
from bellwether.experiments.attendance import attendance
from bellwether.experiments.recorded import read_comparison
from bellwether.experiments.statistics import paired
from bellwether.experiments.summary import summarise
from bellwether.experiments.versus import Verdict, versus
from bellwether.report.export import Format, exported
from bellwether.report.page import page
from bellwether.report.tables import tables
from run_folders import write_comparison, write_run
from test_report import compared, example, run, stepping


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_comparison(tmp_path_factory.mktemp("runs"), example().runs)


def test_a_comparison_comes_back_as_it_was_written(folder):
    found = read_comparison([folder], target=0.85)
    by_name = {(item.algorithm, item.seed): item for item in found.runs}
    assert by_name == {(item.algorithm, item.seed): item for item in example().runs}
    assert found.algorithms == ("FedAvg", "Server only", "CLG-SGD", "FedCLG-C", "FedCLG-S")
    assert (found.planned_rounds, found.population, found.target) == (60, 60, 0.85)
    assert found.histogram.shape == (60, 10)
    assert found.server_draws == 48
    assert found.class_names == tuple("0123456789")
    assert found.title.endswith("FedCLG-C and FedCLG-S on digits")
    assert found.settings["FedCLG-C"].startswith("FedCLGC(client=SGD(")


def test_single_runs_side_by_side(folder, tmp_path):
    one, two = folder / "fedavg" / "seed-0", folder / "clg-sgd" / "seed-2"
    found = read_comparison([one, two])
    assert [(item.algorithm, item.seed) for item in found.runs] == [("FedAvg", 0), ("CLG-SGD", 2)]
    assert found.histogram is not None  # the manifest lies beside the comparison
    mine = write_run(tmp_path / "mine", run("FedAvg", 0, 0.5, 0.6))
    assert [item.algorithm for item in read_comparison([mine]).runs] == ["FedAvg"]


def test_runs_with_other_settings_are_never_averaged(tmp_path):
    slow, fast = (
        write_run(tmp_path / name / "fedavg" / f"seed-{seed}", run("FedAvg", seed, 0.5),
                  algorithm=f"FedAvg(client=SGD(lr={lr}))").parents[1]
        for name, lr, seed in (("slow", 0.1, 0), ("fast", 0.5, 1))
    )  # fmt: skip
    assert read_comparison([slow, fast]).algorithms == ("FedAvg (fast)", "FedAvg (slow)")
    write_run(slow / "fedavg" / "seed-1", run("FedAvg", 1, 0.5))
    with pytest.raises(InputError, match=r"FedAvg .*different settings; give their folders apart"):
        read_comparison([slow])


def test_the_configuration_is_shown_as_it_is_written(tmp_path):
    for seed in (0, 1):
        write_run(tmp_path / "fedavg" / f"seed-{seed}", run("FedAvg", seed, 0.5))
    (tmp_path / "config.toml").write_text('model = "</pre><script>"\n')
    found = read_comparison([tmp_path])
    assert found.configurations == {"config.toml": 'model = "</pre><script>"\n'}
    assert 'class="configuration"' in page(found)
    assert "<pre>model = &quot;&lt;/pre&gt;&lt;script&gt;&quot;\n</pre>" in page(found)
    (tmp_path / "fedavg" / "seed-1" / "config.toml").write_text("seed = 1\n")
    assert list(read_comparison([tmp_path]).configurations) == ["FedAvg", "FedAvg, seed 1"]
    assert 'class="configuration"' not in page(example())


def test_runs_on_different_data_are_said_to_be(tmp_path):
    for name, seed in (("a", 0), ("b", 1)):
        write_comparison(tmp_path / name, (run("FedAvg", seed, 0.5), run("CLG-SGD", seed, 0.6)))
    assert read_comparison([tmp_path / "a", tmp_path / "b"]).notes == ()
    (tmp_path / "a" / "manifest-seed-0.json").rename(tmp_path / "b" / "manifest-seed-0.json")
    shutil.copytree(tmp_path / "b" / "fedavg" / "seed-1", tmp_path / "a" / "safari" / "seed-1")
    (tmp_path / "a" / "manifest-seed-1.json").write_bytes(
        (tmp_path / "b" / "manifest-seed-0.json").read_bytes()
    )
    (note,) = summarise(read_comparison([tmp_path / "a", tmp_path / "b"])).notes[:1]
    assert note.startswith("Not all runs of seed 1 had the same clients' and server's data")
    write_run(tmp_path / "c", run("SAFARI", 0, 0.5), population=7)
    (note,) = read_comparison([tmp_path / "b", tmp_path / "c"]).notes
    assert note.startswith("The runs differ in population")


def test_one_run_found_twice_counts_once(folder):
    found = read_comparison([folder / "fedavg", folder / "fedavg" / "seed-0"])
    assert len(found.runs) == 3


def test_what_is_no_run_is_refused_in_one_line(tmp_path, folder):
    with pytest.raises(InputError, match="is no folder"):
        read_comparison([tmp_path / "nowhere"])
    with pytest.raises(InputError, match="holds no run"):
        read_comparison([tmp_path])
    place = write_run(tmp_path / "cut", run("FedAvg", 0, 0.5, 0.6))
    with (place / "metrics.jsonl").open("a") as file:
        file.write('{"round": 3, "coh')  # a crash cut the line: it is not there yet
    assert read_comparison([place]).runs[0].rounds == 2
    with (place / "metrics.jsonl").open("a") as file:
        file.write("\n")
    with pytest.raises(InputError, match=r"metrics.jsonl is damaged"):
        read_comparison([place])
    (place / "environment.json").write_text("[]")
    with pytest.raises(InputError, match=r"environment.json is not what this version writes"):
        read_comparison([place])


def finals(*pairs: tuple[float, float]):
    """FedAvg and another method that end at these accuracies, seed by seed."""
    runs = [
        run(name, seed, 0.1, pair[at])
        for seed, pair in enumerate(pairs)
        for at, name in enumerate(("FedAvg", "Other"))
    ]
    comparison = compared(*runs, target=None)
    return versus(comparison, summarise(comparison))


def test_differences_are_paired_by_seed():
    found = finals((0.5, 0.6), (0.7, 0.75), (0.2, 0.5), (0.4, 0.45), (0.3, 0.5), (0.6, 0.61))
    (other,) = found.final
    assert found.baseline == "FedAvg"
    assert other.test.mean == pytest.approx(0.71 / 6)
    assert (other.test.p_signs, other.p, other.verdict) == (2 / 64, 2 / 64, Verdict.BETTER)
    assert finals(*[(0.5, 0.6)] * 5).final[0].verdict is Verdict.TOO_FEW
    assert finals(*[(0.6, 0.5)] * 6).final[0].verdict is Verdict.WORSE
    assert finals(*[(0.6, 0.5)] * 5, (0.1, 0.9)).final[0].verdict is Verdict.OPEN
    assert finals((0.5, 0.6)).final[0].test.p_signs is None
    lost = finals((0.5, math.nan), *[(0.5, 0.6)] * 6).final[0]
    assert (lost.verdict, lost.lost, lost.test.mean) == (Verdict.UNKNOWN, 1, None)


def test_seeds_that_only_one_has_run_are_no_pairs():
    comparison = compared(run("A", 0, 0.5), run("A", 1, 0.6), run("B", 1, 0.8), run("B", 2, 0.9))
    (b,) = versus(comparison, summarise(comparison)).final
    assert (b.test.pairs, b.test.mean) == (1, pytest.approx(0.2))


def test_runs_that_never_got_there_are_not_dropped():
    """Their rounds are cut off at the horizon of both, and nothing is claimed beyond it."""
    base, other = [10, 99, 30, 99, 40], [99, 20, 5, 99, 41]
    comparison = compared(*stepping("A", base, 60), *stepping("B", other, 60))
    (b,) = versus(comparison, summarise(comparison), "A").to_target
    cut = [min(y, 61) - min(x, 61) for x, y in zip(base, other, strict=True)]
    assert (b.test.p_signs, b.test.mean) == (paired(cut).p_signs, pytest.approx(np.mean(cut)))
    assert (b.censored, b.bound, b.test.low, b.test.p_t) == ((2, 2), "?", None, None)
    for base, other, bound in (([10, 20], [99, 5], "≥"), ([99, 20], [5, 5], "≤"), ([9], [5], "")):
        comparison = compared(*stepping("A", base, 60), *stepping("B", other, 60))
        (b,) = versus(comparison, summarise(comparison)).to_target
        assert b.bound == bound


def test_a_shorter_run_cuts_both_of_its_pair():
    comparison = compared(*stepping("A", [50], 60), *stepping("B", [99], 30))
    (b,) = versus(comparison, summarise(comparison)).to_target
    assert (b.test.mean, b.censored) == (0, (1, 1))


def test_more_methods_need_more():
    runs = [run(name, seed, 0.5 + (name != "A") * (0.1 + 0.01 * seed))
            for name, seed in product("ABCD", range(6))]  # fmt: skip
    comparison = compared(*runs)
    found = versus(comparison, summarise(comparison)).final
    assert [each.p for each in found] == [6 / 64] * 3
    assert {each.verdict for each in found} == {Verdict.TOO_FEW}


def test_a_baseline_that_is_not_there_names_those_that_are():
    comparison = compared(run("FedAvg", 0, 0.5), run("CLG-SGD", 0, 0.5))
    assert versus(comparison, summarise(comparison), "clg-sgd").baseline == "CLG-SGD"
    with pytest.raises(InputError, match="unknown baseline 'fedav'; did you mean FedAvg"):
        versus(comparison, summarise(comparison), "fedav")


def test_who_came_is_counted():
    found = {each.algorithm: each for each in attendance(example())}
    fedavg, alone = found["FedAvg"], found["Server only"]
    assert fedavg.times.tolist() == [[60] * 10 + [0] * 50] * 3
    assert (fedavg.rounds, fedavg.cohorts, fedavg.seeds) == ((60, 60), (10, 10), (0, 1, 2))
    assert (alone.rounds, alone.times.sum()) == ((0, 0), 0)


def found_tables(comparison):
    return {table.name: table for table in tables(comparison, summarise(comparison))}


def test_ratios_are_bounds_where_a_run_never_got_there():
    def ratio(base, other):
        comparison = compared(*stepping("FedAvg", base, 60), *stepping("B", other, 60))
        return found_tables(comparison)["ratios"].rows[0].cells[1].text

    times = " \N{MULTIPLICATION SIGN}"
    assert ratio([40, 40], [10, 10]) == f"0.250{times}"
    assert ratio([40, 40], [99, 99]) == f"> 1.50{times}"
    assert ratio([40, 40], [20, 99]) == f"> 1.00{times}"
    assert ratio([99], [12]) == f"< 0.200{times}"
    assert ratio([99], [99]) == "—"


def test_the_caption_says_what_so_few_seeds_cannot():
    found = found_tables(example())
    assert (
        "The smallest p that 3 seeds can give is 0.25, after Holm's" in found["final-test"].caption
    )
    assert "it takes 8 seeds to come to 5 %" in found["final-test"].caption
    assert {row.cells[-1].text for row in found["final-test"].rows} == {"too few seeds"}
    single = found_tables(compared(run("A", 0, 0.5), run("B", 0, 0.6)))
    assert single["final-test"].caption.startswith("One seed has no spread")
    apart = found_tables(compared(run("A", 0, 0.5), run("B", 1, 0.6)))
    assert apart["final-test"].caption.startswith("No seed gave both a finite number")
    many = [run(name, seed, 0.01 * seed) for name in "AB" for seed in range(21)]
    assert "p is that of the t test" in found_tables(compared(*many))["final-test"].caption
    assert set(found_tables(compared(run("A", 0, 0.5)))) == {"summary", "participation"}


def test_every_format_has_the_digits_of_every_cell():
    for table in found_tables(example()).values():
        texts = [f"{cell.text} {cell.detail}".strip() for row in table.rows for cell in row.cells]
        head, *lines = csv.reader(io.StringIO(exported(table, Format.CSV)))
        assert head == ["method", *table.headers]
        assert [text for _, *line in lines for text in line] == texts
        digits = [re.findall(r"[\d.]+", text) for text in texts]
        markdown = exported(table, Format.MARKDOWN)
        rows = [line for line in markdown.splitlines() if line.startswith("| ")][1:]
        cells = [cell for row in rows for cell in row.strip("| ").split(" | ")[1:]]
        assert [re.findall(r"[\d.]+", cell) for cell in cells] == digits
        latex = exported(table, Format.LATEX)
        body = latex.split("\\midrule\n")[1].split("\\bottomrule")[0]
        cells = [cell for line in body.splitlines() if line.strip()
                 for cell in line.removesuffix("\\\\").split(" & ")[1:]]  # fmt: skip
        assert [re.findall(r"[\d.]+", cell) for cell in cells] == digits
        assert latex.isascii()


def test_names_stay_names_in_every_format():
    evil = 'a|b & "c", 5 % of $x_1^2$ #{\\}~ <i>'
    table = found_tables(compared(run(evil, 0, 0.5)))["summary"]
    assert next(iter(list(csv.reader(io.StringIO(exported(table, Format.CSV))))[1:]))[0] == evil
    row = exported(table, Format.MARKDOWN).splitlines()[4]
    assert len(re.findall(r"(?<!\\)\|", row)) == len(table.headers) + 2
    assert "\\<i\\>" in row
    line = exported(table, Format.LATEX).split("\\midrule\n")[1].splitlines()[0]
    assert len(re.findall(r"(?<!\\)&", line)) == len(table.headers)
    assert not re.search(r"(?<!\\)[#%_]", line)


def test_reading_takes_what_training_writes(tmp_path):
    """The real thing: `train` with a run directory, one finished and one cut short."""
    rng = np.random.default_rng(0)
    holders = [(rng.normal(size=(8, 3)), rng.integers(2, size=8)) for _ in range(4)]
    federation = Federation.from_arrays(clients=holders, test=holders[0])
    method = FedAvg(SGD(lr=0.1, epochs=1, batch_size=4))
    result = train(method, federation, nn.Linear(3, 2), 3, run_dir=tmp_path / "a")
    (found,) = read_comparison([tmp_path / "a"]).runs
    assert [replace(r, model=None) for r in result.history] == list(found.records)
    assert found.complete
    (tmp_path / "a" / "model.safetensors").unlink()
    assert not summarise(read_comparison([tmp_path / "a"])).complete
    assert json.loads((tmp_path / "a" / "environment.json").read_text())["run"]["population"] == 4
