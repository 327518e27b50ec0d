"""Where samples come from: data sets known by name, and users' own files and data sets."""

from bellwether.data.arrays import from_npy, from_npz
from bellwether.data.catalogue import names
from bellwether.data.download import get
from bellwether.data.image_folder import from_image_folder
from bellwether.data.loader import find, load
from bellwether.data.relabel import one_against_rest
from bellwether.data.torch_dataset import from_torch

__all__ = [
    "find",
    "from_image_folder",
    "from_npy",
    "from_npz",
    "from_torch",
    "get",
    "load",
    "names",
    "one_against_rest",
]
