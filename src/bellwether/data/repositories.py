"""Which repositories of the Hugging Face hub hold the data sets, and which of their files to get.

A revision is a commit, so the files stay the same; where a checksum is given, a download must have
it, otherwise that which the hub itself states for the file.
"""

from dataclasses import dataclass

TRAIN, TEST = "train-00000-of-00001.parquet", "test-00000-of-00001.parquet"


@dataclass(frozen=True)
class RemoteFile:
    """One file of a repository."""

    path: str
    """In the repository."""
    name: str
    """How it is called in the data set's folder, where `load` looks for train and test."""
    sha256: str | None = None


@dataclass(frozen=True)
class Repository:
    """The files of one data set."""

    name: str
    files: tuple[RemoteFile, ...]
    revision: str = "main"


MNIST = Repository(
    "ylecun/mnist",
    (
        RemoteFile(
            f"mnist/{TRAIN}",
            TRAIN,
            "f2c01285a9f89399335b00ee4e8d499dc4e46db5e39c74903ce5618d895eb3bf",
        ),
        RemoteFile(
            f"mnist/{TEST}",
            TEST,
            "d49fcf556ce25b002b302e318ce4a11098bbfe5d4499c3f35d7c72297c52374b",
        ),
    ),
    "77f3279092a1c1579b2250db8eafed0ad422088c",
)
FASHION_MNIST = Repository(
    "zalando-datasets/fashion_mnist",
    (RemoteFile(f"fashion_mnist/{TRAIN}", TRAIN), RemoteFile(f"fashion_mnist/{TEST}", TEST)),
)
CIFAR10 = Repository(
    "uoft-cs/cifar10",
    (
        RemoteFile(
            f"plain_text/{TRAIN}",
            TRAIN,
            "8428b53a88a11ac374111006708df51469e315a22ac6d66470afd9c78d2ae883",
        ),
        RemoteFile(
            f"plain_text/{TEST}",
            TEST,
            "841389e6f2d64f28bf17310e430aebac20ec3ba611a3c5e231dc93c645ce84de",
        ),
    ),
    "0b2714987fa478483af9968de7c934580d0bb9a2",
)
CIFAR100 = Repository(
    "uoft-cs/cifar100",
    (
        RemoteFile(
            f"cifar100/{TRAIN}",
            TRAIN,
            "694865d6b990e234804f01268586c41e88bcbbb75e20858432c05ad4081aca23",
        ),
        RemoteFile(
            f"cifar100/{TEST}",
            TEST,
            "98776c529bb146a9c791229df74a5cf076be9b43d82dbbd334b6a7788d73dc68",
        ),
    ),
    "aadb3af77e9048adbea6b47c21a81e47dd092ae5",
)
TINY_IMAGENET = Repository(
    "zh-plus/tiny-imagenet",
    (
        RemoteFile("data/train-00000-of-00001-1359597a978bc4fa.parquet", TRAIN),
        # The test images have no published labels, so everybody tests on the validation images.
        RemoteFile("data/valid-00000-of-00001-70d52db3c749a935.parquet", TEST),
    ),
)
STL10 = Repository(
    "tanganke/stl10",
    (
        RemoteFile(
            f"data/{TRAIN}",
            TRAIN,
            "b450f19e41454731be0bcddc7093fcf9793fe9b64ea795e6ef18ca77f34c353d",
        ),
        RemoteFile(
            f"data/{TEST}",
            TEST,
            "298b23e983c755dfba2c69dec181340221deb1a5ad6651990c7c5c559fb892be",
        ),
    ),
    "49ae7f94508f7feae62baf836db284306eab0b0f",
)
