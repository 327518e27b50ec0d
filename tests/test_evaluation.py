"""Loss and accuracy against numbers computed by hand, and the check before the first round."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional

from bellwether.core.dataset import Samples
from bellwether.core.errors import InputError
from bellwether.core.evaluation import CHUNK, check_fit, evaluate, predictions
from bellwether.core.workspace import Loss, Workspace, default_loss, squared_error


class Outputs(nn.Module):
    """A model whose outputs are its inputs: the test says what it answers."""

    def __init__(self, shape: tuple[int, ...] = ()) -> None:
        super().__init__()
        self.precision = nn.Parameter(torch.zeros(()))
        self.shape = shape

    def forward(self, x: Tensor) -> Tensor:
        return x.reshape(len(x), *self.shape) if self.shape else x


class Pair(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return x, x


def binary_loss(outputs: Tensor, targets: Tensor) -> Tensor:
    return functional.binary_cross_entropy_with_logits(
        outputs.reshape(targets.shape), targets.to(outputs.dtype)
    )


def number(outputs: Tensor, targets: Tensor) -> float:
    return 1.0


def by_sample(outputs: Tensor, targets: Tensor) -> Tensor:
    return functional.cross_entropy(outputs, targets, reduction="none")


def score(data: Samples, loss: Loss | None = None, model: nn.Module | None = None) -> dict:
    space = Workspace((model or Outputs()).double(), loss or default_loss(data))
    return evaluate(space, space.admit(data), space.parameters.clone(), space.read_buffers())


def test_classes_by_hand():
    """Logits (0, log 3): probabilities 1/4 and 3/4."""
    logits = torch.tensor([[0, math.log(3)]] * 3 + [[math.log(3), 0]], dtype=torch.float64)
    metrics = score(Samples(logits, torch.tensor([1, 1, 0, 1])))
    expected = (2 * math.log(4 / 3) + 2 * math.log(4)) / 4
    assert metrics == {"loss": pytest.approx(expected, abs=1e-15), "accuracy": 0.5}


@settings(deadline=None, max_examples=15)
@given(st.integers(1, 2 * CHUNK + 7), st.integers(2, 5), st.integers(0, 99))
def test_pieces_of_any_size_count_by_their_samples(count, classes, seed):
    draw = torch.Generator().manual_seed(seed)
    logits = torch.randn(count, classes, generator=draw, dtype=torch.float64)
    labels = torch.randint(classes, (count,), generator=draw)
    metrics = score(Samples(logits, labels))
    by_label = logits.log_softmax(1)[torch.arange(count), labels]
    pairs = zip(logits.tolist(), labels.tolist(), strict=True)
    right = sum(row.index(max(row)) == label for row, label in pairs)
    assert metrics["loss"] == pytest.approx(-by_label.mean().item(), abs=1e-12)
    assert metrics["accuracy"] == right / count


@pytest.mark.parametrize("shape", [(), (1,)])
def test_one_logit_means_two_classes(shape):
    logits = torch.tensor([2.0, -1.0, 0.5, -3.0], dtype=torch.float64)
    data = Samples(logits.reshape(4, *shape), torch.tensor([1, 0, 0, 1]))
    expected = sum(math.log1p(math.exp(z)) for z in (-2.0, -1.0, 0.5, 3.0)) / 4
    metrics = score(data, binary_loss)
    assert metrics == {"loss": pytest.approx(expected, abs=1e-15), "accuracy": 0.5}


def test_sequences_count_every_place():
    """Outputs [n, classes, T] with targets [n, T]."""
    labels = torch.tensor([[0, 2, 1], [1, 1, 0]])
    logits = 5.0 * functional.one_hot(labels, 3).permute(0, 2, 1).double()
    wrong = labels.clone()
    wrong[0, 1] = 0
    metrics = score(Samples(logits, wrong))
    right = math.log(1 + 2 * math.exp(-5))  # the loss of a right place; a wrong one has 5 more
    assert metrics["accuracy"] == 5 / 6
    assert metrics["loss"] == pytest.approx((5 * right + right + 5) / 6, abs=1e-14)
    binary = Samples(torch.tensor([[[1.0, -1.0]], [[2.0, 3.0]]]), torch.tensor([[1, 0], [1, 0]]))
    assert score(binary, binary_loss)["accuracy"] == 3 / 4
    assert predictions(binary.inputs, binary.targets).tolist() == [[1, 0], [1, 1]]


def test_values_have_a_loss_and_no_accuracy():
    data = Samples(torch.tensor([[1.0], [2.0], [4.0]]), torch.tensor([1.5, 2.0, 3.0]))
    assert score(data) == {"loss": pytest.approx((0.25 + 1) / 3)}


def test_evaluation_uses_the_given_statistics_and_changes_nothing():
    data = Samples(torch.tensor([[1.0, 5.0], [3.0, 7.0]]), torch.tensor([[0.0, 1.0], [1.0, 2.0]]))
    space = Workspace(nn.BatchNorm1d(2, eps=0.0), squared_error)
    buffers = torch.tensor([1.0, 5.0, 4.0, 4.0])  # means, then variances: (x - mean) / 2
    x = space.parameters.clone()
    assert evaluate(space, data, x, buffers)["loss"] == pytest.approx((0 + 1 + 0 + 1) / 4)
    assert torch.equal(space.read_buffers(), buffers)
    assert torch.equal(space.parameters, x)
    space.load(x, buffers)
    assert space.module.training


@pytest.mark.parametrize(
    ("model", "loss", "targets", "classes"),
    [
        (nn.Linear(4, 3), None, torch.tensor([0, 2, 1]), 3),
        (nn.Linear(4, 9), None, torch.tensor([0, 2, 1]), 3),
        (nn.Linear(4, 3), None, torch.tensor([0, 2, 1]), None),
        (nn.Linear(4, 1), binary_loss, torch.tensor([0, 1, 1]), None),
        (nn.Linear(4, 1), None, torch.tensor([0.5, 1.5, 2.5]), None),
        (Outputs((2, 2)), None, torch.tensor([[0, 1], [1, 1], [0, 0]]), 2),
    ],
)
def test_what_fits_passes(model, loss, targets, classes):
    data = Samples(torch.ones(3, 4), targets)
    check_fit(Workspace(model, loss or default_loss(data)), data, classes)


@pytest.mark.parametrize(
    ("model", "loss", "targets", "classes", "message"),
    [
        (nn.Linear(5, 3), None, [0, 2, 1], 3, r"inputs of shape \(4,\) and type torch.float32: Ru"),
        (nn.Linear(4, 2), None, [0, 2, 1], 3, "up to 2 but the model has 2 outputs; give it 3"),
        (nn.Linear(4, 1), None, [0, 2, 1], 3, "up to 2 but the model has 1 output; give it 3"),
        (nn.Linear(4, 3), squared_error, [0, 2, 1], 3, r"outputs of shape \(2, 3\) with targets"),
        (nn.Linear(4, 2), None, [0.5, 1.5, 2.5], None, r"outputs of shape \(2, 2\) with targets"),
        (nn.Linear(4, 3), by_sample, [0, 2, 1], 3, r"must be one number.* not shape \(2,\)"),
    ],
)
def test_what_does_not_fit_is_said_in_one_line(model, loss, targets, classes, message):
    data = Samples(torch.ones(3, 4), torch.tensor(targets))
    with pytest.raises(InputError, match=message) as caught:
        check_fit(Workspace(model, loss or default_loss(data)), data, classes)
    assert "\n" not in str(caught.value)


def test_a_model_that_gives_no_tensor_does_not_fit():
    data = Samples(torch.ones(3, 4), torch.tensor([0, 2, 1]))
    with pytest.raises(InputError, match="tuple"):
        check_fit(Workspace(Pair(), default_loss(data)), data, 3)


def test_a_loss_that_gives_no_tensor_does_not_fit():
    data = Samples(torch.ones(3, 4), torch.tensor([0, 2, 1]))
    with pytest.raises(InputError, match="loss"):
        check_fit(Workspace(nn.Linear(4, 3), number), data, 3)


def test_one_output_is_too_few_for_cross_entropy_even_if_the_first_labels_are_zero():
    data = Samples(torch.ones(3, 4), torch.tensor([0, 0, 1]))
    with pytest.raises(InputError):
        check_fit(Workspace(nn.Linear(4, 1), default_loss(data)), data, 2)
