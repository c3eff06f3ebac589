"""Which libraries would the operator load for nothing? It plans, and touches no rows: 100 MB less, and a second.

pandas    pyarrow takes it at its first value when it is there
numba     compiles kernels; the planner asks their modules for names only. Uncompiled, a kernel would still be right
"""

import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


def lean() -> None:
    """To be called before joinlib is imported."""
    sys.meta_path.insert(0, _Without("pandas"))
    numba = ModuleType("numba")
    numba.njit = _uncompiled  # type: ignore[attr-defined]
    sys.modules["numba"] = numba


class _Without:
    """Refuses imports."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def find_spec(self, name: str, _path: Any = None, _target: Any = None) -> ModuleSpec | None:
        if name in self.names:
            raise ModuleNotFoundError(name=name)
        return None


def _uncompiled(**_: Any) -> Callable[[Any], Any]:
    return lambda function: function
