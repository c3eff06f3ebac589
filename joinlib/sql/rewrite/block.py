"""A block: a small query over inputs and earlier blocks."""

from dataclasses import dataclass
from typing import Literal

from sqlglot import exp

from joinlib.model.called import Called

Kind = Literal["select", "map", "union", "over"]


@dataclass(frozen=True)
class Block:
    """A query that one operator computes.

    - map: expressions over one table, LATERAL VIEW, WHERE
    - select: joins, semi and anti joins, groups
    - union: UNION ALL of columns of tables
    - over: window functions over columns of one table, with the same PARTITION BY, and QUALIFY
    """

    name: str
    kind: Kind
    query: exp.Select | exp.SetOperation
    title: str = ""  # how the text calls it
    called: tuple[Called, ...] = ()  # what it reads, in the words of the text
    view: str = ""  # the view in whose text the places of the query are; "" for the main text
    output: str | None = None  # whose rows it returns: of several outputs, by name; "": of the only one
