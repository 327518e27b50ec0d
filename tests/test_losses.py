"""FedBCGD's two losses by hand, far from 0, with their L2 term, and down to their optimum."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from bellwether import SGD, FedAvg, FedBCGD, FedBCGDPlus, Federation, data, federate, models, train
from bellwether.core.dataset import Dataset, Samples
from bellwether.core.errors import InputError
from bellwether.core.evaluation import evaluate
from bellwether.core.workspace import CHUNK, Loss, Workspace
from bellwether.models.losses import Regularised, logistic, sigmoid

D, L2 = 5, 0.03


def problem(seed: int, n: int) -> tuple[Tensor, Tensor]:
    """Rows a_i and labels 0 and 1, of no separable kind."""
    draw = torch.Generator().manual_seed(seed)
    rows = torch.randn(n, D, generator=draw, dtype=torch.float64)
    noise = torch.randn(n, generator=draw, dtype=torch.float64)
    return rows, (rows[:, 0] + seed % 3 - 1 + noise > 0).long()


def linear() -> torch.nn.Module:
    return models.logistic_regression(D, classes=1, bias=False).double()


def by_hand(loss: Loss, a: np.ndarray, b: np.ndarray, x: np.ndarray) -> tuple[float, np.ndarray]:
    """f(x) and its gradient as FedBCGD's eq. 129 and 130 say, in NumPy, without L2."""
    wrong = 1 / (1 + np.exp(b * (a @ x)))
    if loss is logistic:
        return np.mean(np.log(1 + np.exp(-b * (a @ x)))), -(b * wrong) @ a / len(b)
    return np.mean(wrong), -(b * wrong * (1 - wrong)) @ a / len(b)


@pytest.mark.parametrize("loss", [logistic, sigmoid])
@pytest.mark.parametrize(("n", "chunk"), [(40, None), (40, 7), (CHUNK + 100, None)])
def test_value_and_gradient_by_hand(loss: Loss, n: int, chunk: int | None) -> None:
    a, labels = problem(1, n)
    b = 2.0 * labels.numpy() - 1
    space = Workspace(linear(), Regularised(loss, L2))
    x = torch.linspace(-1, 2, D, dtype=torch.float64)
    space.load(x, space.buffers)
    value, gradient = by_hand(loss, a.numpy(), b, x.numpy())
    got = space.mean_gradient(Samples(a, labels), chunk)
    np.testing.assert_allclose(got, gradient + L2 * x.numpy(), rtol=1e-10)
    evaluated = evaluate(space, Samples(a, labels), x, space.buffers)["loss"]
    np.testing.assert_allclose(evaluated, value + L2 / 2 * float(x @ x), rtol=1e-12)


@pytest.mark.parametrize("loss", [logistic, sigmoid])
def test_gradcheck(loss: Loss) -> None:
    draw = torch.Generator().manual_seed(0)
    outputs = torch.randn(6, 1, generator=draw, dtype=torch.float64, requires_grad=True)
    targets = torch.tensor([0, 1, 1, 0, 1, 0])
    assert torch.autograd.gradcheck(lambda z: loss(z, targets), (outputs,))
    assert torch.autograd.gradgradcheck(lambda z: loss(z, targets), (outputs,))


@settings(deadline=None)
@given(margin=st.floats(-3e4, 3e4), dtype=st.sampled_from([torch.float32, torch.float64]))
def test_far_from_0(margin: float, dtype: torch.dtype) -> None:
    """Against logaddexp in float64: small values keep their digits, large ones are finite."""
    z = torch.tensor([margin], dtype=dtype, requires_grad=True)
    exact, eps = z.item(), torch.finfo(dtype).eps
    tiny = torch.finfo(dtype).smallest_normal
    wanted = float(np.logaddexp(0.0, -exact))
    loss = logistic(z, torch.ones(1))
    loss.backward()
    assert loss.item() == pytest.approx(wanted, rel=8 * eps, abs=tiny)
    assert z.grad is not None
    assert z.grad.item() == pytest.approx(-np.exp(-np.logaddexp(0.0, exact)), rel=1e-5, abs=tiny)
    wrong = sigmoid(z.detach(), torch.ones(1)).item()
    assert wrong == pytest.approx(np.exp(-np.logaddexp(0.0, exact)), rel=1e-5, abs=tiny)
    mirrored = sigmoid(z.detach(), -torch.ones(1)).item()
    assert wrong + mirrored == pytest.approx(1, rel=4 * eps)


@pytest.mark.parametrize("loss", [logistic, sigmoid])
def test_labels_are_0_and_1_or_signs(loss: Loss) -> None:
    z, labels = torch.randn(8, 1), torch.tensor([0, 1, 0, 1, 1, 1, 0, 0])
    signs = 2.0 * labels - 1
    assert torch.equal(loss(z, labels), loss(z, signs))
    assert torch.equal(loss(z, labels), loss(z[:, 0], signs))
    assert loss(z, labels) != loss(z, 1 - labels)
    assert loss(signs * 30, labels) < 1e-9


CLIENTS = [problem(i, 10 + 4 * i) for i in range(4)]


@pytest.mark.parametrize("loss", [logistic, sigmoid])
@pytest.mark.parametrize("method", [FedBCGD, FedBCGDPlus])
def test_where_fedbcgd_comes_to_rest(loss: Loss, method: type[FedBCGD]) -> None:
    """FedBCGD+ at a stationary point of the mean of all clients' regularised losses."""
    l2 = 0.2
    algorithm = method(SGD(lr=0.4, steps=4), blocks=2, momentum=0.0)
    federation = Federation.from_arrays(CLIENTS)
    x = train(algorithm, federation, linear, 120, loss=Regularised(loss, l2)).model.numpy()
    slopes = [by_hand(loss, a.numpy(), 2.0 * y.numpy() - 1, x)[1] + l2 * x for a, y in CLIENTS]
    norm = np.linalg.norm(np.mean(slopes, axis=0))
    assert np.linalg.norm(slopes[0]) > 1e-2  # the clients disagree
    assert norm < 1e-10 if method is FedBCGDPlus else norm > 1e-4


def test_weight_decay_takes_the_same_steps_but_is_no_part_of_the_loss() -> None:
    federation = Federation.from_arrays(CLIENTS, test=problem(9, 30))
    kept = {"lr": 0.2, "epochs": 2, "batch_size": 4}
    decayed = train(FedAvg(SGD(**kept, weight_decay=L2)), federation, linear, 3, loss=logistic)
    inside = train(FedAvg(SGD(**kept)), federation, linear, 3, loss=Regularised(logistic, L2))
    assert torch.equal(decayed.model, inside.model)
    term = L2 / 2 * float(inside.model @ inside.model)
    losses = [result.history[-1].metrics["loss"] for result in (decayed, inside)]
    assert losses[1] - losses[0] == pytest.approx(term)
    assert "accuracy" in inside.history[-1].metrics


def test_the_first_digit_against_the_rest() -> None:
    digits = data.load("digits")
    zeros = data.one_against_rest(digits)
    assert zeros.classes == ("rest", "0")
    assert zeros.test is not None
    assert zeros.train.targets.sum() == (digits.train.targets == 0).sum()
    assert zeros.test.targets.sum() == (digits.test.targets == 0).sum()
    result = train(
        FedBCGD(SGD(lr=0.1, epochs=1, batch_size=20), blocks=5, momentum=0.5),
        federate(zeros, clients=10),
        lambda: models.logistic_regression(64, classes=1),
        5,
        loss=Regularised(logistic, 1e-4),
    )
    assert result.history[-1].metrics["accuracy"] > 0.97  # 0.9 is all "rest"


def test_mistakes() -> None:
    with pytest.raises(InputError, match=r"Regularised\(l2=-1\): must be a finite number, 0 or"):
        Regularised(logistic, -1)
    with pytest.raises(InputError, match=r"Regularised\(loss='hinge'\): must be a loss"):
        Regularised("hinge", 1.0)  # type: ignore[arg-type]
    values = Dataset("values", Samples(torch.zeros(2, 1), torch.zeros(2)))
    for dataset, label in ((data.load("digits"), 10), (values, 0)):
        with pytest.raises(
            InputError, match=f"no training sample of .* has the class label {label}"
        ):
            data.one_against_rest(dataset, label)
