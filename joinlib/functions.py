"""What the author of a function for SQL writes before it, so that a spec may call it.

    import pyarrow as pa
    import pyarrow.compute as pc
    from joinlib.functions import deterministic

    @deterministic
    def score(price: pa.Array, rate: pa.Array) -> pa.Array:
        return pc.multiply(price, rate)

A batch that is run again after a failure must give the same rows: so the function promises to return, for equal
values, equal values, today and on every machine.
"""

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])
_MARK = "__streamjoin_deterministic__"


def deterministic(function: F) -> F:
    """Promise that a function of Arrow arrays returns equal values for equal values."""
    setattr(function, _MARK, True)
    return function


def is_deterministic(function: object) -> bool:
    """Return whether a function has been promised to be so."""
    return callable(function) and getattr(function, _MARK, False) is True
