"""Comparisons summarised, worded, tabulated and written down."""

import io
import json
import math
import os
import re
from dataclasses import replace
from html.parser import HTMLParser
from statistics import median
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from bellwether.core.errors import InputError
from bellwether.core.records import RoundRecord
from bellwether.core.streams import generator
from bellwether.experiments.results import Comparison, Run
from bellwether.experiments.summary import Estimate, Metric, rounds_to_target, summarise
from bellwether.report.headline import headline
from bellwether.report.page import page, write_page
from bellwether.report.progress import LINES, Progress
from bellwether.report.rows import headers, rows
from bellwether.report.table import comparison_table
from bellwether.report.words import bytes_text, seconds_text

SHAPES = {  # final accuracy, rounds to learn most of it, models down and up per client
    "FedAvg": (0.86, 14.0, 1, 1),
    "Server only": (0.745, 4.0, 0, 0),
    "CLG-SGD": (0.885, 9.0, 1, 1),
    "FedCLG-C": (0.915, 6.5, 2, 1),
    "FedCLG-S": (0.911, 7.2, 1, 2),
}


def learning(algorithm: str, seed: int, rounds: int = 60) -> Run:
    """A run that looks like a real one."""
    final, pace, down, up = SHAPES[algorithm]
    rng = generator(seed, "curve", *algorithm.encode())
    top = final + 0.006 * rng.normal()
    records = []
    for round in range(1, rounds + 1):
        noise = 0.01 * rng.normal() * (0.4 + 2 * math.exp(-round / 12))
        accuracy = 0.1 + (top - 0.1) * (1 - math.exp(-round / pace)) + noise
        metrics = {"loss": -math.log(accuracy), "accuracy": accuracy}
        cohort = tuple(range(10)) if down else ()
        sent = 10 * 4 * 44_426
        records.append(RoundRecord(round, cohort, down * sent, up * sent, 0.2, metrics))
    return Run(algorithm, seed, tuple(records))


def example() -> Comparison:
    """Five methods, three seeds, sixty rounds; sixty clients with ten labels."""
    rng = generator(0, "who holds what")
    held = np.stack([rng.multinomial(150, rng.dirichlet([0.3] * 10)) for _ in range(60)])
    return Comparison(
        title="MNIST, 60 clients, Dirichlet(0.3)",
        runs=tuple(learning(name, seed) for name in SHAPES for seed in range(3)),
        settings={"data": "MNIST", "cohort": "10 of 60, uniform", "model": "LeNet-5"},
        target=0.85,
        planned_rounds=60,
        histogram=held,
        server_histogram=rng.multinomial(600, [0.1] * 10),
    )


def run(algorithm: str, seed: int, *values: float | None, metric: str = "accuracy") -> Run:
    """A run with these values of the metric, round by round; None where it was not evaluated."""
    records = (
        RoundRecord(round, (0,), 100, 50, 0.5, {} if value is None else {metric: value})
        for round, value in enumerate(values, start=1)
    )
    return Run(algorithm, seed, tuple(records))


def compared(*runs: Run, target: float | None = 0.5, planned: int | None = None) -> Comparison:
    planned = planned or max(run.rounds for run in runs)
    return Comparison("a comparison", runs, {}, target, planned)


def stepping(algorithm: str, firsts: list[int], rounds: int) -> list[Run]:
    """One run a seed, at 0.4 before its first round at the target and at 0.6 from there."""
    return [
        run(algorithm, seed, *(0.6 if round >= first else 0.4 for round in range(1, rounds + 1)))
        for seed, first in enumerate(firsts)
    ]


def test_means_and_spreads_are_the_ones_computed_by_hand():
    summary = summarise(
        compared(
            run("A", 0, 0.1, 0.7), run("A", 1, 0.3, 0.8), run("A", 2, 0.2, 0.9), run("B", 0, 0, 1)
        )
    )
    several, single = summary.methods
    assert several.final == Estimate(pytest.approx(0.8), pytest.approx(0.1))
    assert several.curve.mean == pytest.approx((0.2, 0.8))
    assert several.curve.spread == pytest.approx((0.1, 0.1))
    assert several.curve.traffic == (150, 300)
    assert (several.bytes_down, several.bytes_up, several.seconds) == (200, 100, 1.0)
    assert single.final == Estimate(1.0, None)
    assert single.curve.spread == (None, None)
    assert summary.notes == ("B has not run with seeds 1, 2.",)


@given(st.lists(st.tuples(st.integers(1, 12), st.integers(1, 12)), min_size=1, max_size=7))
def test_what_is_said_of_the_median_round_is_true_however_the_runs_were_cut(truth):
    """`truth` is, by seed, the round that would reach the target and the last one recorded."""
    runs = [stepping("A", [first], last)[0] for first, last in truth]
    said = rounds_to_target(runs, Metric.ACCURACY, 0.5)
    firsts = [first for first, _ in truth]
    true_median = median(firsts)
    assert {"": true_median == said.median, ">": true_median > said.median}.get(
        said.bound, true_median >= said.median
    )
    assert said.reached == sum(first <= last for first, last in truth)
    assert said.seeds == len(truth)
    assert said.earliest <= min(firsts)
    assert said.latest == (max(firsts) if said.reached == said.seeds else None)


def test_a_median_among_censored_runs_is_a_bound():
    cases = {(50, 99, 99): "> 60", (50, 55, 99): "55", (50, 99): "> 55", (50, 54): "52"}
    for firsts, text in cases.items():
        (row,) = rows(summarise(compared(*stepping("A", list(firsts), 60))))
        assert row.cells[1].text == text


def test_exactly_at_the_target_is_there():
    for metric, values in (("accuracy", (0.4, 0.5)), ("loss", (0.6, 0.5))):
        (method,) = summarise(compared(run("A", 0, *values, metric=metric), target=0.5)).methods
        assert (method.to_target.median, method.to_target.bound) == (2, "")


def test_interrupted_runs_neither_drag_the_means_down_nor_vanish():
    whole, cut = run("A", 0, 0.4, 0.6, 0.8), run("A", 1, 0.4)
    summary = summarise(compared(whole, replace(cut, complete=False), run("B", 0, 0.1, 0.2)))
    a, b = summary.methods
    assert (a.seeds, a.rounds, a.final) == ((0,), 3, Estimate(0.8, None))
    assert (a.to_target.reached, a.to_target.seeds, a.to_target.earliest) == (1, 2, 2)
    assert (b.rounds, b.bytes_down) == (2, 200)
    assert not summary.complete
    assert summary.notes == (
        "B has not run with seed 1.",
        "A was interrupted (seed 1 after 1 of 3 rounds): the means are over seed 0.",
        "B has fewer rounds (seed 0 after 2 of 3 rounds): the means end at round 2.",
    )
    assert headline(summary).startswith("So far: ")


def test_when_no_run_finished_means_end_at_the_last_round_shared():
    runs = run("A", 0, 0.2, 0.4, 0.9), run("A", 1, 0.4, 0.6), Run("A", 2, (), complete=False)
    (method,) = summarise(compared(*runs, planned=9)).methods
    assert (method.seeds, method.rounds, method.bytes_up) == ((0, 1), 2, 100)
    assert method.final == Estimate(pytest.approx(0.5), pytest.approx(math.sqrt(0.02)))


def test_a_method_that_never_began_and_rounds_without_evaluation_are_shown_as_absent():
    summary = summarise(compared(run("A", 0, None, None), Run("B", 0, (), complete=False)))
    assert [cell.text for cell in rows(summary)[0].cells] == ["—", "> 2", "200 B", "100 B", "1.00"]
    assert {cell.text for cell in rows(summary)[1].cells} == {"—"}
    assert headline(summary) == "So far: Nothing has been evaluated yet."


def test_rounds_that_were_not_evaluated_are_skipped_but_paid_for():
    (method,) = summarise(compared(run("A", 0, None, 0.3, None, 0.6))).methods
    assert (method.curve.rounds, method.curve.traffic) == ((2, 4), (300, 600))
    assert method.to_target.median == 4


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_diverged_seed_is_never_averaged_away_and_never_best(bad):
    runs = [run("A", 0, 0.5, bad, metric="loss"), run("A", 1, 0.5, 0.1, metric="loss")]
    comparison = compared(
        *runs, run("B", 0, 1, 0.9, metric="loss"), run("B", 1, 1, 0.9, metric="loss")
    )
    summary = summarise(comparison)
    assert summary.notes == ("A diverged with seed 0: loss not finite.",)
    a, b = (row.cells[0] for row in rows(summary))
    assert (a.text, a.best, b.best) == ("diverged", False, True)
    embedded = results_of(page(comparison))["methods"][0]
    assert (embedded["final"], embedded["curve"]["mean"]) == (
        {"mean": None, "spread": None},
        [0.5, None],
    )
    assert embedded["runs"][0]["metrics"] == {"loss": [0.5, None]}


def test_without_accuracy_everything_is_about_loss_and_lower_is_better():
    runs = [run(name, 0, 1.0, last, metric="loss") for name, last in (("A", 0.3), ("B", 0.2))]
    summary = summarise(compared(*runs, target=0.25))
    assert headers(summary)[:2] == ("final loss", "rounds to 0.25")
    assert [[cell.best for cell in row.cells[:2]] for row in rows(summary)] == [
        [False] * 2,
        [True] * 2,
    ]
    assert headline(summary).startswith("B was first to a loss of 0.25 with one seed: round 2;")


seeds_of_three = st.lists(
    st.lists(st.integers(1, 9), min_size=3, max_size=3), min_size=2, max_size=4
)


@given(seeds_of_three)
def test_the_headline_claims_a_winner_exactly_when_every_seed_agrees(firsts):
    runs = [item for i, f in enumerate(firsts) for item in stepping(f"M{i}", f, 7)]
    summary = summarise(compared(*runs))
    sentence = headline(summary)
    capped = [[first if first <= 7 else math.inf for first in seeds] for seeds in firsts]
    winners = [
        f"M{i}"
        for i, seeds in enumerate(capped)
        if all(max(seeds) < min(others) for j, others in enumerate(capped) if j != i)
    ]
    claimed = re.match(r"(M\d) was first to 50 % accuracy", sentence)
    assert ([claimed[1]] if claimed else []) == winners
    if not winners and any(first <= 7 for seeds in firsts for first in seeds):
        assert sentence.startswith("No method was clearly first to 50 % accuracy over 3 seeds")


@pytest.mark.parametrize(
    ("finals", "sentence"),
    [
        (
            {"A": (0.8, 0.9), "B": (0.82, 0.88)},
            "No method was clearly highest in accuracy after 1 round over 2 seeds: the seeds do "
            "not separate A, 85.00 ± 7.07 % and B, 85.00 ± 4.24 %.",
        ),
        (
            {"A": (0.7, 0.72), "B": (0.88, 0.9)},
            "B was highest in accuracy after 1 round over 2 seeds: 89.00 ± 1.41 %; "
            "next, A: 71.00 ± 1.41 %.",
        ),
        (
            {"A": (0.7,), "B": (0.88, 0.9)},
            "So far: No method was clearly highest in accuracy after 1 round over 1 to 2 seeds: "
            "the seeds do not separate B, 89.00 ± 1.41 % and A, 70.00 %.",
        ),
        (
            {"A": (0.7,), "B": (0.9,)},
            "B was highest in accuracy after 1 round with one seed: 90.00 %; next, A: 70.00 %; "
            "one seed shows no spread.",
        ),
        ({"A": (0.7, 0.9)}, "A's accuracy after 1 round over 2 seeds: 80.00 ± 14.14 %."),
    ],
)
def test_without_a_target_the_headline_weighs_final_values_against_their_spread(finals, sentence):
    runs = [run(name, seed, v) for name, values in finals.items() for seed, v in enumerate(values)]
    assert headline(summarise(compared(*runs, target=None))) == sentence
    unreached = headline(summarise(compared(*runs, target=0.99)))
    assert unreached.removeprefix("So far: ").startswith("No method reached 99 % accuracy. ")


def test_best_values_are_marked_where_they_differ():
    quick = [replace(r, seconds=0.1) for r in run("C", 0, 0.2, 0.8).records]
    lead = [run("A", 0, 0.4, 0.90001), run("B", 0, 0.6, 0.9), Run("C", 0, tuple(quick))]
    unfinished = replace(run("D", 0, 0.99), complete=False)
    marks = {
        row.algorithm: "".join("#" if cell.best else "." for cell in row.cells)
        for row in rows(summarise(compared(*lead, unfinished)))
    }
    # A and B read the same; all sent the same; D had no time to send as much, so it is not ranked
    assert marks == {"A": "#....", "B": "##...", "C": "....#", "D": "....."}
    (alone,) = rows(summarise(compared(lead[0])))
    assert not any(cell.best for cell in alone.cells)


def test_a_mean_that_reads_the_same_is_as_good_whatever_its_spread():
    runs = [run("A", 0, 0.7), run("A", 1, 0.9), run("B", 0, 0.8), run("B", 1, 0.8)]
    summary = summarise(compared(*runs, run("C", 0, 0.1), run("C", 1, 0.1)))
    finals = [row.cells[0] for row in rows(summary)]
    assert [cell.text for cell in finals[:2]] == ["80.00 ± 14.14 %", "80.00 ± 0.00 %"]
    assert [cell.best for cell in finals] == [True, True, False]


def test_the_terminal_table_fits_80_columns_and_shows_every_number():
    comparison = example()
    long = replace(comparison.runs[0], algorithm="[red]FedAvg with a name that does not fit[/red]")
    summary = summarise(replace(comparison, runs=(long, *comparison.runs)))
    out = io.StringIO()
    Console(file=out, width=80).print(comparison_table(summary))
    text = out.getvalue()
    assert max(map(len, text.splitlines())) <= 80
    for row in rows(summary):
        line = next(line for line in text.splitlines() if line.startswith(f" {row.algorithm[:11]}"))
        assert [cell.text for cell in row.cells if cell.text not in line] == []
    assert "[red]" in text
    assert "has not run with seeds 1, 2" in " ".join(text.split())


def test_a_long_name_cuts_no_number():
    runs = [run("FedAvg (a folder)", seed, value) for seed, value in enumerate((0.1, 0.9, 0.5))]
    costs = {"bytes_down": 3_900_000, "bytes_up": 3_900_000}
    costly = [
        replace(one, records=tuple(replace(record, **costs) for record in one.records))
        for one in runs
    ]
    out = io.StringIO()
    Console(file=out, width=80).print(comparison_table(summarise(compared(*costly, target=0.85))))
    assert "50.00 ± 40.00 %" in out.getvalue()


@given(st.floats(0, 9e14))
def test_sizes_read_back_to_three_digits(count):
    number, unit = bytes_text(count).split()
    size = float(number) * 1000.0 ** ("B", "kB", "MB", "GB", "TB").index(unit)
    assert size == pytest.approx(count, rel=0.005, abs=0.5)
    assert len(number.replace(".", "")) <= 4


def test_numbers_read_well_at_the_edges():
    sizes = {0: "0 B", 999: "999 B", 999.7: "1.00 kB", 999_600: "1.00 MB", 12_345_678: "12.3 MB"}
    assert {count: bytes_text(count) for count in sizes} == sizes
    times = {0.01234: "0.0123", 9.999: "10.0", 123.4: "123", 3721.2: "3,721"}
    assert {seconds: seconds_text(seconds) for seconds in times} == times


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"runs": ()}, "at least one run"),
        ({"runs": (run("A", 1, 0.1), run("A", 1, 0.2))}, "A has two runs with seed 1"),
        ({"planned_rounds": 0}, "planned_rounds is 0"),
        ({"planned_rounds": 2}, "at least the 3 rounds"),
        ({"target": math.nan}, "finite"),
        ({"histogram": np.zeros(3, int)}, "clients x labels"),
        ({"histogram": np.zeros((2, 3))}, "whole numbers"),
        ({"histogram": np.array([[1, -1]])}, "negative"),
        ({"histogram": np.ones((2, 3), int), "server_histogram": np.ones(4, int)}, "got 3 and 4"),
        ({"histogram": np.ones((2, 3), int), "class_names": ("a", "b")}, "2 class names for 3"),
    ],
)
def test_a_comparison_that_makes_no_sense_is_refused_in_one_line(changes, words):
    good = {"title": "", "settings": {}, "target": None, "planned_rounds": 3}
    with pytest.raises(InputError, match=words) as caught:
        Comparison(**good | {"runs": (run("A", 0, 0.1, 0.2, 0.3),)} | changes)
    assert "\n" not in str(caught.value)


def test_records_out_of_order_are_refused():
    records = run("A", 0, 0.1, 0.2).records
    with pytest.raises(InputError, match=r"A, seed 0: .* in order"):
        Run("A", 0, records[::-1])


def test_the_page_embeds_exactly_what_was_summarised_and_recorded():
    comparison = example()
    summary, results = summarise(comparison), results_of(page(comparison))
    assert [method["algorithm"] for method in results["methods"]] == list(SHAPES)
    for embedded, method in zip(results["methods"], summary.methods, strict=True):
        assert embedded["final"] == {"mean": method.final.mean, "spread": method.final.spread}
        assert tuple(embedded["curve"]["mean"]) == method.curve.mean
        assert tuple(embedded["curve"]["traffic"]) == method.curve.traffic
        for item, run in zip(embedded["runs"], comparison.runs_of(method.algorithm), strict=True):
            assert item["metrics"]["loss"] == [record.metrics["loss"] for record in run.records]
    assert results["holdings"]["counts"] == comparison.histogram.tolist()
    assert results["headline"] == headline(summary)


def test_text_of_the_user_stays_text():
    evil = '</script><script>alert(1)</script><img src=x> & "$headline"'
    comparison = Comparison(
        evil, (replace(learning("FedAvg", 0, 3), algorithm=evil),), {evil: evil}, None, 3,
        np.ones((2, 1), int), class_names=(evil,),
    )  # fmt: skip
    html = page(comparison)
    elements = Elements()
    elements.feed(html)
    plain = Elements()
    plain.feed(
        page(
            Comparison("t", (learning("FedAvg", 0, 3),), {"a": "b"}, None, 3, np.ones((2, 1), int))
        )
    )
    assert elements.seen == plain.seen
    results = results_of(html)
    assert results["title"] == results["methods"][0]["algorithm"] == evil
    assert results["holdings"]["labels"] == [evil]


def test_very_many_clients_are_thinned_but_all_are_counted():
    held = np.ones((1001, 2), int)
    comparison = Comparison("t", (run("A", 0, 0.5),), {}, None, 1, held, np.array([1, 3]))
    html = page(comparison)
    holdings = results_of(html)["holdings"]
    assert holdings["clients"][:2] == [0, 3]
    assert len(holdings["clients"]) == len(holdings["counts"]) <= 400
    assert holdings["population"] == [1001, 1001]
    assert "2,002 samples at 1,001 clients" in html
    assert "is 0.894" in html  # the cosine of (1, 3) and (1, 1): 4 / sqrt(20)


def test_a_page_is_replaced_whole_or_not_at_all(tmp_path, monkeypatch):
    target = tmp_path / "new" / "report.html"
    assert write_page(example(), target) == target
    assert target.read_text(encoding="utf-8").endswith("</html>\n")
    assert list(target.parent.iterdir()) == [target]
    before = target.read_bytes()

    def full(_file):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match="No space left on device") as caught:
        write_page(example(), target)
    assert "\n" not in str(caught.value)
    assert target.read_bytes() == before
    assert list(target.parent.iterdir()) == [target]


def test_a_page_that_cannot_be_written_is_one_line_for_the_user(tmp_path):
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file" / "report.html", tmp_path):
        with pytest.raises(InputError, match=r"cannot write .*; choose another folder") as caught:
            write_page(compared(run("A", 0, 0.5)), path)
        assert "\n" not in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def progress_of(console: Console, runs: list[Run], *, quiet: bool = False) -> None:
    with Progress(len(runs), runs[0].rounds, quiet=quiet, console=console) as progress:
        for item in runs:
            for record in item.records:
                progress.update(item.algorithm, item.seed, record)


def test_plain_progress_is_sparse_and_ends_at_the_end():
    out = io.StringIO()
    progress_of(Console(file=out, width=80), [learning("FedAvg", 0), run("[b]", 1, *[None] * 60)])
    lines = out.getvalue().splitlines()
    assert len(lines) == LINES
    assert re.match(
        r" +5%  FedAvg  seed 0  round 6/60  accuracy \d\d\.\d\d %  0:00:00 el", lines[0]
    )
    assert re.match(r"100%  \[b\]  seed 1  round 60/60  0:00:0\d elapsed, 0:00:00 left", lines[-1])


def test_rounds_before_a_resume_count_as_done_but_not_as_speed(monkeypatch):
    now = SimpleNamespace(monotonic=lambda: 100.0)
    monkeypatch.setattr("bellwether.report.progress.time", now)
    out = io.StringIO()
    with Progress(1, 60, console=Console(file=out, width=80)) as progress:
        now.monotonic = lambda: 110.0
        progress.update("FedAvg", 0, RoundRecord(41, (), 0, 0, 1.0))
    assert out.getvalue() == " 68%  FedAvg  seed 0  round 41/60  0:00:10 elapsed, 0:03:10 left\n"


def test_live_progress_shows_where_it_is_and_quiet_shows_nothing():
    for quiet in (False, True):
        out = io.StringIO()
        progress_of(
            Console(file=out, width=80, force_terminal=True), [learning("FedAvg", 4)], quiet=quiet
        )
        assert ("seed 4  round 60/60  accuracy" in out.getvalue()) is not quiet
        assert ("100%" in out.getvalue()) is not quiet
    out = io.StringIO()
    progress_of(Console(file=out), [learning("FedAvg", 4)], quiet=True)
    assert out.getvalue() == ""


class Elements(HTMLParser):
    """The elements of a page, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)


def results_of(html: str) -> dict:
    """The embedded numbers, read as a browser finds them: up to the first closing tag."""
    text = html.split('<script type="application/json" id="results">')[1].split("</script")[0]
    return json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
