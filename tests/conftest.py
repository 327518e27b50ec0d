"""Fixtures that several test files share."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data sets: BELLWETHER_DATA, else shared/data beside the repository."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("BELLWETHER_DATA") or beside)
    if not folder.is_dir():
        pytest.skip(f"no real data sets: {folder} is no folder (set BELLWETHER_DATA)")
    return folder
