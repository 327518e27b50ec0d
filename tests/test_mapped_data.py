"""Inputs that stay on disk: what is read, what is refused, and how much memory it takes."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bellwether import SGD, Dataset, FedCLGC, Federation, data, federate, models, server_data, train
from bellwether.core.dataset import samples
from bellwether.core.errors import InputError

RNG = np.random.Generator(np.random.Philox(4))
PIXELS = RNG.integers(0, 256, (60, 1, 8, 8), dtype=np.uint8)
LABELS = np.arange(60, dtype=np.int16) % 10


def write(
    folder: Path, x: np.ndarray = PIXELS, y: np.ndarray = LABELS, part: str = "train"
) -> Path:
    folder.mkdir(exist_ok=True)
    np.save(folder / f"x_{part}.npy", x)
    np.save(folder / f"y_{part}.npy", y)
    return folder


@pytest.mark.parametrize(
    "view",
    [
        lambda array: array,
        lambda array: array[7:],
        lambda array: np.asarray(array)[3:50][2:],
        lambda array: array[5, 0],
        lambda array: array.reshape(60, 64),
    ],
)
@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
def test_read_only_maps_are_not_copied(tmp_path: Path, view: Any, dtype: Any) -> None:
    """What is written to the file later is seen, so nothing was read before."""
    file = tmp_path / "x.npy"
    np.save(file, PIXELS.astype(dtype))
    given = view(np.load(file, mmap_mode="r"))
    before = samples(given, np.zeros(len(given)), "client 3").inputs
    other = np.load(file, mmap_mode="r+")
    other[:] = 255 - other
    other.flush()
    assert view(other).sum() != view(PIXELS).sum()
    assert before.numpy().tolist() == given.tolist()
    before.zero_()  # a private page: the file keeps its own
    assert np.load(file).any()


def test_maps_that_torch_cannot_take_are_copied(tmp_path: Path) -> None:
    file = tmp_path / "x.npy"
    for array in (PIXELS.astype(">f4"), np.asfortranarray(PIXELS.astype(np.float32))):
        np.save(file, array)
        held = samples(np.load(file, mmap_mode="r"), LABELS, "client 3").inputs
        assert held.tolist() == PIXELS.tolist()
    one = np.load(file, mmap_mode="r")[:, :, 3]
    assert samples(one, LABELS, "client 3").inputs.tolist() == PIXELS[:, :, 3].tolist()


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_training_is_the_same_from_disk_as_from_memory(tmp_path: Path, dtype: Any) -> None:
    x = PIXELS if dtype == np.uint8 else (PIXELS / np.float32(255)).astype(np.float32)
    folder = write(write(tmp_path / "mapped", x), x[:20], LABELS[:20], "test")
    mapped = data.from_npy(folder)
    assert (mapped.name, mapped.source) == ("mapped", str(folder))
    assert mapped.classes == tuple("0123456789")
    floats = torch.from_numpy(PIXELS).float() / 255
    y = torch.from_numpy(LABELS).long()

    def vector(federation: Federation) -> torch.Tensor:
        sgd = SGD(lr=0.1, epochs=1, batch_size=8)
        result = train(FedCLGC(sgd, sgd), federation, models.digits_cnn, rounds=2, seed=3)
        assert result.history[-1].metrics["accuracy"] >= 0
        return result.model

    owned = server_data.Sample(samples=12)
    plain = Dataset("mapped", (floats, y), (floats[:20], y[:20]))
    from_disk, from_memory = (
        vector(federate(held, clients=4, server=owned, seed=1)) for held in (mapped, plain)
    )
    assert torch.equal(from_disk, from_memory)


def test_arrays_that_cannot_stay_on_disk(tmp_path: Path) -> None:
    def complaint(folder: Path) -> str:
        with pytest.raises(InputError) as raised:
            data.from_npy(folder)
        assert "\n" not in str(raised.value)
        return str(raised.value)

    folder = tmp_path / "mapped"
    assert complaint(folder) == (
        f"{folder} holds no arrays; expected x_train and y_train, or train_images and train_labels"
    )
    file = write(folder, PIXELS.astype(np.float64)) / "x_train.npy"
    says = f"{file} must hold float32 or bytes in C order, not float64; save it again"
    assert complaint(folder) == says
    write(folder, np.asfortranarray(PIXELS))
    assert "not uint8 in Fortran order; save it again" in complaint(folder)
    write(folder, PIXELS.transpose(0, 2, 3, 1).copy())
    assert complaint(folder) == f"{file}: save the channels first, as the model takes them"
    write(folder, y=LABELS[:5])
    assert "mapped (train): 60 inputs but 5 targets" in complaint(folder)
    write(folder, y=LABELS - 1)
    assert "label -1; labels count from 0" in complaint(folder)
    whole = (write(folder) / "x_train.npy").read_bytes()
    for content in (b"", b"junk", whole[:50], whole[:-100]):
        file.write_bytes(content)
        assert complaint(folder).startswith(f"{file} cannot be read as an .npy array")


LARGE = """
import resource, sys
import numpy as np
from bellwether import data, federate, server_data

found = data.from_npy(sys.argv[1])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
federation = federate(found, clients=20_000, server=server_data.Sample(samples=50))
sizes = {federation.client(client).size for client in (0, 10_000, 19_999)}
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print(found.train.inputs.nbytes // 2**30, sizes, grown // 1024)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs files with holes, and Linux's counts")
def test_inputs_larger_than_memory(tmp_path: Path) -> None:
    folder = write(tmp_path / "large", PIXELS[:1], np.arange(1_000_000) % 10)
    try:
        hollow = np.lib.format.open_memmap(
            folder / "x_train.npy", "w+", np.uint8, (1_000_000, 1, 1024, 1024)
        )
    except OSError as error:
        pytest.skip(f"this file system takes no file of a terabyte: {error}")
    del hollow
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", LARGE, str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    gigabytes, sizes, megabytes = ran.stdout.split()
    assert int(gigabytes) > 900
    assert sizes == "{49}"
    assert int(megabytes) < 1000  # a share has 49
