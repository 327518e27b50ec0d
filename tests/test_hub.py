"""Downloads from a hub on this machine, most by the real command: whole, broken, wrong, refused."""

import dataclasses
import io
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from huggingface_hub import constants
from PIL import Image
from pyarrow import parquet as pq

from bellwether import data
from bellwether.core.errors import InputError
from bellwether.data import hub as client
from bellwether.data.catalogue import CATALOGUE
from hub_server import Hub, serving

NAME, FOLDER = "fashion-mnist", "fashion_mnist"
REPOSITORY = f"zalando-datasets/{FOLDER}"
TRAIN, TEST = (f"{FOLDER}/{part}-00000-of-00001.parquet" for part in ("train", "test"))
DATA = ["test-00000-of-00001.parquet", "train-00000-of-00001.parquet"]
NOISE = np.random.Generator(np.random.Philox(1)).integers(0, 256, (400, 28, 28), dtype=np.uint8)


def shard(images: np.ndarray) -> bytes:
    encoded = []
    for image in images:
        buffer = io.BytesIO()
        Image.fromarray(image).save(buffer, "PNG")
        encoded.append({"bytes": buffer.getvalue(), "path": None})
    content = io.BytesIO()
    labels = [i % 10 for i in range(len(images))]
    pq.write_table(pa.table({"image": encoded, "label": labels}), content)
    return content.getvalue()


FILES = {TRAIN: shard(NOISE), TEST: shard(NOISE[:20])}
HALF = len(FILES[TRAIN]) // 2


@pytest.fixture
def hub() -> Iterator[Hub]:
    with serving(Hub(files=dict(FILES))) as hub:
        yield hub


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the data set is to be; it is nowhere else. The library asks for nothing else."""
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_TELEMETRY", True)
    monkeypatch.delenv("BELLWETHER_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    entry = dataclasses.replace(CATALOGUE[NAME], system_folder=None)
    monkeypatch.setitem(CATALOGUE, NAME, entry)
    return tmp_path / "bellwether" / NAME


COMMAND = "from bellwether.cli import main; main()"
PLAIN = {"NO_COLOR": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}


class Command:
    """`bellwether data ...`, a process of its own."""

    def __init__(self, hub: Hub, *arguments: str, first: str = "", **variables: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", f"{first}{COMMAND}", "data", *arguments],
            env={**os.environ, **PLAIN, "HF_ENDPOINT": hub.address, **variables},
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def end(self) -> tuple[int, str, str]:
        stdout, stderr = self.process.communicate(timeout=60)
        return self.process.returncode, stdout, stderr

    def mistake(self) -> str:
        """The one line with which it failed."""
        code, _, stderr = self.end()
        assert code == 2, stderr
        assert stderr.startswith("error: ")
        assert stderr.count("\n") == 1, stderr
        return stderr


def wait_for_half(folder: Path) -> None:
    deadline = time.monotonic() + 60
    while not any(file.stat().st_size > HALF // 2 for file in folder.glob("*.part")):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def seen(folder: Path) -> list[str]:
    """What a user sees in the folder."""
    return sorted(file.name for file in folder.glob("[!.]*"))


def message(hub: Hub, name: str = NAME) -> str:
    """What goes wrong, said in this process, in one line."""
    with pytest.raises(InputError) as raised:
        data.get(name, endpoint=hub.address)
    assert "\n" not in str(raised.value)
    return str(raised.value)


def test_the_command_gets_what_load_finds(hub: Hub, folder: Path) -> None:
    code, stdout, stderr = Command(hub, "get", NAME, FORCE_COLOR="1").end()
    assert code == 0, stderr
    assert f" is complete: {folder}\n" in stdout
    assert "━━━━━━" in stdout  # a bar, as on a terminal
    assert seen(folder) == DATA
    loaded = data.load(NAME)
    assert (loaded.train.size, loaded.test.size, loaded.source) == (400, 20, str(folder))
    assert loaded.train.targets.tolist() == [i % 10 for i in range(400)]

    before = len(hub.downloads())
    code, stdout, stderr = Command(hub, "get", NAME, "--quiet").end()
    assert (code, stdout, stderr) == (0, f"{NAME} is complete: {folder}\n", "")
    assert len(hub.downloads()) == before == 2


def test_a_damaged_file_is_replaced(hub: Hub, folder: Path) -> None:
    data.get(NAME, endpoint=hub.address)
    (folder / DATA[0]).write_bytes(b"damaged")
    data.get(NAME, endpoint=hub.address)
    assert (folder / DATA[0]).read_bytes() == FILES[TEST]
    assert [asked.path for asked in hub.downloads()][2:] == [f"/cdn/{TEST}"]


def test_the_command_resumes_what_was_cut(hub: Hub, folder: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine" / NAME
    mine.mkdir(parents=True)
    for path, name in zip((TEST, TRAIN), DATA, strict=True):
        (mine / name).write_bytes(FILES[path])
    hub.cuts[TRAIN] = [HALF]
    code, stdout, stderr = Command(hub, "get", NAME, BELLWETHER_DATA=str(mine.parent)).end()
    assert (code, stderr) == (0, "")
    assert f"but {mine} comes first" in stdout
    assert re.search(rf"^{NAME}/train-\S+: [\d.]+ kB$", stdout, re.MULTILINE)  # as in a log
    assert (folder / DATA[1]).read_bytes() == FILES[TRAIN]
    starts = [asked.start for asked in hub.downloads() if asked.path.endswith(TRAIN)]
    assert len(starts) == 2
    assert starts[0] == 0 < starts[1] <= HALF


def test_ctrl_c_keeps_what_came(hub: Hub, folder: Path) -> None:
    hub.stalls[TRAIN] = HALF
    first = Command(hub, "get", NAME)
    wait_for_half(folder)
    first.process.send_signal(signal.SIGINT)
    code, stdout, stderr = first.end()
    assert (code, stderr) == (130, "")
    assert "what came is kept" in stdout
    assert data.find(NAME) is None
    hub.stalls.clear()
    code, _, stderr = Command(hub, "get", NAME).end()
    assert (code, stderr) == (0, "")
    assert seen(folder) == DATA
    assert (folder / DATA[1]).read_bytes() == FILES[TRAIN]
    starts = [asked.start for asked in hub.downloads() if asked.path.endswith(TRAIN)]
    assert starts[0] == 0 < starts[1] <= HALF


@pytest.mark.parametrize("ranges", [True, False], ids=["ranges", "no ranges"])
@pytest.mark.parametrize("cuts", [[0], [1, 0, 70_000], [len(FILES[TRAIN]) - 1]], ids=str)
def test_wherever_it_is_cut(
    cuts: list[int], ranges: bool, hub: Hub, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "PAUSE", 0)
    hub.cuts[TRAIN], hub.ranges = list(cuts), ranges
    assert data.get(NAME, endpoint=hub.address) == folder
    assert (folder / DATA[1]).read_bytes() == FILES[TRAIN]
    assert hub.cuts[TRAIN] == []


def test_two_at_once_get_it_once(hub: Hub, folder: Path) -> None:
    hub.stalls[TRAIN] = HALF
    first = Command(hub, "get", NAME)
    wait_for_half(folder)
    with ThreadPoolExecutor() as pool:
        second = pool.submit(data.get, NAME, endpoint=hub.address, quiet=True)
        wait([second], timeout=0.5)  # long enough to ask the hub, were it not waiting
        hub.go.set()
        assert second.result(timeout=60) == folder
    assert first.end()[0] == 0
    assert [asked.path for asked in hub.downloads()] == [f"/cdn/{TRAIN}", f"/cdn/{TEST}"]


def test_offline_is_one_line(hub: Hub, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed = Command(hub, "get", NAME, "--endpoint", "http://127.0.0.1:9").mistake()
    assert "cannot get" in closed
    assert f"put {DATA[1]} and {DATA[0]} into BELLWETHER_DATA/{NAME}" in closed
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert "HF_HUB_OFFLINE is set" in message(hub)
    assert hub.log == []
    assert seen(folder) == []


def test_a_connection_that_brings_nothing_more(
    hub: Hub, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "PAUSE", 0)
    hub.cuts[TRAIN] = [70_000, *[0] * 9]
    assert "what came is kept" in message(hub)
    assert [file.stat().st_size for file in folder.glob("*.part")] == [70_000]


def test_other_bytes_are_never_used(hub: Hub, folder: Path) -> None:
    hub.sent[TRAIN] = FILES[TRAIN] * 2
    assert "sha256" in message(hub)
    hub.sent[TRAIN] = FILES[TRAIN][:-1] + b"?"
    line = Command(hub, "get", NAME).mistake()
    assert "sha256" in line
    assert "deleted" in line
    assert seen(folder) == []


def test_the_catalogues_checksum_goes_before_the_hubs(hub: Hub, folder: Path) -> None:
    hub.files = {path.replace(FOLDER, "mnist"): content for path, content in FILES.items()}
    assert "expected f2c01285a9f8" in message(hub, "mnist")
    assert seen(folder.with_name("mnist")) == []


def test_what_the_hub_does_not_have(hub: Hub, folder: Path) -> None:
    del hub.files[TEST]
    assert f"answers 404 Not Found for {REPOSITORY}/{TEST}; " in message(hub)
    hub.files, hub.status = dict(FILES), 401
    assert "answers 401 Unauthorized" in message(hub)
    hub.status, hub.etags = 200, False
    assert "states no size and sha256" in message(hub)
    assert seen(folder) == [DATA[1]]


LIMIT = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({HALF}, {HALF})); "


def test_a_full_disk_leaves_no_half_file(hub: Hub, folder: Path) -> None:
    line = Command(hub, "get", NAME, first=LIMIT).mistake()
    assert f"cannot write to {folder}: File too large" in line
    assert "XDG_CACHE_HOME" in line
    assert seen(folder) == []


def test_a_disk_that_would_be_too_small(hub: Hub, folder: Path) -> None:
    hub.sizes[TRAIN] = 10**18
    assert "1.0 EB needed" in message(hub)
    assert hub.downloads() == []
    assert seen(folder) == []


def test_what_there_is_nothing_to_download_for(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, expected in {
        "digits": "digits needs no download",
        "emnist-bymerge": "into BELLWETHER_DATA/emnist-bymerge",
        "fashion-mnits": "did you mean fashion-mnist?",
    }.items():
        with pytest.raises(InputError, match=expected):
            data.get(name)
    monkeypatch.setitem(sys.modules, "bellwether.data.hub", None)
    monkeypatch.delattr("bellwether.data.hub")
    with pytest.raises(InputError, match=r"pip install 'bellwether-fl\[hub\]'"):
        data.get(NAME)


def test_what_is_made_of_another_set_gets_that(hub: Hub, folder: Path) -> None:
    hub.files = {path.replace(FOLDER, "data"): content for path, content in FILES.items()}
    with pytest.raises(InputError, match="sha256"):
        data.get("stl10-as-cifar10", endpoint=hub.address)
    assert "/datasets/tanganke/stl10/" in hub.log[0].path
