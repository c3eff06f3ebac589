"""Composes the text of a query from that of the spec, its views and its parameters.

    views: {late: SELECT ...}        WITH late AS (
    sql: SELECT ... FROM late   ─►   SELECT ...
                                     ) SELECT ... FROM late

Law: a parameter becomes one literal, wherever it stands, and a place in the composed text is told as the place
in the text that was written.
"""

import bisect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from joinlib.errors import SpecError, SqlError
from joinlib.spec.nearest import hint
from joinlib.spec.parameters import Parameter
from joinlib.sql.depth import with_room
from joinlib.sql.parse import Dialect, parse_query, place_of


@dataclass(frozen=True)
class TextPiece:
    """A part of a composed text, as far as the next one begins."""

    start: int  # in the composed text
    view: str  # whose text it is of; "": the query's
    text: str  # that text
    offset: int  # in that text
    fixed: bool = False  # all of it stands for what is at `offset`: a parameter


@dataclass(frozen=True)
class Composed:
    """A text and where its pieces come from."""

    sql: str
    pieces: tuple[TextPiece, ...]

    @contextmanager
    def telling(self) -> Iterator[None]:
        """Turn places in the composed text, of mistakes in the block, into those of what was written."""
        try:
            yield
        except SqlError as error:
            if not error.line:
                raise
            rows = self.sql.split("\n")
            at = sum(len(row) + 1 for row in rows[: error.line - 1]) + error.column - 1
            piece = self.pieces[max(bisect.bisect_right([p.start for p in self.pieces], at) - 1, 0)]
            found = piece.offset + (0 if piece.fixed else max(at - piece.start, 0))
            line, column = place_of(piece.text, min(found, len(piece.text)))
            raise SqlError(error.message, line, column, piece.view) from error


def composed(sql: str, views: Mapping[str, str], parameters: Mapping[str, Parameter]) -> Composed:
    """Return the query with its parameters filled in, and behind the views that it reads.

    Raises:
        SqlError: A parameter is not known, or stands where no value can; or a view is no query.
        SpecError: Views read each other in a circle.
    """
    query = _filled(sql, "", parameters)
    if not views:
        return query
    texts = {name: _ended(_filled(text, name, parameters)) for name, text in views.items()}
    names = {name.lower(): name for name in views}
    read = {name: _reads(text, names) for name, text in texts.items()}
    used = _in_order(_reads(query, names), read)
    return _behind(query, [(name, texts[name]) for name in used]) if used else query


def quoted(name: str) -> str:
    return f"`{name}`"


# --- parameters ---------------------------------------------------------------------------------------


def _filled(sql: str, view: str, parameters: Mapping[str, Parameter]) -> Composed:
    plain = Composed(sql, (TextPiece(0, view, sql, 0),))
    if "$" not in sql:
        return plain
    try:
        tokens = list(Dialect().tokenize(sql))
    except SqlglotError:
        return plain  # the parser says more about it
    parts, pieces, length, done = list[str](), list(plain.pieces), 0, 0
    for number, token in enumerate(tokens):
        if token.token_type is TokenType.STRING:
            _not_quoted(token, view, sql, parameters)
        if token.token_type is not TokenType.PARAMETER:
            continue
        end, value = _value(tokens, number, sql, view, parameters)
        before = sql[done : token.start]
        parts += [before, value]
        at = length + len(before)
        pieces += [
            TextPiece(at, view, sql, token.start, fixed=True),
            TextPiece(at + len(value), view, sql, end),
        ]
        length, done = at + len(value), end
    return Composed("".join([*parts, sql[done:]]), tuple(pieces))


def _value(
    tokens: list[Token], at: int, sql: str, view: str, parameters: Mapping[str, Parameter]
) -> tuple[int, str]:
    """Return the end of a parameter in the text, and its literal."""
    kinds = [token.token_type for token in tokens[at + 1 : at + 4]]
    where = place_of(sql, tokens[at].start)
    name = tokens[at + 2].text if len(kinds) == 3 else ""
    if len(kinds) < 3 or kinds[0] is not TokenType.L_BRACE or kinds[2] is not TokenType.R_BRACE:
        raise SqlError("a parameter is written as ${name}", *where, view)
    if name not in parameters:
        known = hint(name, parameters, "spec.parameters has") if parameters else "add it to spec.parameters"
        raise SqlError(f"there is no parameter {name}; {known}", *where, view)
    before = tokens[at - 1].token_type if at else None
    if before in (TokenType.FROM, TokenType.JOIN, TokenType.ALIAS, TokenType.DOT, TokenType.TABLE):
        raise SqlError(
            f"${{{name}}} stands for a value, and here a name is needed; write it out", *where, view
        )
    after = tokens[at + 4].token_type if at + 4 < len(tokens) else None
    given = parameters[name]
    if given.many and not (before in _LISTED and after in (TokenType.COMMA, TokenType.R_PAREN)):
        raise SqlError(f"${{{name}}} is a list; write it as in x IN (${{{name}}})", *where, view)
    return tokens[at + 3].end + 1, given.sql


_LISTED = (TokenType.L_PAREN, TokenType.COMMA)


def _not_quoted(token: Token, view: str, sql: str, parameters: Mapping[str, Parameter]) -> None:
    for name in parameters:
        if f"${{{name}}}" in token.text:
            raise SqlError(
                f"within quotes, ${{{name}}} is text and not the parameter; write it without quotes",
                *place_of(sql, token.start),
                view,
            )


# --- views --------------------------------------------------------------------------------------------


def _ended(text: Composed) -> Composed:
    """The text without the semicolon that may end it."""
    return replace(text, sql=text.sql.rstrip().removesuffix(";"))


def _reads(text: Composed, names: Mapping[str, str]) -> list[str]:
    """Return the views that a query names as tables, each once, in the order of the text."""
    with text.telling():
        tree = with_room(lambda: parse_query(text.sql))
    own = {str(cte.alias).lower() for cte in tree.find_all(exp.CTE)}
    found = (name.lower() for table in tree.find_all(exp.Table) if not table.db for name in _named(table))
    return list(dict.fromkeys(names[name] for name in found if name in names and name not in own))


def _named(table: exp.Table) -> list[str]:
    """Return the names that may be those of tables: of a call such as TUMBLE(t, at, ...), all that are in it."""
    if isinstance(table.this, exp.Identifier):
        return [table.name]
    return [str(node.this) for node in table.this.find_all(exp.Identifier, exp.Var)]


def _in_order(wanted: list[str], read: Mapping[str, list[str]]) -> list[str]:
    """Return the views that are read, each behind those that it reads itself."""
    done: list[str] = []

    def take(name: str, path: tuple[str, ...]) -> None:
        if name in path:
            circle = " reads ".join((*path[path.index(name) :], name))
            raise SpecError(f"views.{name}: {circle}: a view cannot read itself; take one of them apart")
        if name not in done:
            for other in read[name]:
                take(other, (*path, name))
            done.append(name)

    for name in wanted:
        take(name, ())
    return done


def _behind(query: Composed, views: list[tuple[str, Composed]]) -> Composed:
    """Write the views as WITH before the query, or before the WITH that it has."""
    with_ = next(iter(Dialect().tokenize(query.sql)))
    own = with_.token_type is TokenType.WITH
    parts, pieces, length = ["WITH "], list[TextPiece](), 5
    for number, (name, text) in enumerate(views):
        head = f"{', ' if number else ''}{quoted(name)} AS (\n"
        pieces += [replace(p, start=p.start + length + len(head)) for p in text.pieces]
        parts += [head, text.sql, "\n)"]
        length += len(head) + len(text.sql) + 2
    cut = with_.end + 1 if own else 0
    parts += [",\n" if own else "\n", query.sql[cut:]]
    length += len(parts[-2])
    pieces += [_moved(p, length, cut) for p in query.pieces]
    return Composed("".join(parts), tuple(pieces))


def _moved(piece: TextPiece, by: int, cut: int) -> TextPiece:
    """The piece of a text whose beginning was cut, behind another text."""
    if piece.start >= cut:
        return replace(piece, start=piece.start + by - cut)
    return replace(piece, start=by, offset=piece.offset + cut - piece.start)
