"""Keeps pandas out of the memory of our own processes: 25 MB, and a third of a second of their start.

Nothing here uses it, but pyarrow imports it at its first value, wherever it is installed, to know its objects. Where that
fails it does not ask again. What really needs pandas imports it later as always, such as a user's own function in a worker.
"""

import sys
from importlib.machinery import ModuleSpec
from typing import Any


def lean() -> None:
    """Let pyarrow find no pandas. To be called before the rest of joinlib is imported, in processes of our own only."""
    refused = _Without()
    sys.meta_path.insert(0, refused)
    try:
        import pyarrow as pa

        pa.scalar(None)
    finally:
        sys.meta_path.remove(refused)


class _Without:
    """An import finder that refuses pandas."""

    def find_spec(self, name: str, _path: Any = None, _target: Any = None) -> ModuleSpec | None:
        if name == "pandas":
            raise ModuleNotFoundError(name=name)
        return None
