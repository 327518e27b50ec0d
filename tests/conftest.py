"""Fixtures that several test files share."""

import os
import signal
import threading
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
