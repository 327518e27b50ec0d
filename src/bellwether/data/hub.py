"""Files from the Hugging Face hub: resumed where they broke off, used only when whole.

The only module that imports huggingface_hub and httpx, so it is imported where they are needed.
`hf_hub_download` begins anew in every process, so the parts it is made of are used here.
"""

import errno
import hashlib
import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
from huggingface_hub import constants, get_hf_file_metadata, hf_hub_url
from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled
from huggingface_hub.utils import (
    WeakFileLock,
    build_hf_headers,
    hf_raise_for_status,
    http_stream_backoff,
    logging,
)
from rich.console import Console
from rich.filesize import decimal
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from bellwether.core.errors import InputError
from bellwether.data.repositories import RemoteFile, Repository

_PATIENCE = 3
"""How often in a row a connection may bring nothing."""
PAUSE = 1.0
"""Seconds before the next one."""


def fetch(
    repository: Repository, folder: Path, endpoint: str | None, quiet: bool, otherwise: str
) -> None:
    """Put the repository's files into the folder; `otherwise` is what to do without the hub."""
    address = (endpoint or constants.ENDPOINT).rstrip("/")
    with _silent(), _writing(folder), _progress(quiet) as progress:
        folder.mkdir(parents=True, exist_ok=True)
        with WeakFileLock(folder / ".download.lock"):
            for file in repository.files:
                with _explained(file, repository, address, otherwise):
                    _fetch(repository, file, folder, address, progress)


def _fetch(
    repository: Repository, file: RemoteFile, folder: Path, address: str, progress: Progress
) -> None:
    target = folder / file.name
    if file.sha256 and _sha256(target) == file.sha256:
        return
    url = hf_hub_url(
        repository.name,
        file.path,
        repo_type="dataset",
        revision=repository.revision,
        endpoint=address,
    )
    stated = get_hf_file_metadata(url)
    checksum = file.sha256 or stated.etag or ""
    if stated.size is None or not re.fullmatch("[0-9a-f]{64}", checksum):
        raise InputError(f"{address} states no size and sha256 of {file.path}; nothing was loaded")
    if _sha256(target) == checksum:
        return
    part = folder / f"{file.name}.{checksum[:12]}.part"
    _check_space(part, stated.size)
    try:
        _receive(url, part, stated.size, progress)
    except OSError as error:
        # No room for it: then it only takes room.
        if not isinstance(error, HfHubHTTPError | OfflineModeIsEnabled):
            with suppress(OSError):
                part.unlink()
        raise
    if (found := _sha256(part)) != checksum:
        part.unlink()
        raise InputError(
            f"{file.path} from {address} has the sha256 {found[:12]}..., expected "
            f"{checksum[:12]}...; it was deleted, get it again or from another address"
        )
    os.replace(part, target)
    for old in folder.glob(f"{file.name}.*.part"):  # of another revision
        old.unlink()


def _receive(url: str, part: Path, size: int, progress: Progress) -> None:
    """Append to the part until it has its size, whatever becomes of the connections."""
    name = f"{part.parent.name}/{part.name.partition('.')[0]}"
    bar = progress.add_task(name, total=size)
    if progress.disable:  # nothing can be redrawn here
        progress.console.print(f"{name}: {decimal(size)}", highlight=False)
    idle = 0
    while (had := _size(part)) < size:
        try:
            for held in _stream(url, part, had):
                progress.update(bar, completed=held)
                if held > size:
                    return  # whatever this is, the checksum will tell
            if _size(part) <= had:
                raise httpx.ReadError("the answer was empty")
        except httpx.TransportError:
            idle = 0 if _size(part) > had else idle + 1
            if idle == _PATIENCE:
                raise
            time.sleep(PAUSE)
    progress.update(bar, completed=size)


def _stream(url: str, part: Path, had: int) -> Iterator[int]:
    """One connection: append what it brings, yielding the bytes held so far."""
    headers = build_hf_headers() | {"Accept-Encoding": "identity", "Range": f"bytes={had}-"}
    with http_stream_backoff(
        "GET",
        url,
        headers=headers,
        timeout=constants.HF_HUB_DOWNLOAD_TIMEOUT,
        max_retries=_PATIENCE,
        retry_on_exceptions=(),
    ) as response:
        hf_raise_for_status(response)
        resumed = response.status_code == httpx.codes.PARTIAL_CONTENT
        with part.open("ab" if resumed else "wb") as file:
            for chunk in response.iter_bytes():
                file.write(chunk)
                yield file.tell()


def _sha256(file: Path) -> str:
    """Of a file's content; nothing where there is no file."""
    try:
        with file.open("rb") as content:
            return hashlib.file_digest(content, "sha256").hexdigest()
    except FileNotFoundError:
        return ""


def _size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


def _check_space(part: Path, size: int) -> None:
    free, needed = shutil.disk_usage(part.parent).free, size - _size(part)
    if free < needed:
        raise OSError(errno.ENOSPC, f"{decimal(needed)} needed, {decimal(free)} free")


@contextmanager
def _explained(
    file: RemoteFile, repository: Repository, address: str, otherwise: str
) -> Iterator[None]:
    """Say in one line what the network did, and what to do."""
    try:
        yield
    except HfHubHTTPError as error:
        status = error.response.status_code
        raise InputError(
            f"{address} answers {status} {httpx.codes.get_reason_phrase(status)} for "
            f"{repository.name}/{file.path}; try later or another address (HF_ENDPOINT), or "
            f"{otherwise}"
        ) from error
    except (httpx.HTTPError, httpx.InvalidURL, OfflineModeIsEnabled) as error:
        offline = isinstance(error, OfflineModeIsEnabled)
        reason = "HF_HUB_OFFLINE is set" if offline else str(error) or type(error).__name__
        raise InputError(
            f"cannot get {file.path} from {address} ({reason}); go online and run this again, "
            f"what came is kept; or {otherwise}"
        ) from error


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    """Say in one line why the folder can't hold the files."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"cannot write to {folder}: {error.strerror or error}; make room there, or set "
            "XDG_CACHE_HOME to another folder"
        ) from error


@contextmanager
def _silent() -> Iterator[None]:
    """Keep the library's warnings of every retry off the screen."""
    before = logging.get_verbosity()
    logging.set_verbosity(logging.ERROR)
    try:
        yield
    finally:
        logging.set_verbosity(before)


def _progress(quiet: bool) -> Progress:
    console = Console(quiet=quiet)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
    )
