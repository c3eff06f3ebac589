"""Compiles a condition that is asked from outside a query, over columns that are known by name."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa
from sqlglot import exp
from sqlglot.errors import ParseError, TokenError

from joinlib.errors import ConditionError, SqlError
from joinlib.expr import Expr, ref
from joinlib.expr.types import BOOLEAN, name
from joinlib.spec.nearest import hint
from joinlib.sql.compile import compile
from joinlib.sql.grammar import plain
from joinlib.sql.parse import Dialect
from joinlib.sql.scope import Scope

Columns = Mapping[str, pa.DataType]  # by qualified or bare name


@dataclass
class _Named(Scope):
    """A scope in which names stand for columns as they are written."""

    columns: Columns = field(default_factory=dict)

    def resolve(self, column: exp.Column) -> Expr:
        found = _named(column, self.columns)
        if found is None:
            raise self.error(f"there is no column {_text(column)}; {hint(column.name, self.columns)}", column)
        return ref(found, self.columns[found])


def parsed(text: str) -> exp.Expr:
    """Parse one condition.

    Raises:
        ConditionError: It is none.
    """
    dialect = Dialect()
    try:
        [found] = dialect.parser().parse_into(exp.Condition, plain(dialect.tokenize(text)), text)
    except (ParseError, TokenError, ValueError) as error:
        raise ConditionError(f"{text!r} is not a condition; write one such as 'order_id = 4711'") from error
    if found is None:
        raise ConditionError("it is empty; write one such as 'order_id = 4711'")
    return found


def unknown(tree: exp.Expr, columns: Columns) -> list[str]:
    """Return the names of the condition that are none of these columns."""
    asked = (column for column in tree.find_all(exp.Column) if _named(column, columns) is None)
    return list(dict.fromkeys(map(_text, asked)))


def known_part(tree: exp.Expr, columns: Columns) -> exp.Expr | None:
    """Return the conjuncts of a condition that read these columns alone; None if there is none."""
    parts = list(tree.flatten()) if isinstance(tree, exp.And) else [tree]
    known = [part for part in parts if not unknown(part, columns)]
    return exp.and_(*known) if known else None


def condition(tree: exp.Expr, text: str, columns: Columns) -> Expr:
    """Compile a condition over these columns.

    Raises:
        ConditionError: A name is unknown, or it is no condition.
    """
    try:
        found = compile(tree, _Named(text, columns=columns))
    except SqlError as error:
        raise ConditionError(error.message) from error
    if found.type != BOOLEAN:
        raise ConditionError(f"{text!r} is {name(found.type)}, not a condition; compare it with something")
    return found


def _named(column: exp.Column, columns: Columns) -> str | None:
    """Return the column that is meant: as in SQL, names ignore case."""
    text = _text(column)
    exact = [known for known in columns if known == text]
    return next(iter(exact or [known for known in columns if known.lower() == text.lower()]), None)


def _text(column: exp.Column) -> str:
    return ".".join(part.name for part in column.parts)
