"""One run of a study, in a process of its own."""

import json
import os
import sys
import tomllib
import warnings
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch

from bellwether.core.errors import BellwetherError, Diverged
from bellwether.core.files import make_folder, write_atomically
from bellwether.core.records import RoundRecord
from bellwether.engines.processes import belong_to
from bellwether.experiments import perform
from bellwether.experiments.config.config import from_tree, load
from bellwether.experiments.config.source import Source
from bellwether.experiments.run_directory import CONFIG
from bellwether.experiments.training import Interrupted

OUTCOME = "outcome.json"
"""Written last, for a run that is done or has diverged: it is not begun again."""
DONE, DIVERGED, STOPPED, FAILED = "done", "diverged", "stopped", "failed"


def work(parent: int, connection: Connection, folder: Path, text: str) -> None:
    """Begin the run of a folder or go on with it; tell every round, and how it ended.

    What is sent is (round, metrics), then (outcome, reason).
    """
    belong_to(parent)
    # A thread of the parent may have held the lock of its streams when this process was forked.
    sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # nobody could tell whose they are

    def told(record: RoundRecord) -> None:
        connection.send((record.round, record.metrics))
        if connection.poll():  # whatever is sent means: stop
            raise KeyboardInterrupt

    try:
        connection.send(_performed(folder, text, told))
    except BrokenPipeError:
        pass
    finally:
        connection.close()


def outcome(folder: Path) -> str | None:
    """How the run of a folder ended; None while it has not."""
    try:
        ended: str = json.loads((folder / OUTCOME).read_text())["outcome"]
    except FileNotFoundError:
        return None
    return ended


def _performed(folder: Path, text: str, told: Any) -> tuple[str, str]:
    try:
        if (folder / CONFIG).exists():
            perform.resume(load(folder / CONFIG), folder, told)
        else:
            for half in folder.glob("*.tmp"):
                half.unlink()
            perform.begin(from_tree(tomllib.loads(text), Source(CONFIG)), folder, told)
    except Interrupted:
        return STOPPED, ""
    except Diverged as error:
        make_folder(folder)
        write_atomically(folder / CONFIG, text)  # in the first round nothing is kept of a run
        write_atomically(folder / OUTCOME, json.dumps({"outcome": DIVERGED, "reason": str(error)}))
        return DIVERGED, str(error)
    except BellwetherError as error:
        return FAILED, str(error)
    except Exception as error:
        return FAILED, f"{type(error).__name__}: {' '.join(str(error).split())}"
    write_atomically(folder / OUTCOME, json.dumps({"outcome": DONE}))
    return DONE, ""
