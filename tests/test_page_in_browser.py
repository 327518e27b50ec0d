"""The page as a reader meets it: opened from the disk, with no network, in a real browser."""

import csv
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bellwether import federate, participation, partition, server_data
from bellwether.experiments.results import Comparison
from bellwether.experiments.summary import summarise
from bellwether.report.federation_page import write_federation_page
from bellwether.report.overview import overview
from bellwether.report.page import write_page
from bellwether.report.rows import rows
from bellwether.report.words import estimate_text
from browsing import contrast, overflow, wait_until
from test_report import SHAPES, example, run


@pytest.fixture(scope="module")
def report(tmp_path_factory) -> Path:
    return write_page(example(), tmp_path_factory.mktemp("page") / "report.html")


@pytest.fixture(scope="module")
def desktop(visit, report):
    """One window for all tests that leave it as they found it: opening one costs a second."""
    return visit(report)


@pytest.fixture(autouse=True)
def nothing_wrong_and_nothing_fetched(visited):
    yield
    for address, troubles, requests in visited:
        assert troubles == []
        assert [url for url in requests if not url.startswith("blob:")] == [address]


def curves(page, chart: str) -> list[str]:
    """The colours of the curves on show, as drawn."""
    return page.eval_on_selector_all(
        f"#{chart} .scatterlayer path.js-line",  # a band has an outline of no width
        "all => all.map(path => path.style)"
        ".filter(style => style.strokeWidth !== '0px').map(style => style.stroke)",
    )


def results(page) -> dict:
    return page.evaluate("JSON.parse(document.getElementById('results').textContent)")


def test_every_method_is_drawn_where_the_numbers_say(desktop):
    assert desktop.title().startswith("Bellwether")
    assert desktop.locator("h1").inner_text().replace("\xa0", " ") == results(desktop)["headline"]
    assert desktop.locator("#legend button").all_inner_texts() == list(SHAPES)
    for chart in ("by-round", "by-bytes"):
        assert len(set(curves(desktop, chart))) == len(curves(desktop, chart)) == len(SHAPES)
    drawn = desktop.evaluate(
        "document.getElementById('by-round').data.filter(t => t.name).map(t => [t.name, t.x, t.y])"
    )
    for (name, x, y), method in zip(drawn, summarise(example()).methods, strict=True):
        assert (name, tuple(x)) == (method.algorithm, method.curve.rounds)
        assert y == pytest.approx([100 * value for value in method.curve.mean])
    dashed = desktop.evaluate(
        "document.getElementById('by-bytes').data.filter(t => t.line.dash === 'dash')"
        ".map(t => [t.name, ...t.y])"
    )
    silent = 100 * summarise(example()).methods[1].final.mean
    assert dashed == [["Server only", pytest.approx(silent), pytest.approx(silent)]]


def test_the_table_the_json_and_the_summary_agree(desktop):
    summary = summarise(example())
    table = desktop.eval_on_selector_all(
        "#summary tbody tr",
        "all => all.map(row => [row.cells[0].textContent, [...row.cells].slice(1).map("
        "cell => [cell.textContent, cell.className, Number(cell.dataset.value)])])",
    )
    embedded = results(desktop)["methods"]
    for (name, cells), row, method in zip(table, rows(summary), embedded, strict=True):
        assert name == row.algorithm == method["algorithm"]
        assert [value for _, _, value in cells] == [cell.value for cell in row.cells]
        assert [value for _, _, value in cells] == [
            method["final"]["mean"],
            method["to_target"]["median"],
            method["bytes_down"],
            method["bytes_up"],
            method["seconds"],
        ]
        for (text, kind, _), cell in zip(cells, row.cells, strict=True):
            assert text == f"{cell.text} {cell.detail}".strip()
            assert (kind == "best") is cell.best


def test_hovering_compares_the_methods_at_a_round_best_first(desktop):
    summary = summarise(example())
    box = desktop.locator("#by-round .nsewdrag").bounding_box()
    desktop.mouse.move(box["x"] + box["width"] * 30 / (1.02 * 60), box["y"] + box["height"] / 2)
    desktop.wait_for_selector("#by-round .hoverlayer .legendtext")
    texts = desktop.locator("#by-round .hoverlayer text").all_text_contents()
    at = {m.algorithm: (m.curve.mean[29], m.curve.spread[29]) for m in summary.methods}
    expected = [
        f"{name}  {100 * mean:.2f} ± {100 * spread:.2f} %"
        for name, (mean, spread) in sorted(at.items(), key=lambda item: -item[1][0])
    ]
    assert [re.sub(r"\s+", " ", text) for text in texts] == [
        re.sub(r"\s+", " ", text) for text in ("round 30", *expected)
    ]


def test_the_legend_hides_and_isolates_in_both_charts(desktop):
    button = desktop.locator("#legend button").nth(3)
    before = curves(desktop, "by-round")
    button.click()
    assert button.get_attribute("aria-pressed") == "false"
    assert curves(desktop, "by-round") == [colour for i, colour in enumerate(before) if i != 3]
    assert len(curves(desktop, "by-bytes")) == 4
    button.click()
    assert curves(desktop, "by-round") == before
    button.dblclick()
    assert curves(desktop, "by-round") == curves(desktop, "by-bytes") == [before[3]]
    button.dblclick()
    assert curves(desktop, "by-round") == before


def test_charts_follow_the_theme_and_print_light(visit, report):
    page = visit(report, color_scheme="light")
    ink = "getComputedStyle(document.querySelector('#by-round .xtick text')).fill"
    look = f"[getComputedStyle(document.body).backgroundColor, {ink}]"
    light, light_curves = page.evaluate(look), curves(page, "by-round")
    page.emulate_media(color_scheme="dark")
    wait_until(page, f"{ink} !== {light[1]!r}")
    dark, dark_curves = page.evaluate(look), curves(page, "by-round")
    assert not set(light_curves) & set(dark_curves)
    for paper, text in (light, dark):
        assert contrast(paper, text) > 7
    for paper, drawn in ((light[0], light_curves), (dark[0], dark_curves)):
        assert min(contrast(paper, colour) for colour in drawn) > 2
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert curves(page, "by-round") == light_curves
    assert page.locator("#by-round .main-svg").first.bounding_box()["width"] <= 660
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert curves(page, "by-round") == dark_curves


def test_nothing_sticks_out_on_a_phone_or_after_turning_it(visit, report):
    upright, turned = {"width": 390, "height": 844}, {"width": 844, "height": 390}
    page = visit(report, viewport=upright, is_mobile=True, has_touch=True)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        for size in (upright, turned, upright):
            page.set_viewport_size(size)
            width = "document.querySelector('#by-round .main-svg').clientWidth"
            wait_until(page, f"Math.abs({width} - {size['width'] - 34}) < 35")
            assert overflow(page) <= 0


def downloaded(page) -> list[dict[str, str]]:
    with page.expect_download() as download:
        page.locator("#csv").click()
    assert download.value.suggested_filename == "results.csv"
    with open(download.value.path(), newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_the_csv_holds_every_round_of_every_run(desktop):
    lines, runs = downloaded(desktop), example().runs
    rounds = [(item, record) for item in runs for record in item.records]
    for line, (item, record) in zip(lines, rounds, strict=True):
        assert (line["method"], int(line["seed"])) == (item.algorithm, item.seed)
        assert int(line["round"]) == record.round
        assert {name: float(line[name]) for name in record.metrics} == record.metrics
        assert (int(line["bytes_down"]), int(line["bytes_up"])) == (
            record.bytes_down,
            record.bytes_up,
        )
        assert float(line["seconds"]) == record.seconds


def test_who_holds_what_is_drawn_with_the_servers_share_beside_the_populations(desktop):
    comparison = example()
    heat, population, server = desktop.evaluate("document.getElementById('holdings').data")
    assert heat["z"] == comparison.histogram.T.tolist()
    assert population["customdata"] == comparison.histogram.sum(axis=0).tolist()
    assert server["x"] == pytest.approx(100 * comparison.server_histogram / 600)
    assert desktop.locator("#holdings .heatmaplayer image").count() == 1
    assert desktop.locator("#holdings .barlayer path").count() == 20


def test_hostile_names_are_shown_as_they_are_written(visit, tmp_path):
    evil = '<img src=x onerror=alert(1)></script><script>alert(2)</script> %{y} "a", <b>b</b>'
    runs = tuple(replace(item, algorithm=evil) for item in example().runs[:3])
    comparison = replace(
        example(), title=evil, runs=runs, settings={evil: evil}, class_names=(evil,) * 10
    )
    page = visit(write_page(comparison, tmp_path / "report.html"))
    assert page.locator("#legend button").inner_text() == evil
    assert page.locator(".title").inner_text() == evil
    assert page.locator("dd").inner_text() == evil
    assert evil in page.locator("#holdings .ytick text").first.text_content()
    box = page.locator("#by-round .nsewdrag").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.wait_for_selector("#by-round .hoverlayer .legendtext")
    assert evil in page.locator("#by-round .hoverlayer").text_content()
    assert page.locator("main img, main b").count() == 0
    assert {line["method"] for line in downloaded(page)} == {evil}


def test_a_comparison_with_little_in_it_is_still_a_page(visit, tmp_path):
    server_only = [
        replace(r, bytes_down=0, bytes_up=0) for r in run("S", 0, 2, 1, metric="loss").records
    ]
    few = Comparison(
        "t",
        (
            replace(run("S", 0), records=tuple(server_only), complete=False),
            replace(run("T", 0), complete=False),
        ),
        {},
        None,
        9,
    )
    page = visit(write_page(few, tmp_path / "report.html"))
    assert page.locator("#bytes h2").is_hidden()
    assert len(curves(page, "by-round")) == 1
    assert page.locator(".holdings, .settings").count() == 0
    assert page.locator(".notes li").all_inner_texts() == list(summarise(few).notes)
    final = summarise(few).methods[0].final
    assert page.locator("tbody td").first.inner_text() == estimate_text("loss", final)


def a_federation(clients=24, labels=4, **rest):
    """The overview of a skewed federation whose server draws a shifted set."""
    samples = np.zeros((clients * 40, 2)), np.arange(clients * 40) % labels
    how = {
        "partition": partition.DirichletByClass(0.3),
        "server": server_data.Shifted(0.9, samples=40, fresh=True, disjoint=False),
    }
    who = participation.Incomplete(3, absent=[5, 8])
    manifest = federate(samples, clients=clients, **{**how, **rest}).manifest
    return overview(manifest, who, 20, [f"<{label}>" for label in range(labels)])


def test_a_federation_is_drawn_as_its_manifest_says(visit, tmp_path):
    shown = a_federation()
    manifest = shown.manifest
    page = visit(write_federation_page(shown, tmp_path / "federation.html"))
    assert page.locator("h1").inner_text() == shown.headline
    assert f"is {manifest.similarity:.3f}." in shown.headline
    heat, population, server = page.evaluate("document.getElementById('holdings').data")
    assert heat["z"] == manifest.labels.T.tolist()
    assert population["customdata"] == manifest.population_labels.tolist()
    assert server["customdata"] == manifest.quotas.tolist()
    assert "<0>" in page.locator("#holdings .ytick text").first.text_content()
    sizes, labels = page.evaluate("document.getElementById('amounts').data")
    assert sum(sizes["y"]) == sum(labels["y"]) == 24
    assert labels["x"] == list(range(shown.labels_each.min(), shown.labels_each.max() + 1))
    assert labels["y"] == np.bincount(shown.labels_each)[shown.labels_each.min() :].tolist()
    coming = page.evaluate("document.getElementById('coming').data")[0]["z"]
    assert [set(np.flatnonzero(row)) for row in coming] == list(map(set, shown.cohorts.tolist()))
    caption = page.locator(".coming figcaption").inner_text()
    assert caption.startswith("Rounds 1 to 20: 3 clients a round; ")
    assert "2 never do: 5, 8." in caption


def test_a_federation_on_a_phone_in_the_dark(visit, tmp_path):
    path = write_federation_page(a_federation(), tmp_path / "federation.html")
    upright = {"width": 390, "height": 844}
    page = visit(path, viewport=upright, is_mobile=True, has_touch=True, color_scheme="dark")
    assert overflow(page) <= 0
    ink = "getComputedStyle(document.querySelector('#amounts .xtick text')).fill"
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert contrast(paper, page.evaluate(ink)) > 7
    top, bottom = (
        page.locator(f"#amounts .draglayer .{name}").bounding_box() for name in ("xy", "x2y2")
    )
    assert top["y"] + top["height"] < bottom["y"]


def test_a_large_federation_without_labels_is_still_a_page(visit, tmp_path):
    samples = np.zeros((3000, 1)), np.zeros(3000)
    manifest = federate(samples, clients=1000).manifest
    shown = overview(manifest, participation.Uniform(30), 9)
    page = visit(write_federation_page(shown, tmp_path / "federation.html"))
    assert page.locator("h1").inner_text() == (
        "1,000 clients hold 3,000 samples, 3 each; the server holds none."
    )
    assert page.locator(".holdings").count() == 0
    assert len(page.evaluate("document.getElementById('amounts').data")) == 1
    coming = np.array(page.evaluate("document.getElementById('coming').data")[0]["z"])
    assert coming.shape == (9, 334)
    assert coming.sum(axis=1).tolist() == [30] * 9
    assert "a column for each 3 clients." in page.locator(".coming figcaption").inner_text()
