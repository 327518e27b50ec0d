"""A page on this machine with curves that grow while runs train.

Two addresses are served and no file by its name: the page, and the rounds recorded since the last
time it asked. Other machines cannot connect, and a web site that had its name point to this machine
(DNS rebinding) is refused by the name it asks for.
"""

import errno
from collections.abc import Callable
from functools import partial
from html import escape
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from bellwether.core.errors import BellwetherError, InputError
from bellwether.report.curves import curves_section
from bellwether.report.frame import framed, script_json
from bellwether.report.growing import Growing

LOOPBACK = "127.0.0.1"
NAMES = (LOOPBACK, "localhost", "[::1]")
"""How this machine calls itself; a request for any other name is not from its own page."""

HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


def watching(folder: Path, port: int) -> ThreadingHTTPServer:
    """The server, bound to the port (0: any free one) but not yet serving."""
    handler = partial(_Handler, watch_page(folder), Growing(folder))
    try:
        return ThreadingHTTPServer((LOOPBACK, port), handler)
    except PermissionError:
        raise InputError(f"port {port} is not for you; give a --port above 1023") from None
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        raise InputError(
            f"port {port} is taken; give another --port, or --port 0 for any free one"
        ) from None


def watch_page(folder: Path) -> str:
    """The page, still without numbers: it asks for them."""
    return framed(
        f"watching {folder.name}",
        "watch.html",
        script_json({}),
        ("charts.js", "legend.js", "watch.js"),
        connect="; connect-src 'self'",
        folder=escape(str(folder)),
        curves=curves_section(
            ("accuracy", "loss"), "A curve for each run.", "From the start of a run."
        ),
    )


class _Handler(BaseHTTPRequestHandler):
    """Answers the page and what it asks for, and nothing else."""

    server_version = "bellwether"
    sys_version = ""
    timeout = 30

    def __init__(self, page: str, growing: Growing, *rest: Any) -> None:
        self._page, self._growing = page, growing
        super().__init__(*rest)

    def do_GET(self) -> None:
        """The page, or the rounds since the last time."""
        port = self.connection.getsockname()[1]
        tail = "" if port == 80 else f":{port}"  # as browsers write it
        if self.headers.get("Host") not in {f"{name}{tail}" for name in NAMES}:
            self._answer(HTTPStatus.FORBIDDEN, "text/plain", "open this page by its own address")
            return
        address = urlsplit(self.path)
        answers: dict[str, Callable[[str], None]] = {"/": self._send_page, "/rounds": self._rounds}
        answers.get(address.path, self._unknown)(address.query)

    def _send_page(self, _query: str) -> None:
        self._answer(HTTPStatus.OK, "text/html", self._page)

    def _rounds(self, query: str) -> None:
        asked = parse_qs(query)
        try:
            epoch, seen = (int(asked.get(name, ["0"])[0]) for name in ("epoch", "after"))
        except ValueError:
            self._answer(HTTPStatus.BAD_REQUEST, "text/plain", "epoch and after are numbers")
            return
        try:
            found = self._growing.since(epoch, seen)
        except (BellwetherError, OSError, ValueError, TypeError, KeyError) as error:
            found = {"trouble": str(error)}
        self._answer(HTTPStatus.OK, "application/json", script_json(found))

    def _unknown(self, _query: str) -> None:
        self._answer(HTTPStatus.NOT_FOUND, "text/plain", "there is only one page here: /")

    def _answer(self, status: HTTPStatus, kind: str, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        for name, value in {**HEADERS, "Content-Type": f"{kind}; charset=utf-8"}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Nothing: the terminal is for what matters."""
