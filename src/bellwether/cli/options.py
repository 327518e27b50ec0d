"""Options that several commands share: declared once, as the fields of a dataclass."""

import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import Any, get_type_hints


def spread(command: Callable[..., None]) -> Callable[..., None]:
    """The command, with each field of its dataclass parameters as an option of its own."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {
        n: kind for n, kind in hints.items() if dataclasses.is_dataclass(kind)
    }

    @functools.wraps(command)
    def with_options(**values: Any) -> None:
        for name, kind in groups.items():
            given = {field.name: values.pop(field.name) for field in dataclasses.fields(kind)}
            values[name] = kind(**given)
        command(**values)

    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        kind = groups.get(parameter.name)
        own = parameter.replace(annotation=hints[parameter.name])
        parameters += inspect.signature(kind, eval_str=True).parameters.values() if kind else [own]
    by_name = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in parameters]
    with_options.__signature__ = inspect.Signature(by_name)  # type: ignore[attr-defined]
    return with_options
