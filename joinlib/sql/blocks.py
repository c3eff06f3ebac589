"""Cuts a query into parts."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from sqlglot import exp

from joinlib.sql.depth import with_room
from joinlib.sql.graph import Table
from joinlib.sql.parse import parse


@dataclass(frozen=True)
class Block:
    """A part of the query."""

    name: str
    kind: Literal["select", "map", "union", "over"]
    query: exp.Select | exp.Union
    title: str = ""


def blocks(sql: str, tables: Mapping[str, Table], views: Mapping[str, str] = {}) -> tuple[Block, ...]:
    """Return the parts."""
    if sql.startswith("-- parts"):
        found = with_room(lambda: parse(sql))
        ctes = found.args["with_"].expressions
        found.set("with_", None)
        return (
            *(Block(c.alias, c.comments[0].strip() if c.comments else "select", c.this) for c in ctes),
            Block("$", "select", found),
        )
    return (Block("$1", "select", with_room(lambda: parse(sql))),)
