"""A choice by name with settings of its own: a partition, server data, a participation."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from bellwether.core.errors import InputError, unknown

T = TypeVar("T")


@dataclass(frozen=True)
class Choice(Generic[T]):
    """How one of several things is made from options of the command."""

    make: Callable[..., T]
    options: Mapping[str, str] = field(default_factory=dict)
    """The option that gives each argument: names without dashes, as in `server_samples`."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Of arguments whose option is not given."""


def choose(option: str, name: str, choices: Mapping[str, Choice[T]], given: Mapping[str, Any]) -> T:
    """Make what `--option name` asks for; an option that belongs to another is a mistake."""
    if name not in choices:
        raise unknown(option, name, choices)
    choice = choices[name]
    for other in {each for choice in choices.values() for each in choice.options.values()}:
        if _is_given(given[other]) and other not in choice.options.values():
            users = [each for each, using in choices.items() if other in using.options.values()]
            raise InputError(f"{_flag(other)} is for --{option} {_either(users)}, not {name}")
    settings = {
        argument: given[source]
        for argument, source in choice.options.items()
        if _is_given(given[source])
    }
    for argument, parameter in inspect.signature(choice.make).parameters.items():
        needed = argument in choice.options and parameter.default is inspect.Parameter.empty
        if needed and argument not in {**settings, **choice.defaults}:
            raise InputError(f"--{option} {name} needs {_flag(choice.options[argument])}")
    return choice.make(**{**choice.defaults, **settings})


def numbers(text: str | None, option: str, kind: Callable[[str], T]) -> T | list[T] | None:
    """ "4" as a number, "4,7" or "4," as a list of numbers."""
    if text is None:
        return None
    try:
        if "," not in text:
            return kind(text)
        return [kind(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise InputError(
            f"{_flag(option)} takes a number or numbers with commas between, not {text!r}"
        ) from None


def _is_given(value: Any) -> bool:
    return value is not None and value is not False


def _flag(option: str) -> str:
    return f"--{option.replace('_', '-')}"


def _either(names: list[str]) -> str:
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))
