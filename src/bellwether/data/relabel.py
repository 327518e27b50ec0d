"""Data sets with other labels."""

from dataclasses import replace

from bellwether.core.dataset import Dataset, Samples
from bellwether.core.errors import InputError


def one_against_rest(dataset: Dataset, label: int = 0) -> Dataset:
    """Two classes: 1 where the label is this one, else 0 (FedBCGD's EMNIST: the first class)."""
    labels = dataset.train.class_labels
    if labels is None or label not in labels:
        raise InputError(f"no training sample of {dataset.name} has the class label {label}")
    name = dataset.classes[label] if label < len(dataset.classes) else str(label)

    def relabelled(samples: Samples) -> Samples:
        return Samples(samples.inputs, (samples.targets == label).long())

    return replace(
        dataset,
        name=f"{dataset.name}, {name} against the rest",
        train=relabelled(dataset.train),
        test=dataset.test and relabelled(dataset.test),
        classes=("rest", name),
    )
