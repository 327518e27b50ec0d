"""Samples at the boundary: what is taken, what is refused, and how they lie in memory."""

import datetime
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bellwether.core.dataset import ALIGNMENT, Dataset, samples
from bellwether.core.errors import InputError


def read_only(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    "inputs",
    [
        [[0, 1], [2, 3], [4, 5]],
        ((0, 1.0), (2, 3), (4, 5)),
        np.arange(6, dtype=np.float16).reshape(3, 2),
        np.arange(6, dtype=">f4").reshape(3, 2),
        np.arange(5, -1, -1, dtype=np.uint8)[::-1].reshape(3, 2),
        np.array([[0, 9, 1, 9], [2, 9, 3, 9], [4, 9, 5, 9]])[:, ::2],
        np.asfortranarray(np.arange(6.0).reshape(3, 2)),
        read_only(np.arange(6.0).reshape(3, 2)),
        torch.arange(6.0).reshape(3, 2).requires_grad_(),
        torch.tensor([[0, 2, 4], [1, 3, 5]]).T,
    ],
)
def test_lists_arrays_and_tensors_become_tensors(inputs):
    held = samples(inputs, [0, 1, 1], "client 3")
    assert held.inputs.tolist() == [[0, 1], [2, 3], [4, 5]]
    assert held.inputs.is_contiguous()
    assert not held.inputs.requires_grad
    assert held.size == 3


@pytest.mark.parametrize(
    "targets",
    [
        [0, 1],
        (False, True),
        np.array([0, 1], np.int8),
        np.array([0, 1], np.uint64),
        torch.tensor([0, 1], dtype=torch.int32),
    ],
)
def test_labels_are_whole_numbers_of_64_bits(targets):
    held = samples([[0.0], [1.0]], targets, "client 3")
    assert held.targets.dtype == torch.int64
    assert held.targets.tolist() == [0, 1]
    assert held.labelled


def test_values_to_regress_keep_their_precision():
    held = samples([[0.0], [1.0]], np.array([0.1, 0.2]), "client 3")
    assert not held.labelled
    assert held.targets.dtype == torch.float64
    assert held.targets.tolist() == [0.1, 0.2]


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 20), st.integers(0, 40), st.integers(0, 40))
def test_data_begin_on_aligned_addresses(count, skip_inputs, skip_targets):
    inputs = torch.arange(100.0)[skip_inputs : skip_inputs + count]
    targets = np.arange(100)[skip_targets : skip_targets + count]
    held = samples(inputs, targets, "client 3")
    for tensor, given_values in zip(held, (inputs, targets), strict=True):
        assert tensor.data_ptr() % ALIGNMENT == 0
        assert tensor.tolist() == given_values.tolist()


def test_taken_samples_are_a_private_copy():
    held = samples(torch.arange(12.0).reshape(4, 3), torch.arange(4), "client 3")
    mine = held.take(torch.tensor([3, 1, 1]))
    assert mine.inputs.tolist() == [[9, 10, 11], [3, 4, 5], [3, 4, 5]]
    assert mine.targets.tolist() == [3, 1, 1]
    assert mine.inputs.data_ptr() % ALIGNMENT == mine.targets.data_ptr() % ALIGNMENT == 0
    mine.inputs.zero_()
    assert held.inputs.sum() == 66


@pytest.mark.parametrize(
    ("inputs", "targets", "message"),
    [
        ([1.0, 2.0], [0], "client 3: 2 inputs but 1 targets; they must have the same length"),
        ([], [], "client 3 has no samples"),
        (torch.tensor(1.0), torch.tensor(1), "client 3: .* first axis that counts samples"),
        (["a", "b"], [0, 1], "client 3: inputs must be numbers"),
        ([1.0, 2.0], ["cat", "dog"], "client 3: targets must be numbers"),
        (None, [0], "client 3: inputs must be numbers"),
        ([{"pixel": 1}], [0], "client 3: inputs must be numbers"),
        ([datetime.datetime(2024, 1, 1)], [0], "client 3: inputs must be numbers"),
        (np.zeros(1, "datetime64[s]"), [0], "client 3: inputs must be numbers"),
        (np.zeros(1, [("pixel", "f4")]), [0], "client 3: inputs must be numbers"),
    ],
)
def test_what_is_refused(inputs: Any, targets: Any, message: str):
    with pytest.raises(InputError, match=message):
        samples(inputs, targets, "client 3")


@pytest.mark.parametrize("scalar", [1.0, 1, np.float32(1), np.array(1.0)])
def test_numbers_without_an_axis_are_refused(scalar):
    with pytest.raises(InputError, match=r"client 3: .* first axis that counts samples"):
        samples(scalar, scalar, "client 3")


def test_rows_of_unequal_length_are_refused():
    with pytest.raises(InputError, match="client 3: inputs"):
        samples([[1.0], [1.0, 2.0]], [0, 1], "client 3")


def test_complex_numbers_are_refused():
    with pytest.raises(InputError, match="client 3: targets"):
        samples([[1.0], [2.0]], np.ones(2, np.complex64), "client 3")


def test_a_dataset_checks_its_parts_and_names_them():
    data = Dataset("toy", ([[1.0]], [0]), ([[2.0], [3.0]], [0, 1]), ("no", "yes"))
    assert (data.train.size, data.test.size, data.source) == (1, 2, "memory")
    with pytest.raises(InputError, match=r"toy \(test\): 1 inputs but 2 targets"):
        Dataset("toy", ([[1.0]], [0]), ([[2.0]], [0, 1]))
    with pytest.raises(InputError, match=r"toy \(train\) has no samples"):
        Dataset("toy", ([], []), ([[2.0]], [0]))
