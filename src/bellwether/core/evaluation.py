"""What a model can do: loss and accuracy on samples that nobody trains on."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from bellwether.core.dataset import Samples
from bellwether.core.errors import InputError
from bellwether.core.vector import Vector
from bellwether.core.workspace import Workspace

CHUNK = 500


class Score(NamedTuple):
    """What a model can do on a piece of the test samples."""

    loss: Tensor
    """The sum of the losses, in float64."""
    right: Tensor
    """How many labels it names."""


@dataclass(frozen=True)
class Evaluation:
    """A model that is to be evaluated, piece by piece."""

    model: Vector
    buffers: Vector


def evaluate(space: Workspace, data: Samples, x: Vector, buffers: Vector) -> dict[str, float]:
    """Mean loss and, for class labels, accuracy of the model x."""
    evaluation = Evaluation(x, buffers)
    return metrics(space, data, evaluation, scores(space, data, evaluation, range(count(data))))


def count(data: Samples) -> int:
    """How many pieces the samples are evaluated in."""
    return -(-data.size // CHUNK)


def scores(
    space: Workspace, data: Samples, evaluation: Evaluation, numbers: Iterable[int]
) -> list[Score]:
    """The scores of the pieces with these numbers."""
    space.load(evaluation.model, evaluation.buffers)
    space.module.eval()
    with torch.no_grad():
        return [
            _score(space, Samples(*(t[n * CHUNK : (n + 1) * CHUNK] for t in data))) for n in numbers
        ]


def metrics(
    space: Workspace, data: Samples, evaluation: Evaluation, scores: Iterable[Score]
) -> dict[str, float]:
    """The whole from the scores of all pieces, in their order."""
    loss, right = (sum(values) for values in zip(*scores, strict=True))
    found = {"loss": float(loss) / data.size + space.penalty(evaluation.model)}
    if data.labelled:
        found["accuracy"] = int(right) / data.targets.numel()
    return found


def _score(space: Workspace, piece: Samples) -> Score:
    piece = space.admit(piece)
    outputs = space.module(piece.inputs)
    loss = space.loss(outputs, piece.targets).double() * piece.size
    right = torch.zeros((), dtype=torch.int64, device=space.device)
    if piece.labelled:
        right = (predictions(outputs, piece.targets) == piece.targets).sum()
    return Score(loss, right)


def predictions(outputs: Tensor, targets: Tensor) -> Tensor:
    """The classes that outputs name: the largest of several, or the sign of one."""
    if outputs.shape == targets.shape:
        return (outputs > 0).to(targets.dtype)
    if outputs.ndim > 1 and outputs.shape[1] == 1:
        return (outputs.reshape(targets.shape) > 0).to(targets.dtype)
    return outputs.argmax(dim=1)


def check_fit(space: Workspace, data: Samples, classes: int | None) -> int:
    """How many outputs the model has; `InputError` unless it takes the inputs and they suit."""
    labels = data.targets.reshape(data.size, -1).amax(dim=1)
    sample = space.admit(data.take(torch.stack([labels.argmin(), labels.argmax()])))
    space.module.eval()
    with torch.no_grad():
        try:
            outputs = space.module(sample.inputs)
        except Exception as error:
            shape = tuple(data.inputs.shape[1:])
            raise InputError(
                f"the model cannot take inputs of shape {shape} and type {data.inputs.dtype}:"
                f" {_first_line(error)}"
            ) from error
        if not isinstance(outputs, Tensor):
            raise InputError(f"the model must give one tensor, not a {type(outputs).__name__}")
        width = outputs.shape[1] if outputs.ndim > 1 else 1
        if data.labelled and classes is not None and outputs.ndim > 1 and width < classes:
            has = f"{width} output{'s' if width > 1 else ''}"
            raise InputError(
                f"labels go up to {classes - 1} but the model has {has}; give it {classes}"
            )
        try:
            loss = space.loss(outputs, sample.targets)
        except Exception as error:
            raise InputError(
                f"the loss cannot compare outputs of shape {tuple(outputs.shape)} with targets of"
                f" shape {tuple(sample.targets.shape)}: {_first_line(error)}"
            ) from error
    if not isinstance(loss, Tensor):
        raise InputError(f"the loss must be a tensor of one number, not a {type(loss).__name__}")
    if loss.numel() != 1:
        raise InputError(
            f"the loss must be one number, the mean over the batch, not shape {tuple(loss.shape)}"
        )
    return width


def check_labels(data: Samples, outputs: int, owner: str) -> None:
    """Raise `InputError` for a label that the model has no output for."""
    largest = int(data.targets.max()) if data.labelled else -1
    if largest >= outputs:
        has = f"{outputs} output{'s' if outputs > 1 else ''}"
        raise InputError(
            f"{owner}: labels go up to {largest} but the model has {has}; give it {largest + 1}"
        )


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
