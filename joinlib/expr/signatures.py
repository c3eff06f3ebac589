"""How functions that are called by name take their arguments: converted to what they are written for.

Law: as Spark in ANSI mode converts them; text is read as a number or time where one is asked for.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa

from joinlib.errors import SpecError
from joinlib.expr import Expr
from joinlib.expr import types as t
from joinlib.expr.cast import cast
from joinlib.expr.nodes import Literal, NoValueError, call
from joinlib.expr.rows import Rule, by_rows
from joinlib.expr.text import text

Converter = Callable[[str, Expr], Expr]


def to(kind: pa.DataType) -> Converter:
    """Return what converts an argument to a type, if Spark does so without being asked."""
    if kind == t.STRING:
        return text

    def convert(name: str, value: Expr) -> Expr:
        if not _converts(value.type, kind):
            raise SpecError(f"{name} takes {t.name(kind)}, {value.excerpt} is {t.name(value.type)}")
        return cast(value, kind)

    return convert


def _converts(given: pa.DataType, kind: pa.DataType) -> bool:
    if given in (kind, t.NULL):
        return True
    if kind == t.BINARY:
        return t.is_string(given)
    if t.is_number(kind):
        return t.is_number(given) or t.is_string(given)
    if t.is_time(kind):
        return t.is_time(given) or t.is_string(given)
    return t.is_string(given) and kind == t.BOOLEAN


def anything(name: str, value: Expr) -> Expr:
    """Take an argument as it is."""
    return value


def text_or_binary(name: str, value: Expr) -> Expr:
    return value if value.type == t.BINARY else text(name, value)


def binary(name: str, value: Expr) -> Expr:
    """Convert an argument to its bytes."""
    return cast(value if value.type == t.BINARY else text(name, value), t.BINARY)


def number(name: str, value: Expr) -> Expr:
    """Take any number; text is read as DOUBLE."""
    if t.is_string(value.type) or value.type == t.NULL:
        return cast(value, t.DOUBLE)
    if not t.is_number(value.type):
        raise SpecError(f"{name} takes a number, {value.excerpt} is {t.name(value.type)}")
    return value


def whole_number(name: str, value: Expr) -> Expr:
    """Take a whole number of any width."""
    if value.type == t.NULL:
        return cast(value, t.INT)
    if t.is_string(value.type):
        return cast(value, t.BIGINT)
    if not t.is_integer(value.type):
        raise SpecError(f"{name} takes a whole number, {value.excerpt} is {t.name(value.type)}")
    return value


def moment(name: str, value: Expr) -> Expr:
    """Take a TIMESTAMP or TIMESTAMP_NTZ; a DATE is its midnight."""
    if value.type == t.TIMESTAMP_NTZ:
        return value
    return to(t.TIMESTAMP)(name, value)


def array(name: str, value: Expr) -> Expr:
    if value.type == t.NULL:
        return cast(value, pa.list_(t.NULL))
    if not pa.types.is_list(value.type):
        raise SpecError(f"{name} takes an ARRAY, {value.excerpt} is {t.name(value.type)}")
    return value


def mapping(name: str, value: Expr) -> Expr:
    if not pa.types.is_map(value.type):
        raise SpecError(f"{name} takes a MAP, {value.excerpt} is {t.name(value.type)}")
    return value


STRING, INT, BIGINT, DOUBLE = to(t.STRING), to(t.INT), to(t.BIGINT), to(t.DOUBLE)
DATE, TIMESTAMP, BOOLEAN = to(t.DATE), to(t.TIMESTAMP), to(t.BOOLEAN)

Result: TypeAlias = Any  # a type, or a function from the types of the arguments to one


@dataclass(frozen=True)
class Signature:
    """A function of one row, and how its arguments are converted."""

    of: Callable[..., Any]
    result: Result
    takes: tuple[Converter, ...]
    least: int  # how many arguments must be given
    repeats: bool = False  # the last one may be given any number of times
    lenient: bool = False
    kinds: bool = False  # the function is told the types of its arguments, after them

    @property
    def most(self) -> int:
        return 99 if self.repeats else len(self.takes)

    def build(self, name: str, *given: Expr) -> Expr:
        """Build the call.

        Raises:
            SpecError: if an argument has the wrong type.
        """
        takes = [*self.takes, *[self.takes[-1]] * (len(given) - len(self.takes))]
        values = [take(name, value) for take, value in zip(takes, given)]
        types = tuple(v.type for v in values)
        kind = self.result(*types) if callable(self.result) else self.result
        return row_call(name, self.of, kind, values, self.lenient, (types,) if self.kinds else ())


def row_call(
    name: str,
    of: Callable[..., Any],
    kind: pa.DataType,
    values: list[Expr],
    lenient: bool = False,
    more: tuple[Hashable, ...] = (),
) -> Expr:
    """Build the call of a function of one row, with arguments of the right types."""
    sql = f"{name}({', '.join(v.sql for v in values)})"
    return call(by_rows, tuple(values), kind, sql, Rule(of, kind, lenient, more))


def row(
    of: Callable[..., Any],
    result: Result,
    *takes: Converter,
    least: int | None = None,
    repeats: bool = False,
    lenient: bool = False,
    kinds: bool = False,
) -> Signature:
    """Write down a signature; all arguments must be given unless `least` says how many."""
    return Signature(of, result, takes, len(takes) if least is None else least, repeats, lenient, kinds)


def readable(name: str, value: Expr, read: Callable[[str], object]) -> Expr:
    """Take a text that a function reads, such as a pattern; a constant one is read at once.

    Raises:
        SpecError: it cannot be read.
    """
    value = STRING(name, value)
    if isinstance(value.node, Literal) and value.node.value.is_valid:
        try:
            read(value.node.value.as_py())
        except NoValueError as error:
            raise SpecError(f"{name}: {error}: {value.excerpt}") from error
    return value
