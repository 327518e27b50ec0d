"""The data sets that `load` knows: their classes, their pixels, the names of their files."""

from dataclasses import dataclass, replace
from pathlib import Path

from bellwether.core.errors import unknown
from bellwether.data import classes, repositories
from bellwether.data.repositories import Repository


@dataclass(frozen=True)
class Batches:
    """CIFAR's files: pickled batches, or binary ones of records of labels and then pixels."""

    train: tuple[str, ...]
    test: tuple[str, ...]
    """Without the ending .bin of the binary files."""
    key: str
    """Of the labels in a pickled batch."""
    labels: int = 1
    """How many labels begin a binary record."""
    position: int = 0
    """Which of them it is."""


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
    """How people name the data set's folder; none for data that need no files of their own."""
    idx: tuple[str, ...] = ()
    """How the names of the IDX files begin: training, test."""
    batches: Batches | None = None
    """CIFAR's files, for a data set that comes in them."""
    planes: tuple[str, ...] = ()
    """How the names of STL-10's binary files begin: training, test."""
    synsets: bool = False
    """Whether its images come in Tiny ImageNet's folders, one for each of WordNet's numbers."""
    parquet: bool = True
    """Whether Parquet files in the folder are sure to be this data set."""
    label_columns: tuple[str, ...] = ("label", "fine_label", "labels")
    """How the column of labels in Parquet files may be named."""
    system_folder: Path | None = None
    """Where a system package installs the files."""
    transposed_release: int | None = None
    """The number of training images of the release that stores its images transposed."""
    made_of: str | None = None
    """The data set whose files it is made of."""
    relabelled: tuple[int | None, ...] = ()
    """The label here of each class there; None: left out."""
    hub: Repository | None = None
    """What `get` downloads."""
    counts: tuple[int, int] = (0, 0)
    """Training and test images as published."""
    origin: str = ""
    """Whose work it is, and under which terms."""


_EMNIST = Entry(
    description="handwritten digits and letters in 47 unbalanced classes, 1x28x28",
    classes=classes.CHARACTERS,
    shape=(1, 28, 28),
    mean=(0.1736,),
    deviation=(0.3317,),
    folders=("emnist-bymerge", "emnist_bymerge", "emnist", "EMNIST"),
    idx=("emnist-bymerge-train", "emnist-bymerge-test"),
    parquet=False,  # six splits of EMNIST share the folder's name, and theirs don't tell which
    transposed_release=697_932,  # Cohen et al. 2017; other splits of it are stored upright
    counts=(697_932, 116_323),
    origin="Cohen, Afshar, Tapson and van Schaik 2017, from NIST Special Database 19",
)
_EMNIST_BALANCED = replace(
    _EMNIST,
    description="131,600 handwritten digits and letters in 47 balanced classes, 1x28x28",
    mean=(0.1751,),
    deviation=(0.3332,),
    folders=("emnist-balanced", "emnist_balanced", "emnist", "EMNIST"),
    idx=("emnist-balanced-train", "emnist-balanced-test"),
    transposed_release=112_800,
    counts=(112_800, 18_800),
)
_CIFAR10 = Entry(
    description="60,000 colour photographs of animals and vehicles, 3x32x32",
    classes=classes.CIFAR10,
    shape=(3, 32, 32),
    mean=(0.4914, 0.4822, 0.4465),
    deviation=(0.2470, 0.2435, 0.2616),
    folders=("cifar10", "cifar-10", "CIFAR10", "cifar-10-batches-py", "cifar-10-batches-bin"),
    batches=Batches(tuple(f"data_batch_{i}" for i in range(1, 6)), ("test_batch",), "labels"),
    counts=(50_000, 10_000),
    hub=repositories.CIFAR10,
    origin="Krizhevsky 2009, who states no licence",
)
_CIFAR100 = Entry(
    description="60,000 colour photographs in 100 classes, 3x32x32",
    classes=classes.CIFAR100,
    shape=(3, 32, 32),
    mean=(0.5071, 0.4865, 0.4409),
    deviation=(0.2673, 0.2564, 0.2762),
    folders=("cifar100", "cifar-100", "CIFAR100", "cifar-100-python", "cifar-100-binary"),
    batches=Batches(("train",), ("test",), "fine_labels", labels=2, position=1),
    label_columns=("fine_label", "label"),
    counts=(50_000, 10_000),
    hub=repositories.CIFAR100,
    origin="Krizhevsky 2009, who states no licence",
)

CATALOGUE = {
    "digits": Entry(
        description="1,797 handwritten digits, 1x8x8, embedded: needs no files",
        classes=classes.DIGITS,
        shape=(1, 8, 8),
        mean=(0.3051,),
        deviation=(0.3762,),
        white=16,
        counts=(1_442, 355),
        origin="Alpaydin and Kaynak, UCI, as distributed with scikit-learn; CC BY 4.0",
    ),
    "mnist": Entry(
        description="70,000 handwritten digits, 1x28x28",
        classes=classes.DIGITS,
        shape=(1, 28, 28),
        mean=(0.1307,),
        deviation=(0.3081,),
        folders=("mnist", "MNIST"),
        idx=("train", "t10k"),
        counts=(60_000, 10_000),
        hub=repositories.MNIST,
        origin="LeCun, Cortes and Burges, who state no licence",
    ),
    "fashion-mnist": Entry(
        description="70,000 pictures of clothes, 1x28x28",
        classes=classes.CLOTHES,
        shape=(1, 28, 28),
        mean=(0.2860,),
        deviation=(0.3530,),
        folders=("fashion-mnist", "fashion_mnist", "FashionMNIST"),
        idx=("train", "t10k"),
        system_folder=Path("/usr/share/dataset-fashion-mnist"),  # Debian: dataset-fashion-mnist
        counts=(60_000, 10_000),
        hub=repositories.FASHION_MNIST,
        origin="Xiao, Rasul and Vollgraf 2017, Zalando SE; MIT",
    ),
    "emnist-bymerge": _EMNIST,
    "emnist-balanced": _EMNIST_BALANCED,
    "cursive": replace(
        _EMNIST_BALANCED,  # whose constants it shares, to stand beside it
        description="EMNIST's 47 characters rendered in an installed cursive font, 1x28x28",
        folders=(),
        idx=(),
        transposed_release=None,
        counts=(705, 0),
        origin="rendered on this machine",
    ),
    "cifar10": _CIFAR10,
    "cifar100": _CIFAR100,
    "cifar100-coarse": replace(
        _CIFAR100,
        description="CIFAR-100's photographs in their 20 superclasses, 3x32x32",
        classes=classes.CIFAR100_COARSE,
        batches=Batches(("train",), ("test",), "coarse_labels", labels=2, position=0),
        label_columns=("coarse_label",),
    ),
    "stl10": Entry(
        description="13,000 colour photographs of animals and vehicles, 3x96x96",
        classes=classes.STL10,
        shape=(3, 96, 96),
        mean=(0.4467, 0.4398, 0.4066),
        deviation=(0.2603, 0.2566, 0.2713),
        folders=("stl10", "stl-10", "STL10", "stl10_binary"),
        planes=("train", "test"),
        counts=(5_000, 8_000),
        hub=repositories.STL10,
        origin="Coates, Lee and Ng 2011, from ImageNet",
    ),
    "stl10-as-cifar10": replace(
        _CIFAR10,  # its constants too: what means the same must look the same
        description="STL-10's photographs under CIFAR-10's labels (no frogs), 3x32x32",
        folders=(),
        batches=None,
        made_of="stl10",
        relabelled=classes.STL10_AS_CIFAR10,
        counts=(4_500, 7_200),
        hub=repositories.STL10,
        origin="Coates, Lee and Ng 2011, from ImageNet",
    ),
    "tiny-imagenet": Entry(
        description="110,000 colour photographs in 200 classes, 3x64x64",
        classes=classes.TINY_IMAGENET,
        shape=(3, 64, 64),
        mean=(0.4802, 0.4481, 0.3975),
        deviation=(0.2770, 0.2691, 0.2821),
        folders=("tiny-imagenet", "tiny_imagenet", "TinyImageNet", "tiny-imagenet-200"),
        synsets=True,
        counts=(100_000, 10_000),
        hub=repositories.TINY_IMAGENET,
        origin="Stanford's course CS231n, from ImageNet",
    ),
}


def entry_of(name: str) -> Entry:
    """The data set of this name."""
    if name not in CATALOGUE:
        raise unknown("data set", name, CATALOGUE)
    return CATALOGUE[name]


def names() -> dict[str, str]:
    """The data sets that `load` knows, each with a line that describes it."""
    return {name: entry.description for name, entry in CATALOGUE.items()}
