"""Methods with one deliberate mistake, made by editing their source."""

import inspect
import sys
from types import ModuleType

from bellwether import Algorithm


def mutant(method: type[Algorithm], right: str, wrong: str) -> type[Algorithm]:
    """The method's class with `right` replaced by `wrong` once in its file."""
    source = inspect.getsource(sys.modules[method.__module__])
    assert source.count(right) == 1, f"{right!r} is not once in {method.__module__}"
    module = ModuleType(f"mutant_of_{method.__name__}")
    sys.modules[module.__name__] = module  # dataclasses look their module up
    exec(compile(source.replace(right, wrong), module.__name__, "exec"), module.__dict__)
    changed: type[Algorithm] = getattr(module, method.__name__)
    return changed
