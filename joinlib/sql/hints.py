"""Reads hints, which say how some inputs are to be joined.

    SELECT /*+ PATHS(c, o, l) */ ...       the inner join that has all these inputs is done by paths
    SELECT /*+ STAGES(c, o, l) */ ...      by stages

The names are those of FROM, as the text has them. A hint changes no row of the result.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from sqlglot import exp

from joinlib.errors import SqlError
from joinlib.sql.depth import with_room
from joinlib.sql.parse import parse_query, place
from joinlib.sql.supported import unread

HintWord = Literal["paths", "stages"]
_WORDS: Mapping[str, HintWord] = {"PATHS": "paths", "STAGES": "stages"}


@dataclass(frozen=True)
class JoinHint:
    """How the join that has these inputs is to be done."""

    word: HintWord
    inputs: frozenset[str]  # in lower case
    text: str

    def of(self, names: frozenset[str]) -> bool:
        """Return whether it means a join of the inputs that are called so."""
        return self.inputs <= {name.lower() for name in names}


def hints(sql: str) -> tuple[JoinHint, ...]:
    """Return the hints of a query, in the order of the text.

    Raises:
        SqlError: if one is of another kind, or names no inputs.
    """
    found = taken(with_room(lambda: parse_query(sql)))
    return tuple(_read(hint, place(sql, select)) for select, hint in found)


def taken(tree: exp.Expr) -> list[tuple[exp.Expr, exp.Expr]]:
    """Take all hints out of a tree, in place; return each with the SELECT that had it."""
    hints = [(select, hint) for select in tree.find_all(exp.Select) if (hint := select.args.get("hint"))]
    return [(select, each) for select, hint in hints for each in hint.pop().expressions]


def _read(hint: exp.Expr, at: tuple[int, int]) -> JoinHint:
    name = hint.name.upper()
    word = _WORDS.get(name)
    if word is None:
        raise SqlError(unread("hint"), *at)
    names = list(_names(hint))
    if not names:
        raise SqlError(f"the hint {name} names the inputs that it is about; write {name}(a, b, c)", *at)
    return JoinHint(word, frozenset(names), f"{name}({', '.join(names)})")


def _names(hint: exp.Expr) -> Iterator[str]:
    for part in hint.expressions if isinstance(hint, exp.Anonymous) else ():
        if isinstance(part, exp.Column):
            yield part.name.lower()
