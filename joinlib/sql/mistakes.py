"""Tells several mistakes of one text together: unknown inputs, columns and functions; of clauses, columns and outputs.

Law: each is told as it would be told alone, and what only follows from another is not: of an input that is unknown any
column may be read.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from sqlglot import exp

from joinlib.errors import SpecError, SqlError
from joinlib.expr.functions import check_call
from joinlib.sql.parse import parse_query, place
from joinlib.sql.reserved import RESERVED

T = TypeVar("T")
S = TypeVar("S")


class UnknownNames(SqlError):
    """Inputs and columns of a text that there are not."""


@contextmanager
def told_together(noted: list[SqlError]) -> Iterator[None]:
    """Raise the mistakes that were noted in the block, as one; what else is wrong may follow from them."""
    try:
        yield
    except Exception:
        if not noted:
            raise
    if noted:
        found = together(noted)
        raise UnknownNames(found.message, found.line, found.column, found.view, found.more, found.output)


@contextmanager
def with_functions(sql: str) -> Iterator[None]:
    """Add to a mistake in the block, which is about names, the functions of the text that there are not."""
    try:
        yield
    except SqlError as error:
        more = unknown_functions(sql)
        one_of_them = (error.line, error.column) in ((one.line, one.column) for one in more)
        if not more or not (one_of_them or isinstance(error, UnknownNames)):
            raise
        raise together([error, *more]) from error


def each(make: Callable[[S], T], of: Iterable[S]) -> list[T]:
    """Make something of each; mistakes of all are raised together.

    Raises:
        SqlError: One or more cannot be made.
    """
    found, mistakes = list[T](), list[SqlError]()
    for one in of:
        try:
            found.append(make(one))
        except SqlError as error:
            mistakes.append(error)
        except Exception:
            if not mistakes:
                raise
            break  # it may follow from a mistake
    if len(mistakes) > 1:
        raise together(mistakes)
    if mistakes:
        raise mistakes[0]
    return found


def together(mistakes: Iterable[SqlError]) -> SqlError:
    """Return mistakes as one, in the order of their places: the first one of each place, such as a star."""
    places: dict[tuple[str, int, int, str], SqlError] = {}
    for mistake in mistakes:
        for one in (mistake, *mistake.more):
            place = (one.view, one.line, one.column, "" if one.line else one.message)
            places.setdefault(place, _alone(one, one.output or mistake.output))
    first, *more = sorted(places.values(), key=lambda one: (one.line, one.column))
    return _alone(first, first.output, tuple(more))


def _alone(error: SqlError, output: str, more: tuple[SqlError, ...] = ()) -> SqlError:
    return SqlError(error.message, error.line, error.column, error.view, more, output)


def renamed(error: SqlError, say: Callable[[str], str]) -> SqlError:
    """Return a mistake, and those that follow it, with inputs as they are called in the text."""
    more = tuple(renamed(one, say) for one in error.more)
    return SqlError(say(error.message), error.line, error.column, error.view, more, error.output)


def unknown_functions(sql: str) -> list[SqlError]:
    """Return the calls of functions that neither SQL nor the spec has; none, if the text cannot be read."""
    try:
        calls = list(parse_query(sql).find_all(exp.Anonymous))
    except SqlError:
        return []
    found = []
    for call in calls:
        if str(call.name).lower() in RESERVED or call.find_ancestor(exp.Hint):
            continue
        try:
            check_call(str(call.name), len(call.expressions))
        except SpecError as error:
            found.append(SqlError(str(error), *place(sql, call)))
    return found
