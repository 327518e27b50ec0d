"""The report and the watch page in a real browser."""

import re
import threading

import pytest

from bellwether.experiments.recorded import read_comparison
from bellwether.experiments.summary import summarise
from bellwether.report.export import Format, cell_text, exported
from bellwether.report.page import write_page
from bellwether.report.tables import tables
from bellwether.report.watch import watching
from browsing import contrast, overflow, wait_until
from run_folders import append, write_comparison, write_run
from test_report import SHAPES, example, learning

TARGET = 0.85
FILES = {"csv": Format.CSV, "md": Format.MARKDOWN, "tex": Format.LATEX}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_comparison(tmp_path_factory.mktemp("runs"), example().runs)


@pytest.fixture(scope="module")
def comparison(folder):
    return read_comparison([folder], TARGET)


@pytest.fixture(scope="module")
def path(folder, comparison):
    return write_page(comparison, folder / "report.html")


@pytest.fixture(scope="module")
def desktop(visit, path):
    return visit(path)


@pytest.fixture(autouse=True)
def nothing_wrong_and_nothing_from_outside(visited):
    yield
    for address, troubles, requests in visited:
        assert troubles == []
        own = address if address.startswith("file") else address.removesuffix("/")
        assert [url for url in requests if not url.startswith(("blob:", own))] == []


def drawn(page, chart):
    """Name, x and y of the curves of a chart."""
    return page.evaluate(
        f"document.getElementById('{chart}').data.filter(t => t.name).map(t => [t.name, t.x, t.y])"
    )


def press(page, text):
    page.locator(".choose button", has_text=re.compile(f"^{text}$")).click()


def test_the_tables_of_the_page_the_files_and_the_command_agree(desktop, comparison):
    found = tables(comparison, summarise(comparison))
    assert [table.name for table in found] == [
        "summary", "ratios", "final-test", "target-test", "participation",
    ]  # fmt: skip
    results = desktop.evaluate("JSON.parse(document.getElementById('results').textContent)")
    for table in found:
        shown = desktop.eval_on_selector_all(
            f"#{table.name} tbody tr",
            "all => all.map(row => [...row.cells].map(cell => cell.textContent))",
        )
        assert shown == [[row.algorithm, *map(cell_text, row.cells)] for row in table.rows]
        embedded = results["tables"][table.name]
        for at, (ending, format) in enumerate(FILES.items()):
            assert embedded[ending] == exported(table, format)
            if ending == "csv" or table.name == "summary":  # a browser stops a page at ten
                with desktop.expect_download() as download:
                    desktop.locator(f"#{table.name} .exports a").nth(at).click()
                assert download.value.suggested_filename == f"{table.name}.{ending}"
                with open(download.value.path(), encoding="utf-8", newline="") as file:
                    assert file.read() == embedded[ending]


def test_accuracy_and_loss_by_rounds_bytes_and_seconds(desktop, comparison):
    methods = summarise(comparison).methods
    press(desktop, "loss")
    assert desktop.locator("h2 .metric").all_inner_texts() == ["Loss"] * 3
    for (name, x, y), method in zip(drawn(desktop, "by-round"), methods, strict=True):
        assert (name, tuple(x), tuple(y)) == (
            method.algorithm,
            method.loss.rounds,
            method.loss.mean,
        )
    assert desktop.evaluate("document.getElementById('by-round').layout.shapes.length") == 0
    press(desktop, "accuracy")
    for (_, _, y), method in zip(drawn(desktop, "by-round"), methods, strict=True):
        assert y == pytest.approx([100 * value for value in method.curve.mean])
    for way, curve in (("down", "down"), ("up", "up"), ("both ways", "traffic")):
        press(desktop, way)
        by_name = {name: x for name, x, _ in drawn(desktop, "by-bytes")}
        for method in methods:
            if method.bytes_up:
                expected = [value / 1e9 for value in getattr(method.curve, curve)]
                most = max(value for m in methods for value in getattr(m.curve, curve))
                expected = [v if most >= 1e9 else 1e3 * v for v in expected]
                assert by_name[method.algorithm] == pytest.approx(expected)
    seconds = {name: x for name, x, _ in drawn(desktop, "by-seconds")}
    for method in methods:
        assert seconds[method.algorithm] == pytest.approx(method.curve.seconds)


def test_the_legend_reaches_every_chart(desktop):
    button = desktop.locator("#legend button").nth(1)
    button.click()
    for chart in ("by-round", "by-bytes", "by-seconds"):
        visible = desktop.evaluate(
            f"document.getElementById('{chart}').data.filter(t => t.name).map(t => t.visible)"
        )
        assert sorted(visible) == [False, True, True, True, True]
    button.click()


def test_hovering_says_which_client_came_how_often(desktop):
    assert desktop.evaluate("document.getElementById('came').data[0].z") == (
        [[60] * 10 + [0] * 50] * 3
    )
    desktop.locator("#came").scroll_into_view_if_needed()
    box = desktop.locator("#came .nsewdrag").bounding_box()
    desktop.mouse.move(box["x"] + 5.5 * box["width"] / 60, box["y"] + box["height"] / 2)
    desktop.wait_for_selector("#came .hoverlayer text")
    hover = desktop.locator("#came .hoverlayer").text_content()
    assert "seed 1: client 5 came 60 times" in hover


def test_in_the_dark_everything_can_be_read(visit, path):
    page = visit(path, color_scheme="dark")
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    for element in (".summary, #summary td", ".caption", ".choose button", "thead th"):
        colour = page.evaluate(f"getComputedStyle(document.querySelector('{element}')).color")
        assert contrast(paper, colour) > 4.5


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_sticks_out_of_a_phone(visit, path, scheme):
    size = {"width": 360, "height": 740}
    page = visit(path, viewport=size, is_mobile=True, has_touch=True, color_scheme=scheme)
    assert overflow(page) <= 0
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    too_wide = "all => all.filter(cell => cell.scrollWidth > cell.clientWidth + 1).length"
    assert page.eval_on_selector_all("tbody td", too_wide) == 0


def test_on_paper_tables_fit_and_buttons_are_gone(visit, path):
    page = visit(path, viewport={"width": 680, "height": 900}, color_scheme="dark")
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator(".exports:visible, .choose:visible, footer:visible").count() == 0
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert overflow(page) <= 0
    for chart in ("by-round", "by-bytes", "by-seconds", "came"):
        svg = page.locator(f"#{chart} .main-svg").first.bounding_box()
        assert 300 < svg["width"] <= 660


def test_the_watch_page_grows_while_runs_do(visit, tmp_path):
    whole = {name: learning(name, 0) for name in SHAPES}
    place = write_run(
        tmp_path / "fedavg" / "seed-0",
        type(whole["FedAvg"])("FedAvg", 0, whole["FedAvg"].records[:5], complete=False),
    )
    with watching(tmp_path, 0) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            page = visit(f"http://127.0.0.1:{server.server_address[1]}/")
            points = "document.getElementById('by-round').data?.at(-1)?.x?.length"
            wait_until(page, f"{points} === 5")
            assert drawn(page, "by-round")[0][0] == "FedAvg, seed 0"
            assert (
                page.locator("h1").inner_text()
                == "0 of 1 run finished; the furthest is at round 5."
            )
            append(place, *whole["FedAvg"].records[5:9])
            wait_until(page, f"{points} === 9", seconds=20)
            expected = [100 * record.metrics["accuracy"] for record in whole["FedAvg"].records[:9]]
            assert drawn(page, "by-round")[0][2] == pytest.approx(expected)
            write_run(tmp_path / "clg-sgd" / "seed-0", whole["CLG-SGD"])
            (place / "model.safetensors").write_bytes(b"")
            wait_until(page, "document.querySelectorAll('#legend button').length === 2", seconds=20)
            assert page.locator("h1").inner_text() == "2 runs finished, 60 rounds."
            assert page.locator("#runs tbody tr").count() == 2
            last = whole["CLG-SGD"].records[-1].metrics["accuracy"]
            assert page.locator("#runs tbody tr").nth(1).locator("td").first.inner_text() == (
                f"{100 * last:.2f} %"
            )
            assert overflow(page) <= 0
            page.close()
        finally:
            server.shutdown()
            thread.join()
