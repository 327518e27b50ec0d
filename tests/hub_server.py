"""A small hub on this machine: as much of the real one's protocol as a download needs."""

import hashlib
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple


class Asked(NamedTuple):
    method: str
    path: str
    start: int
    """Where the range that was asked for begins."""


@dataclass
class Hub:
    """What the hub holds, and how it misbehaves."""

    files: dict[str, bytes] = field(default_factory=dict)
    """Content by the path after `resolve/REVISION/`."""
    sent: dict[str, bytes] = field(default_factory=dict)
    """Other bytes that are sent in their place."""
    cuts: dict[str, list[int]] = field(default_factory=dict)
    """After how many bytes each of the next connections for a file is cut."""
    stalls: dict[str, int] = field(default_factory=dict)
    """After how many bytes a file's connections wait for `go`."""
    status: int = 200
    sizes: dict[str, int] = field(default_factory=dict)
    """Sizes that are stated in place of the true ones."""
    ranges: bool = True
    """Whether it sends a part of a file when asked for one."""
    etags: bool = True
    """Whether it states checksums."""
    log: list[Asked] = field(default_factory=list)
    address: str = ""
    go: threading.Event = field(default_factory=threading.Event)

    def downloads(self) -> list[Asked]:
        return [asked for asked in self.log if asked.method == "GET" and "/cdn/" in asked.path]


@contextmanager
def serving(hub: Hub) -> Iterator[Hub]:
    """The hub on a free port of this machine."""

    class Handler(_Handler):
        shared = hub

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    hub.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield hub
    finally:
        hub.go.set()
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    shared: Hub
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def log_message(self, format: str, *arguments: object) -> None:
        """Nothing on the screen."""

    def _answer(self) -> None:
        hub = self.shared
        wanted = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        start = int(wanted[1]) if wanted and hub.ranges else 0
        hub.log.append(Asked(self.command, self.path, start))
        path = self.path.partition("/cdn/")[2] or re.sub(r".*/resolve/[^/]+/", "", self.path)
        if hub.status != 200 or path not in hub.files:
            self._head(404 if hub.status == 200 else hub.status, {"Content-Length": "0"})
        elif "/cdn/" in self.path:
            self._content(path, start)
        else:
            self._pointer(path)

    def _pointer(self, path: str) -> None:
        """To where the bytes are, as for large files: on another host."""
        hub = self.shared
        content = hub.files[path]
        checksum = hashlib.sha256(content).hexdigest() if hub.etags else "0" * 40
        elsewhere = hub.address.replace("127.0.0.1", "localhost")
        headers = {
            "Location": f"{elsewhere}/cdn/{path}",
            "Content-Length": "0",
            "X-Repo-Commit": "c" * 40,
            "X-Linked-Size": str(hub.sizes.get(path, len(content))),
            "X-Linked-Etag": f'"{checksum}"',
        }
        self._head(302, headers)

    def _content(self, path: str, start: int) -> None:
        hub = self.shared
        content = hub.sent.get(path, hub.files[path])
        headers = {"Content-Length": str(len(content) - start), "ETag": '"cdn"'}
        if start:
            headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
        self._head(206 if start else 200, headers)
        end = len(content)
        cut = bool(hub.cuts.get(path))
        if cut:
            end = min(end, start + hub.cuts[path].pop(0))
        elif path in hub.stalls:
            end = hub.stalls[path]
        self.wfile.write(content[start:end])
        self.wfile.flush()
        if not cut and end < len(content):
            hub.go.wait()
            with suppress(OSError):  # whoever asked may have gone
                self.wfile.write(content[end:])
        self.close_connection = cut

    def _head(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
