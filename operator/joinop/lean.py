"""Keep libraries that the operator never uses out of its memory.

pandas: pyarrow imports it at its first value if it is installed, which costs 35 MB.
"""

import sys
from importlib.machinery import ModuleSpec
from typing import Any


def lean() -> None:
    """Refuse those imports. To be called before joinlib is imported."""
    sys.meta_path.insert(0, _Without("pandas"))


class _Without:
    """An import finder that refuses modules."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def find_spec(self, name: str, _path: Any = None, _target: Any = None) -> ModuleSpec | None:
        if name in self.names:
            raise ModuleNotFoundError(name=name)
        return None
