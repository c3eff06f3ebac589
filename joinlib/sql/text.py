"""Composes the text of a query from that of the spec, its views and its parameters.

    views: {late: SELECT ...}        WITH late AS (
    sql: SELECT ... FROM late   ─►   SELECT ...
                                     ) SELECT ... FROM late

Several outputs make one text too: the query of each is one of its definitions (`program`).

Law: a place in the composed text is told as the place in the text that was written.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from joinlib.errors import SpecError
from joinlib.spec.output import field_of
from joinlib.spec.parameters import Parameter
from joinlib.sql.depth import with_room
from joinlib.sql.fill import filled
from joinlib.sql.parse import Dialect, parse_query
from joinlib.sql.pieces import Composed, TextPiece
from joinlib.sql.rewrite.names import OUTPUT


def composed(sql: str, views: Mapping[str, str], parameters: Mapping[str, Parameter]) -> Composed:
    """Return the query with its parameters filled in, and behind the views that it reads.

    Raises:
        SqlError: A parameter is not known, or stands where no value can; or a view is no query.
        SpecError: Views read each other in a circle.
    """
    query = filled(sql, "", parameters)
    if not views:
        return query
    used = _views([query], views, parameters)
    return _behind(query, used) if used else query


def program(
    outputs: Mapping[str, str], views: Mapping[str, str], parameters: Mapping[str, Parameter]
) -> Composed:
    """Return the text that defines the queries of several outputs, behind the views that any of them reads.

        WITH late AS (...), `$output.rows` AS (SELECT ... FROM late), `$output.counts` AS (...)
        SELECT 1

    Raises:
        SqlError, SpecError: As `composed` does.
    """
    queries = {name: _ended(filled(sql, field_of(name), parameters)) for name, sql in outputs.items()}
    used = _views(list(queries.values()), views, parameters)
    defined = [(f"{OUTPUT}{name}", text) for name, text in queries.items()]
    return _behind(Composed("SELECT 1", ()), [*used, *defined])


def quoted(name: str) -> str:
    return f"`{name}`"


def names_of(table: exp.Table) -> list[str]:
    """Return the names that may be those of tables: of a call such as TUMBLE(t, at, ...), all that are in it."""
    if isinstance(table.this, exp.Identifier):
        return [table.name]
    return [str(node.this) for node in table.this.find_all(exp.Identifier, exp.Var)]


# --- views --------------------------------------------------------------------------------------------


def _views(
    queries: Sequence[Composed], views: Mapping[str, str], parameters: Mapping[str, Parameter]
) -> list[tuple[str, Composed]]:
    """Return the views that the queries read, each behind those that it reads itself."""
    texts = {name: _ended(filled(text, name, parameters)) for name, text in views.items()}
    names = {name.lower(): name for name in views}
    read = {name: _reads(text, names) for name, text in texts.items()}
    wanted = dict.fromkeys(name for query in queries for name in _reads(query, names))
    return [(name, texts[name]) for name in _in_order(list(wanted), read)]


def _ended(text: Composed) -> Composed:
    """The text without the semicolon that may end it."""
    return replace(text, sql=text.sql.rstrip().removesuffix(";"))


def _reads(text: Composed, names: Mapping[str, str]) -> list[str]:
    """Return the views that a query names as tables, each once, in the order of the text."""
    with text.telling():
        tree = with_room(lambda: parse_query(text.sql))
    own = {str(cte.alias).lower() for cte in tree.find_all(exp.CTE)}
    found = (name.lower() for table in tree.find_all(exp.Table) if not table.db for name in names_of(table))
    return list(dict.fromkeys(names[name] for name in found if name in names and name not in own))


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
