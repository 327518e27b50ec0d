"""Fixtures that several test files share."""

import os
import shutil
import signal
import threading
from importlib import import_module
from pathlib import Path

import pytest


def pytest_configure() -> None:
    """Let Ctrl-C reach the programs under test also where a shell started the tests with `&`.

    Such a shell has its children ignore SIGINT, and theirs inherit that.
    """
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data sets: BELLWETHER_DATA, else shared/data beside the repository."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("BELLWETHER_DATA") or beside)
    if not folder.is_dir():
        pytest.skip(f"no real data sets: {folder} is no folder (set BELLWETHER_DATA)")
    return folder


CHROMIUM = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update",
]  # fmt: skip


@pytest.fixture(scope="module")
def browser():
    """A real browser; BELLWETHER_REQUIRE_BROWSER=1 fails where there is none, rather than skips."""
    required = os.environ.get("BELLWETHER_REQUIRE_BROWSER") == "1"
    names = ("chromium", "chromium-browser", "google-chrome")
    playwright = (import_module if required else pytest.importorskip)("playwright.sync_api")
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        reason = f"no browser: none of {', '.join(names)} is on the path"
        if required:
            pytest.fail(reason)
        pytest.skip(reason)
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, args=CHROMIUM)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def visited():
    """Every window opened: its address, what went wrong, what was fetched."""
    return []


@pytest.fixture(scope="module")
def visit(browser, visited):
    """Open a file, or an address, in a fresh window."""

    def visit(place: Path | str, **window):
        address = place if isinstance(place, str) else place.as_uri()
        size = {"viewport": {"width": 1100, "height": 900}}
        page = browser.new_context(**size | window).new_page()
        troubles, requests = [], []
        page.on("console", lambda message: troubles.append(message.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("dialog", lambda dialog: troubles.append(dialog.message))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(address)
        visited.append((address, troubles, requests))
        return page

    return visit
