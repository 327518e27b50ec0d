"""How a contender's process takes turns: it trains when asked to, and says what each round took.

`benchmarks/referee.py` writes a number of rounds to standard input; the process trains as many,
prints a line of JSON after each, and waits. Standard library only, as for `workloads.py`.
"""

import argparse
import json
import os
import sys
import time
from importlib.metadata import version
from typing import NoReturn

from workloads import WORKLOADS, Workload

FOREVER = 1_000_000
"""Rounds to ask a library for; the referee ends the process long before."""


class Stop(KeyboardInterrupt):
    """The referee has seen enough."""


def arguments(description: str | None) -> argparse.ArgumentParser:
    """A parser of what every contender takes."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("workload", choices=WORKLOADS)
    parser.add_argument("--set", nargs="*", default=[], metavar="cohort=8")
    return parser


def workload(given: argparse.Namespace) -> Workload:
    """What the arguments ask for."""
    return WORKLOADS[given.workload].changed(given.set)


class Turns:
    """This process's side. Call it at the end of every round.

    A library's own words go to standard error. A round lasts from the moment when the previous
    call let go to the next call, whatever the library does in between.
    """

    def __init__(self) -> None:
        self._out = os.fdopen(os.dup(1), "w", buffering=1)
        os.dup2(2, 1)
        self._left = 0
        self._resumed = 0.0

    def ready(self, packages: list[str], data_seconds: float = 0.0) -> None:
        """Everything is there; only training is left. Returns when the first round may begin."""
        versions = {package: version(package) for package in packages}
        self._say(versions=versions, data_seconds=data_seconds)
        self._wait()

    def cannot(self, reason: str) -> NoReturn:
        """This contender has no way to do the workload."""
        self._say(cannot=reason)
        sys.exit(0)

    def __call__(self, *_: object) -> None:
        self._say(seconds=time.perf_counter() - self._resumed)
        self._left -= 1
        if not self._left:
            self._wait()
        self._resumed = time.perf_counter()

    def _wait(self) -> None:
        line = sys.stdin.readline()
        if not line:
            raise Stop
        self._left = int(line)
        self._resumed = time.perf_counter()

    def _say(self, **facts: object) -> None:
        self._out.write(json.dumps(facts) + "\n")
