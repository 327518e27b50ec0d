"""The digits that come with the package: real data for examples and tests, no download."""

import gzip
from importlib.resources import files

import numpy as np

from bellwether.data.part import Part

SOURCE = "embedded"


def read() -> tuple[Part, Part]:
    """1,442 training and 355 test images of 8x8 pixels, 0 to 16.

    From "Optical Recognition of Handwritten Digits" (Alpaydin and Kaynak, UCI), as distributed
    with scikit-learn. Every fifth sample of each class, in the order of the file, is a test
    sample: the split is stratified and the same everywhere.
    """
    with (
        files(__package__).joinpath("digits.csv.gz").open("rb") as file,
        gzip.open(file, "rt") as text,
    ):
        table = np.loadtxt(text, delimiter=",", dtype=np.uint8)
    images, labels = table[:, :-1].reshape(-1, 8, 8, 1), table[:, -1].astype(np.int64)
    test = np.zeros(len(labels), dtype=bool)
    for label in range(10):
        test[np.flatnonzero(labels == label)[4::5]] = True
    return Part(images[~test], labels[~test]), Part(images[test], labels[test])
