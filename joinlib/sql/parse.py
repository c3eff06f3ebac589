"""Parses text to a syntax tree.

Law: Spark's grammar; functions keep the names they were written with.
"""

from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import TokenType

from joinlib.errors import SqlError
from joinlib.spec.nearest import hint
from joinlib.sql.foreign import foreign, unfilled
from joinlib.sql.grammar import KEYWORDS, ArgumentParser, plain

_BEGIN = ("SELECT", "WITH", "VALUES")
KEPT = ("CAST", "TRY_CAST", "EXTRACT", "TRIM", "SUBSTRING", "SUBSTR", "OVERLAY")


class Dialect(Spark):
    """Spark's dialect without sqlglot's rewriting of functions: a call stays a call, with its place."""

    class Tokenizer(Spark.Tokenizer):
        STRING_ESCAPES: ClassVar[list[str]] = ["\\", "'"]
        KEYWORDS = KEYWORDS

    class Parser(ArgumentParser):
        STRICT_CAST = True
        ARRAY_CONSTRUCTORS: ClassVar[dict[str, Any]] = {}  # array(1, 2)[0] is an element, not ARRAY[0]
        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        NO_PAREN_FUNCTIONS: ClassVar[dict[Any, Any]] = {}
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            k: v for k, v in Spark.Parser.FUNCTION_PARSERS.items() if k in KEPT
        }


def read(sql: str) -> list[exp.Expr | None]:
    """Parse the text to the trees of its statements."""
    dialect = Dialect()
    return dialect.parser().parse(plain(dialect.tokenize(sql)), sql)


def parse(sql: str) -> exp.Select:
    """Parse the text, which must be one SELECT.

    Raises:
        SqlError: if it is not, with line and column.
    """
    found = parse_query(sql)
    if not isinstance(found, exp.Select):
        raise SqlError(f"write one SELECT; {found.key.upper()} is not supported", 1, 1)
    return found


def parse_query(sql: str) -> exp.Select | exp.SetOperation | exp.Subquery:
    """Parse the text, which must be one query: SELECT, or several by UNION, INTERSECT, EXCEPT.

    Raises:
        SqlError: if it is not, with line and column.
    """
    try:
        statements = [s for s in read(sql) if s is not None]
    except ParseError as e:
        first = e.errors[0]
        near = first["highlight"]
        text = f"{first['description']}" + (f", near {near!r}" if near else "")
        if found := foreign(sql):
            raise SqlError(found[0], *place_of(sql, found[1])) from e
        _check_begin(sql)
        raise SqlError(text, first["line"], max(first["col"] - len(near) + 1, 1)) from e
    except TokenError as e:
        raise SqlError(f"the text cannot be read: {_token_error(sql)}", *_quote(sql)) from e
    if len(statements) != 1:
        raise SqlError(f"write one SELECT; there are {len(statements)} statements", 1, 1)
    query = statements[0]
    if not isinstance(query, exp.Select | exp.SetOperation | exp.Subquery):
        _check_begin(sql)
        raise SqlError(f"write one SELECT; {query.key.upper()} is not supported", 1, 1)
    for text, mark in unfilled(query):
        raise SqlError(text, *place(sql, mark))
    return query


def _check_begin(sql: str) -> None:
    """Refuse a text that begins with a word which begins no statement.

    Raises:
        SqlError: It does; it may be a SELECT with a slip.
    """
    first = Dialect().tokenize(sql)[0]
    if first.token_type == TokenType.VAR:
        said = f"write one SELECT; {first.text} begins none"
        near = hint(first.text, _BEGIN, "a query begins with one of")
        raise SqlError(f"{said}; {near}", *place_of(sql, first.start))


def _token_error(sql: str) -> str:
    return "a quote is not closed" if any(sql.count(q) % 2 for q in "'\"`") else "unexpected character"


def _quote(sql: str) -> tuple[int, int]:
    """Place of the last quote character, which may be the one that is not closed."""
    start = max(sql.rfind(q) for q in "'\"`")
    return place_of(sql, start) if start >= 0 else (1, 1)


def place_of(sql: str, start: int) -> tuple[int, int]:
    """Convert an offset to line and column, which start at 1."""
    before = sql[:start]
    return before.count("\n") + 1, start - (before.rfind("\n") + 1) + 1


def place(sql: str, node: exp.Expr | None) -> tuple[int, int]:
    """Return where a node begins, as line and column; (0, 0) if unknown.

    That is its own mark, else the leftmost mark below it, else that of its parent.
    """
    while node is not None:
        starts = [n.meta["start"] for n in node.walk() if "start" in n.meta]
        if starts:
            return place_of(sql, min(starts))
        node = node.parent
    return 0, 0
