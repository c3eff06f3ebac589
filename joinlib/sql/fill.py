"""Fills parameters into the text of a query.

    WHERE day > ${day}         WHERE day > CAST('2026-01-01' AS DATE)          the text
                               WHERE day > CAST('9700000000000' AS DATE)       its trial

Law: a parameter becomes a value, and nothing else: none of the characters beside it belongs to its literal, and in
the trial, which is parsed, the number that nobody else wrote is a literal where a value can stand.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from joinlib.errors import SqlError
from joinlib.spec.nearest import hint
from joinlib.spec.parameters import INTERVAL, Parameter, is_interval
from joinlib.sql.depth import with_room
from joinlib.sql.parse import Dialect, parse_query, place_of
from joinlib.sql.pieces import Composed, TextPiece

_APART = frozenset(" \t\r\n()[],;=<>!+-*/%|&^~")
_NAMES = (TokenType.FROM, TokenType.JOIN, TokenType.ALIAS, TokenType.DOT, TokenType.TABLE)
# Parents and arguments where a literal says a name, a column or a type.
_NO_VALUES = (
    (exp.Table, "this"),
    (exp.Join, "using"),
    (exp.Star, "except_"),
    (exp.Extract, "this"),
    (exp.DataTypeParam, "this"),
)


@dataclass(frozen=True)
class ParameterUse:
    """A parameter at a place of the text."""

    name: str
    given: Parameter
    start: int
    end: int
    number: str  # stands for its value in the trial; nobody else has written it


def filled(sql: str, view: str, parameters: Mapping[str, Parameter]) -> Composed:
    """Return the text with its parameters filled in. `view`: the name of the view that it is of.

    Raises:
        SqlError: A parameter is not known, or stands where no value can.
    """
    plain = Composed(sql, (TextPiece(0, view, sql, 0),))
    if "$" not in sql:
        return plain
    try:
        tokens = list(Dialect().tokenize(sql))
    except SqlglotError:
        return plain  # the parser says more about it
    uses = list(_uses(tokens, sql, view, parameters))
    if not uses:
        return plain
    _check(_with(sql, view, uses, [_trial(use) for use in uses]), view, sql, uses)
    values = [use.given.sql for use in uses]
    found = _with(sql, view, uses, values)
    if _count(found.sql) != len(tokens) + sum(_count(value) - _WRITTEN for value in values):
        raise _refused("is a value of its own; write a blank before and behind it", uses[0], sql, view)
    return found


_WRITTEN = 4  # tokens of ${name}


def _count(sql: str) -> int:
    return len(list(Dialect().tokenize(sql)))


def _with(sql: str, view: str, uses: list[ParameterUse], values: list[str]) -> Composed:
    """The text with these values."""
    parts, pieces, length, done = list[str](), [TextPiece(0, view, sql, 0)], 0, 0
    for use, value in zip(uses, values, strict=True):
        before = sql[done : use.start]
        parts += [before, value]
        at = length + len(before)
        pieces += [
            TextPiece(at, view, sql, use.start, fixed=True),
            TextPiece(at + len(value), view, sql, use.end),
        ]
        length, done = at + len(value), use.end
    return Composed("".join([*parts, sql[done:]]), tuple(pieces))


# --- tokens -------------------------------------------------------------------------------------------


def _uses(
    tokens: list[Token], sql: str, view: str, parameters: Mapping[str, Parameter]
) -> Iterator[ParameterUse]:
    first = 97 * 10**11
    while str(first)[:6] in sql:  # so that no number of the text is one of ours
        first += 10**7
    for number, token in enumerate(tokens):
        if token.token_type is TokenType.STRING:
            _not_quoted(token, view, sql, parameters)
        if token.token_type is TokenType.PARAMETER:
            use = _use(tokens, number, sql, view, parameters, str(first + number))
            _apart(use, sql, view)
            yield use


def _use(
    tokens: list[Token], at: int, sql: str, view: str, parameters: Mapping[str, Parameter], number: str
) -> ParameterUse:
    kinds = [token.token_type for token in tokens[at + 1 : at + 4]]
    where = place_of(sql, tokens[at].start)
    name = tokens[at + 2].text if len(kinds) == 3 else ""
    if len(kinds) < 3 or kinds[0] is not TokenType.L_BRACE or kinds[2] is not TokenType.R_BRACE:
        raise SqlError("a parameter is written as ${name}", *where, view)
    if name not in parameters:
        known = hint(name, parameters, "spec.parameters has") if parameters else "add it to spec.parameters"
        raise SqlError(f"there is no parameter {name}; {known}", *where, view)
    use = ParameterUse(name, parameters[name], tokens[at].start, tokens[at + 3].end + 1, number)
    if at and tokens[at - 1].token_type in _NAMES:
        raise _name(use, sql, view)
    return use


def _apart(use: ParameterUse, sql: str, view: str) -> None:
    """Refuse a parameter that what is beside it could be read together with."""
    before, after = sql[use.start - 1 : use.start], sql[use.end : use.end + 1]
    if not (set(before) <= _APART and set(after) <= _APART | {":"}):
        raise _refused("is a value of its own; write a blank before and behind it", use, sql, view)


def _not_quoted(token: Token, view: str, sql: str, parameters: Mapping[str, Parameter]) -> None:
    for name in parameters:
        if f"${{{name}}}" in token.text:
            raise SqlError(
                f"within quotes, ${{{name}}} is text and not the parameter; write it without quotes",
                *place_of(sql, token.start),
                view,
            )


# --- the trial ----------------------------------------------------------------------------------------


def _trial(use: ParameterUse) -> str:
    """A literal of the same form, with the number in the place of the value."""
    kind, value = use.given.type, use.given.values[0]
    if kind is not None and kind != INTERVAL:
        return f"CAST('{use.number}' AS {kind})"
    if not isinstance(value, str):
        return use.number
    text = f"'{use.number} minutes'" if is_interval(value) else f"'{use.number}'"
    return f"INTERVAL {text}" if kind == INTERVAL else text


def _check(trial: Composed, view: str, sql: str, uses: list[ParameterUse]) -> None:
    try:
        with trial.telling():
            tree = with_room(lambda: parse_query(trial.sql))
    except SqlError as error:
        said = error.message
        for use in uses:
            literal = _trial(use)
            for text in (literal, *re.findall("'.*'", literal)):  # all of it, or the quotes in it
                said = said.replace(text, f"${{{use.name}}}")
        raise SqlError(said, error.line, error.column, error.view) from error
    literals: dict[str, list[exp.Expr]] = {use.number: [] for use in uses}
    for node in tree.find_all(exp.Literal):
        if found := re.match(r"\d+", str(node.this)):
            literals.get(found[0], []).append(node)
    for use in uses:
        found_ = literals[use.number]
        if not found_ or any(_names(node) or _adds(node, use, sql) for node in found_):
            raise _name(use, sql, view)
        wholes = [_whole(node, use.given.type) for node in found_]
        if None in wholes:
            raise _refused("is a value of its own; write an operator before and behind it", use, sql, view)
        if use.given.many and not all(whole is not None and _listed(whole) for whole in wholes):
            raise _refused(f"is a list; write it as in x IN (${{{use.name}}})", use, sql, view)


def _names(node: exp.Expr) -> bool:
    return any(
        isinstance(node.parent, parent) and node.arg_key == argument for parent, argument in _NO_VALUES
    )


def _adds(node: exp.Expr, use: ParameterUse, sql: str) -> bool:
    """Whether it goes on with an interval before it, as the unit in INTERVAL 5 'DAY'."""
    begun = sql[: use.start].rstrip().upper().endswith("INTERVAL")
    return isinstance(node.parent, exp.Interval) and use.given.type is None and not begun


def _whole(node: exp.Expr, kind: str | None) -> exp.Expr | None:
    """The node of all that the parameter became; None if something else has become a part of it."""
    if kind is None:
        return node
    parent = node.parent
    fits = isinstance(parent, exp.Interval) if kind == INTERVAL else isinstance(parent, exp.Cast)
    return parent if fits else None


def _listed(node: exp.Expr) -> bool:
    return isinstance(node.parent, exp.In) and node.arg_key == "expressions"


def _name(use: ParameterUse, sql: str, view: str) -> SqlError:
    return _refused("stands for a value, and here a name is needed; write it out", use, sql, view)


def _refused(why: str, use: ParameterUse, sql: str, view: str) -> SqlError:
    return SqlError(f"${{{use.name}}} {why}", *place_of(sql, use.start), view)
