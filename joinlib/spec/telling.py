"""Tells mistakes of a file's SQL and of its plan at their lines of the file.

    orders.yaml:8:12: spec.sql: column totl is in no input; did you mean 'total'?
    orders.yaml:15: spec.output.key: the result has no column 'idd'; did you mean 'id'?

Law: a mistake of the planner that begins with the path of a field, as in "output.key: ...", is told at that field.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from joinlib.deploy import KIND
from joinlib.errors import ConditionError, SpecError, SqlError
from joinlib.spec.document import Document, Place
from joinlib.spec.schema import fields

SQL: Place = ("spec", "sql")
_FIELD = re.compile(r"(?:spec\.)?([a-z]\w*(?:\.\w+)*)(: )?")


@contextmanager
def telling_of(path: str | Path) -> Iterator[None]:
    """Turn mistakes in the block that have no place in a file into those of this file.

    Raises:
        SpecError: FILE:LINE:COLUMN: spec.sql: what, or FILE:LINE: FIELD: what.
    """
    file = Path(path)
    text = file.read_text(encoding="utf-8") if file.is_file() else ""  # now: later it may be another one
    try:
        yield
    except ConditionError:
        raise
    except SqlError as error:
        file_of = Document(text, KIND)
        told = [_of_sql(path, file_of, one, one.output or error.output) for one in (error, *error.more)]
        raise SpecError("\n".join(told)) from error
    except SpecError as error:
        if str(error).startswith(f"{path}:"):
            raise
        raise SpecError(_of_field(path, Document(text, KIND), str(error), error.output)) from error


def told(error: SpecError) -> str:
    """Return a mistake as `telling_of` tells it, for a reader who has no file: the same, without lines of one."""
    if isinstance(error, SqlError):
        return "\n".join(_in_sql(one, one.output or error.output)[1] for one in (error, *error.more))
    return _at_field(str(error), error.output)[1]


def _sql(output: str) -> Place:
    return ("spec", "outputs", output, "sql") if output else SQL


def _of_sql(path: str | Path, document: Document, error: SqlError, output: str) -> str:
    place, text = _in_sql(error, output)
    found = document.within(place, error.line, error.column) if error.line else None
    if found is None:
        return f"{path}:{document.line(place)}: {text}"
    line, column = found
    return f"{path}:{line}:{column}: {_name(place)}: {error.message}"


def _in_sql(error: SqlError, output: str) -> tuple[Place, str]:
    """Return the place of the text that an error is about, and what is wrong there. output: the one that is planned."""
    kind, _, own = error.view.partition(".")
    place = _sql(own or output)  # no view has a dot in its name
    if kind and not own:
        place = ("spec", "views", kind)
    where = f"line {error.line}, column {error.column}: " if error.line else ""
    return place, f"{_name(place)}: {where}{error.message}"


def _of_field(path: str | Path, document: Document, message: str, output: str) -> str:
    """Tell a mistake of the planner: at the field that it begins with, else at the SQL."""
    place, text = _at_field(message, output)
    return f"{path}:{document.line(place)}: {text}"


def _at_field(message: str, output: str) -> tuple[Place, str]:
    """Return the field that a mistake of the planner begins with, else that of the SQL, and what is wrong there."""
    found = _FIELD.match(message)
    steps: Place = tuple(found[1].split(".")) if found else ()
    if found is None or steps[0] not in fields(("spec",)) or (len(steps) == 1 and not found[2]):
        place = _sql(output)
        return place, f"{_name(place)}: {message}"
    if output and steps[0] == "output":
        steps = ("outputs", output, *steps[1:])
    place = ("spec", *steps)
    return place, f"{_name(place)}: {message[found.end() :]}" if found[2] else message


def _name(place: Place) -> str:
    return ".".join(map(str, place))
