"""Nested dataclasses, dicts and tuples as their vectors and plain values by path, and back."""

import dataclasses
from typing import Any

from torch import Tensor


def flatten(value: Any, name: str = "") -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The vectors and the plain values of nested dataclasses, dicts and tuples, by path."""
    if isinstance(value, Tensor):
        return {name: value.detach().cpu().contiguous().clone()}, {}
    children = _children(value)
    if children is None:
        return {}, {name: value}
    tensors: dict[str, Tensor] = {}
    numbers: dict[str, Any] = {}
    for key, child in children.items():
        more_tensors, more_numbers = flatten(child, f"{name}/{key}" if name else key)
        tensors |= more_tensors
        numbers |= more_numbers
    return tensors, numbers


def rebuild(like: Any, name: str, tensors: dict[str, Tensor], numbers: dict[str, Any]) -> Any:
    """A value of the same shape as `like` with the vectors and numbers found under its path."""
    if isinstance(like, Tensor):
        return tensors[name].to(like.device)
    children = _children(like)
    if children is None:
        return numbers[name]
    values = {k: rebuild(v, f"{name}/{k}", tensors, numbers) for k, v in children.items()}
    if dataclasses.is_dataclass(like) and not isinstance(like, type):
        return dataclasses.replace(like, **values)
    return values if isinstance(like, dict) else type(like)(values.values())


def _children(value: Any) -> dict[str, Any] | None:
    if dataclasses.is_dataclass(value):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(k): v for k, v in value.items()}
    if isinstance(value, tuple | list):
        return {str(i): v for i, v in enumerate(value)}
    return None
