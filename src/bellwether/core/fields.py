"""The fields of messages, found once for each dataclass: `dataclasses.fields` is slow."""

import dataclasses
from typing import Any

Field = tuple[str, Any]
"""Name and default."""

_known: dict[Any, tuple[Field, ...]] = {}


def fields_of(schema: type[Any]) -> tuple[Field, ...]:
    """Name and default of each field."""
    found = _known.get(schema)
    if found is None:
        found = tuple((field.name, field.default) for field in dataclasses.fields(schema))
        _known[schema] = found
    return found


def values_of(message: Any) -> dict[str, Any]:
    """The fields' values by name."""
    return {name: getattr(message, name) for name, _ in fields_of(type(message))}
