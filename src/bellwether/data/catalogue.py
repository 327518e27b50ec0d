"""The data sets that `load` knows: their classes, their pixels, the names of their files."""

from dataclasses import dataclass
from pathlib import Path

DIGITS = tuple("0123456789")


@dataclass(frozen=True)
class Entry:
    """What is known of a data set before a file of it is seen."""

    description: str
    classes: tuple[str, ...]
    shape: tuple[int, int, int]
    """Channels, height, width."""
    mean: tuple[float, ...]
    """Of the training pixels divided by `white`, a number a channel."""
    deviation: tuple[float, ...]
    """Their standard deviation."""
    white: int = 255
    """The largest value of a pixel."""
    folders: tuple[str, ...] = ()
    """How people name the data set's folder; none for embedded data."""
    idx: tuple[str, ...] = ()
    """How the names of the IDX files begin: training, test."""
    parquet: bool = True
    """Whether Parquet files in the folder are sure to be this data set."""
    system_folder: Path | None = None
    """Where a system package installs the files."""
    transposed_release: int | None = None
    """The number of training images of the release that stores its images transposed."""


CATALOGUE = {
    "digits": Entry(
        description="1,797 handwritten digits, 1x8x8, embedded: needs no files",
        classes=DIGITS,
        shape=(1, 8, 8),
        mean=(0.3051,),
        deviation=(0.3762,),
        white=16,
    ),
    "mnist": Entry(
        description="70,000 handwritten digits, 1x28x28",
        classes=DIGITS,
        shape=(1, 28, 28),
        mean=(0.1307,),
        deviation=(0.3081,),
        folders=("mnist", "MNIST"),
        idx=("train", "t10k"),
    ),
    "fashion-mnist": Entry(
        description="70,000 pictures of clothes, 1x28x28",
        classes=(
            "T-shirt/top",
            "Trouser",
            "Pullover",
            "Dress",
            "Coat",
            "Sandal",
            "Shirt",
            "Sneaker",
            "Bag",
            "Ankle boot",
        ),
        shape=(1, 28, 28),
        mean=(0.2860,),
        deviation=(0.3530,),
        folders=("fashion-mnist", "fashion_mnist", "FashionMNIST"),
        idx=("train", "t10k"),
        system_folder=Path("/usr/share/dataset-fashion-mnist"),  # Debian: dataset-fashion-mnist
    ),
    "emnist-bymerge": Entry(
        description="handwritten digits and letters in 47 unbalanced classes, 1x28x28",
        # Upper and lower case of C I J K L M O P S U V W X Y Z are one class.
        classes=tuple("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabdefghnqrt"),
        shape=(1, 28, 28),
        mean=(0.1736,),
        deviation=(0.3317,),
        folders=("emnist-bymerge", "emnist_bymerge", "emnist", "EMNIST"),
        idx=("emnist-bymerge-train", "emnist-bymerge-test"),
        parquet=False,  # six splits of EMNIST share the folder's name, and theirs don't tell which
        transposed_release=697_932,  # Cohen et al. 2017; other splits of it are stored upright
    ),
    "cifar10": Entry(
        description="60,000 colour photographs of animals and vehicles, 3x32x32",
        classes=(
            "airplane",
            "automobile",
            "bird",
            "cat",
            "deer",
            "dog",
            "frog",
            "horse",
            "ship",
            "truck",
        ),
        shape=(3, 32, 32),
        mean=(0.4914, 0.4822, 0.4465),
        deviation=(0.2470, 0.2435, 0.2616),
        folders=("cifar10", "cifar-10", "CIFAR10"),
    ),
}


def names() -> dict[str, str]:
    """The data sets that `load` knows, each with a line that describes it."""
    return {name: entry.description for name, entry in CATALOGUE.items()}
