"""The logical graph of a whole query: the operators that its blocks name, before any decision about how to run them.

    SELECT ... FROM a, b, (SELECT k, max(v) ... GROUP BY k) c WHERE ...

    project ─► join ─► join ─► scan a, scan b
                    └► group ─► scan d

Joins are binary and left-deep, as written. A block that several read is one node with several readers.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from sqlglot import exp

from joinlib.sql.rewrite import trees
from joinlib.sql.rewrite.block import Block
from joinlib.sql.subquery import subquery_test

PlanKind = Literal[
    "scan", "project", "join", "left", "right", "full", "semi", "anti", "group", "union", "over", "multi"
]
_SIDES: Mapping[str, PlanKind] = {"": "join", "LEFT": "left", "RIGHT": "right", "FULL": "full"}


@dataclass(frozen=True, eq=False)
class PlanNode:
    """One operator and what it reads. Equal only to itself: a plan may hold two that look alike."""

    kind: PlanKind
    inputs: tuple["PlanNode", ...] = ()
    label: str = ""  # the name of an input, or of what a block makes


def logical(parts: tuple[Block, ...]) -> PlanNode:
    """Return the graph of a query's blocks."""
    known: dict[str, PlanNode] = {}
    for part in parts:
        known[part.name.lower()] = _made(part, known)
    return known[parts[-1].name.lower()]


def every_node(root: PlanNode) -> Iterator[PlanNode]:
    """Yield all operators, each once, the root first."""
    seen: dict[PlanNode, None] = {root: None}
    todo = [root]
    while todo:
        node = todo.pop()
        yield node
        fresh = [below for below in node.inputs if below not in seen]
        seen.update(dict.fromkeys(fresh))
        todo += fresh


def _made(part: Block, known: Mapping[str, PlanNode]) -> PlanNode:
    if isinstance(part.query, exp.SetOperation):
        return PlanNode("union", tuple(_scan(table, known) for table in _united(part.query)), part.name)
    node = _joined(part.query, known)
    if part.kind == "over":
        return PlanNode("over", (node,), part.name)
    return PlanNode("group" if _groups(part.query) else "project", (node,), part.name)


def _united(query: exp.Expr) -> Iterator[exp.Table]:
    if isinstance(query, exp.SetOperation):
        yield from _united(query.this)
        yield from _united(query.expression)
    else:
        yield query.args["from_"].this


def _groups(select: exp.Select) -> bool:
    """Whether rows become groups: by GROUP BY, DISTINCT or an aggregate."""
    asked = select.args.get("group") or select.args.get("having") or select.args.get("distinct")
    return bool(asked) or any(trees.aggregates(column) for column in select.expressions)


def _joined(select: exp.Select, known: Mapping[str, PlanNode]) -> PlanNode:
    """Return the joins of FROM, then the tests by subqueries of WHERE."""
    node = _scan(select.args["from_"].this, known)
    for join in select.args.get("joins") or []:
        side, word = join.side.upper(), join.kind.upper()
        kind: PlanKind = "semi" if word == "SEMI" else "anti" if word == "ANTI" else _SIDES[side]
        node = PlanNode(kind, (node, _scan(join.this, known)))
    where = select.args.get("where")
    for part in trees.ands(where.this) if where else ():
        if (test := subquery_test(part)) is not None:
            node = PlanNode("anti" if test.negated else "semi", (node, _joined(test.query, known)))
    return node


def _scan(table: exp.Expr, known: Mapping[str, PlanNode]) -> PlanNode:
    """Return the block of this name, or an input of the query: each time it is named it is read anew."""
    name = table.name.lower()
    return known[name] if name in known else PlanNode("scan", (), table.alias_or_name)
