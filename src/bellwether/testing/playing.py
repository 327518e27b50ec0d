"""Play rounds, keep every moment of them, and say where two plays differ."""

import copy
import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bellwether.core.algorithm import Algorithm
from bellwether.core.interfaces import Engine, Participation
from bellwether.core.isolation import isolated
from bellwether.core.rounds import Progress, Setting, begin, play
from bellwether.core.streams import seed_torch
from bellwether.core.tasks import Workplace
from bellwether.engines.local import Local
from bellwether.federation.participation import Uniform
from bellwether.testing.problems import SEED, Problem

ROUNDS = 4


@dataclass(frozen=True)
class Played:
    """All that a run carried from round to round."""

    moments: tuple[Progress, ...]
    """Before the first round, and after each."""
    overwritten: tuple[str, ...]
    """Vectors of a state or a memory that a later round changed in place."""
    settings: tuple[str, ...]
    """Fields of the method itself that are not what they were before."""


def played(
    algorithm: Algorithm[Any],
    problem: Problem,
    *,
    participation: Participation | None = None,
    engine: Engine | None = None,
    disturbed: bool = False,
) -> Played:
    """Some rounds; `disturbed` puts torch's global generators elsewhere before each."""
    engine = engine or Local()
    moments: list[Progress] = []
    overwritten: list[str] = []
    settings = copy.deepcopy(vars(algorithm))
    with isolated():
        template = problem.module()
        workplace = Workplace(
            template, problem.objective, problem.federation, SEED, torch.device("cpu")
        )
        space = workplace.workspace()
        setting = Setting(
            algorithm=algorithm.laid_out(space.layers),
            federation=problem.federation,
            participation=participation or Uniform(problem.cohort),
            engine=engine,
            space=space,
            seed=SEED,
        )
        engine.start(workplace)
        try:
            moments.append(begin(setting))
            for number in range(ROUNDS):
                before, kept = moments[-1], copy.deepcopy(moments[-1])
                if disturbed:
                    seed_torch(0, "disturbed", number)
                after, _ = play(setting, before)
                overwritten.extend(differences(kept, before))
                moments[-1] = kept
                moments.append(after)
        finally:
            engine.stop()
    changed = tuple(differences(settings, vars(algorithm)))
    return Played(tuple(moments), tuple(dict.fromkeys(overwritten)), changed)


def apart(left: Played, right: Played) -> str:
    """Where two plays first differ, such as "state.model after round 2"; empty if nowhere."""
    for one, other in zip(left.moments, right.moments, strict=True):
        for name in differences(one, other):
            return f"{name} after round {one.round}"
    return ""


def differences(left: Any, right: Any, name: str = "") -> Iterator[str]:
    """The paths of all that is not the same to the last bit."""
    if type(left) is not type(right):
        yield name
    elif isinstance(left, Tensor):
        if left.dtype != right.dtype or not torch.equal(left, right):
            yield name
    elif (parts := _parts(left)) is not None:
        others = _parts(right)
        assert others is not None
        if parts.keys() != others.keys():
            yield name
            return
        for key, value in parts.items():
            yield from differences(value, others[key], f"{name}.{key}" if name else key)
    elif isinstance(left, np.ndarray):
        if not np.array_equal(left, right):
            yield name
    elif "__eq__" in _attributes(left) and left != right:
        yield name


def tensors(value: Any, name: str = "") -> Iterator[tuple[str, Tensor]]:
    """Every vector in nested dataclasses, dicts and tuples, with its path."""
    if isinstance(value, Tensor):
        yield name, value
    for key, part in (_parts(value) or {}).items():
        yield from tensors(part, f"{name}.{key}" if name else key)


def _attributes(value: Any) -> set[str]:
    """What the value's classes define, beyond what every object has."""
    return {name for owner in type(value).__mro__[:-1] for name in vars(owner)}


def _parts(value: Any) -> dict[str, Any] | None:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(k): v for k, v in value.items()}
    if isinstance(value, tuple | list):
        return {str(i): v for i, v in enumerate(value)}
    return None
