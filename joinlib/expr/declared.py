"""Functions that the author of a spec has written in Python, over Arrow arrays.

    functions: {score: {python: "scoring:score", returns: DOUBLE}}        SELECT score(o.price) AS s ...

Law: the planner never loads them, so an operator runs no code of a spec. `streamjoin validate`, `plan` and `run` do,
and tasks. A function gets whole columns and returns one of the same length.
"""

import hashlib
import importlib
import importlib.util
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any

import pyarrow as pa

from joinlib.errors import SpecError
from joinlib.expr import Columns, Expr, Node
from joinlib.expr.nodes import combine, contiguous
from joinlib.functions import is_deterministic


@dataclass(frozen=True)
class PythonFunction:
    """A function of a module, which is looked for in a folder before it is imported."""

    name: str  # in SQL
    python: str  # MODULE:FUNCTION
    type: pa.DataType  # of what it returns
    folder: str

    def called(self, arguments: list[Expr]) -> Expr:
        """Build a call. Its value is never computed by the planner, even of constants."""
        sql = f"{self.name}({', '.join(a.sql for a in arguments)})"
        return combine(PythonCall(self, tuple(a.node for a in arguments)), arguments, self.type, sql)


@dataclass(frozen=True)
class PythonCall:
    """The call of a function that somebody else has written."""

    function: PythonFunction
    arguments: tuple[Node, ...]

    def evaluate(self, columns: Columns, rows: int) -> pa.Array:
        """Raise SpecError if the function fails, or returns no column that fits."""
        given = [contiguous(argument.evaluate(columns, rows), rows) for argument in self.arguments]
        run, named = loaded(self.function), f"function {self.function.name} ({self.function.python})"
        try:
            found = run(*given)
        except Exception as error:
            raise SpecError(f"{named} failed: {type(error).__name__}; the log has its traceback") from error
        if isinstance(found, pa.ChunkedArray):
            found = found.combine_chunks()
        if not isinstance(found, pa.Array) or len(found) != rows:
            what = (
                f"{len(found)} values for {rows} rows"
                if isinstance(found, pa.Array)
                else type(found).__name__
            )
            raise SpecError(f"{named} returned {what}; return an Arrow array with a value for each row")
        try:
            return found.cast(self.function.type)
        except pa.ArrowException as error:
            raise SpecError(f"{named} returned {found.type}, which is not what `returns` says") from error


@cache
def loaded(function: PythonFunction) -> Any:
    """Return the function itself.

    Raises:
        SpecError: There is no such module or function, or it was not declared deterministic.
    """
    module, _, name = function.python.partition(":")
    place = f"functions.{function.name}.python"
    try:
        there = _module(module, function.folder)
    except Exception as error:
        places = f"in {function.folder}, and then on" if function.folder else "on"
        raise SpecError(
            f"{place}: module {module} cannot be imported: {type(error).__name__}: {error}; it is looked for"
            f" {places} Python's path"
        ) from error
    found = getattr(there, name, None)
    if found is None:
        raise SpecError(f"{place}: module {module} has no function {name}")
    if not is_deterministic(found):
        raise SpecError(
            f"{place}: {name} is not declared deterministic, and a batch that is run again must give the same"
            " rows; write @deterministic before it (from joinlib.functions import deterministic)"
        )
    return found


def _module(name: str, folder: str) -> ModuleType:
    """Import a module; from a folder, under a name that no other folder's module has. `folder`: "" is none."""
    file = Path(folder).joinpath(*name.split(".")).with_suffix(".py")
    if not folder or not file.is_file():
        return importlib.import_module(name)
    own = f"streamjoin_functions_{hashlib.sha256(folder.encode()).hexdigest()[:16]}_{name.replace('.', '_')}"
    if own not in sys.modules:
        spec = importlib.util.spec_from_file_location(own, file)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[own] = module  # before it runs: its dataclasses look themselves up there
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[own]
            raise
    return sys.modules[own]


# --- by name, while a query is planned ----------------------------------------------------------------

_declared: ContextVar[Mapping[str, PythonFunction]] = ContextVar("declared", default=MappingProxyType({}))


def declared(name: str) -> PythonFunction | None:
    """Return the function that a name in SQL means here; None if it is none of those."""
    return _declared.get().get(name.lower())


@contextmanager
def declaring(functions: Mapping[str, PythonFunction]) -> Iterator[None]:
    """Let the SQL that is read in the block, and no other, call these functions."""
    token = _declared.set({name.lower(): function for name, function in functions.items()})
    try:
        yield
    finally:
        _declared.reset(token)
