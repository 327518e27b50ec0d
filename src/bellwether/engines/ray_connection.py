"""Be part of a Ray: one of our own for a while, or a cluster that is there."""

import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from tempfile import TemporaryDirectory
from typing import Any

import ray
from ray.exceptions import RayError

from bellwether.core.errors import InputError
from bellwether.engines.local import cores
from bellwether.engines.processes import undisturbed

PATIENCE = 10.0
"""Seconds in which a cluster must answer."""


@contextmanager
def connected(address: str | None) -> Iterator[None]:
    """A Ray for this process. What was begun for it is ended; what was there before stays."""
    if ray.is_initialized():
        _check_same(address)
        yield
    elif address is None:
        # Ray would leave its logs; and the paths of its sockets must be short.
        short = "/tmp" if os.name == "posix" else None
        with TemporaryDirectory(prefix="ray-", dir=short, ignore_cleanup_errors=True) as folder:
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
            with _initialised(
                address="local", num_cpus=cores(), include_dashboard=False, _temp_dir=folder
            ):
                yield
    else:
        if address == "auto":
            address = os.environ.get("RAY_ADDRESS", address)
        if address != "auto":
            check_answer(address)
        with _initialised(address=address):
            yield


def check_answer(address: str) -> None:
    """Raise `InputError` where no cluster is: Ray itself tries for minutes, then ends the process.

    A cluster's head speaks HTTP/2, in which each side begins with a SETTINGS frame (RFC 9113, 3.4).
    """
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), PATIENCE) as connection:
            connection.settimeout(PATIENCE)
            connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0")
            frame = connection.recv(9)
    except OSError as error:
        raise _no_answer(address, error.strerror or str(error)) from error
    if frame[3:4] != b"\4":
        raise _no_answer(address, "something else listens there")


@contextmanager
def _initialised(**settings: Any) -> Iterator[None]:
    try:
        with undisturbed():
            ray.init(log_to_driver=False, logging_level=logging.ERROR, **settings)
    except (OSError, RuntimeError, ValueError, RayError, SystemExit) as error:
        ray.shutdown()
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise _no_answer(settings["address"], reason) from error
    try:
        yield
    finally:
        with undisturbed():
            _end(settings.get("_temp_dir"))


def _end(folder: str | None) -> None:
    """End what was begun: all of it, where Ray was started by us, in this folder.

    Ray gives its processes a second. Where that is too short, as on a busy machine, those that they
    have started would stay for minutes.
    """
    import psutil  # Ray brings it along, and makes it importable

    found: list[psutil.Process] = []
    for child in psutil.Process().children() if folder else ():
        with suppress(psutil.Error):
            if any(str(folder) in word for word in child.cmdline()):
                found += [child, *child.children(recursive=True)]
    ray.shutdown()
    for process in found:
        with suppress(psutil.Error):
            process.kill()


def _check_same(address: str | None) -> None:
    here = ray.get_runtime_context().gcs_address
    if address not in (None, "auto", here):
        raise InputError(
            f"this process uses the Ray at {here} already, so it cannot join that at {address};"
            " end it with ray.shutdown(), or leave out the address"
        )


def _no_answer(address: str, reason: str) -> InputError:
    if address == "local":
        return InputError(f"Ray cannot be started on this machine: {reason}")
    what = "runs on this machine" if address == "auto" else f"answers at {address} ({reason})"
    return InputError(
        f"no Ray cluster {what}; start one with `ray start --head`, let machines join it with"
        " `ray start --address`, or leave out the address for a Ray of this run's own"
    )
