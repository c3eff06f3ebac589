"""Lets processes of our own start sooner.

Without pandas, which is 25 MB and a third of a second. Nothing here uses it, but pyarrow imports it at its first value,
wherever it is installed, to know its objects. Where that fails it does not ask again. What really needs pandas imports it
later as always, such as a user's own function in a worker.

And without a search for garbage among a hundred thousand objects that stay, which took a fifth of the time.
"""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
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


@contextmanager
def loading() -> Iterator[None]:
    """Look for no garbage among what is loaded meanwhile: neither now nor later, since there is next to none."""
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        gc.enable()


class _Without:
    """An import finder that refuses pandas."""

    def find_spec(self, name: str, _path: Any = None, _target: Any = None) -> ModuleSpec | None:
        if name == "pandas":
            raise ModuleNotFoundError(name=name)
        return None
