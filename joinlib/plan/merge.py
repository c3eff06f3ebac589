"""Merges joins of one key into one n-way join, unless `join.strategy:
binary` asks for a chain of binary joins.

Law: the answer is the same.

Which one is better depends on how many rows the keys of a stream will have, and no plan knows that. With one
or two in each input the n-way join takes 0.7 to 1.2 times the CPU time of a chain, measured from three inputs
to six, and a chain stores 1.1 to 11 times as much; with four a chain takes 14 to 41 % less CPU time, and
stores 2 to 5 times as much (bench/probe_order). The default spends bounded time to save unbounded state. A
chain needs no exchange between its joins: they share a key, so they run in one unit.
"""

from collections.abc import Iterator
from dataclasses import replace

from joinlib.model.joins import Join, Leaf
from joinlib.plan.tradeoff import JoinWork, chained, merged
from joinlib.sql import JoinNode, Scan


def chain(tree: JoinNode | Scan) -> JoinNode | Scan:
    """Replace each n-way join by left-deep binary joins; each clause is
    decided in the first that sees its inputs.
    """
    if isinstance(tree, Scan):
        return tree
    children = [chain(c) for c in tree.children]
    if tree.kind != "inner" or len(children) == 2:
        return replace(tree, children=tuple(children))
    below: JoinNode | Scan = children[0]
    seen = children[0].aliases
    bounds, clauses = list(tree.bounds), list(tree.predicate)
    for child, holder in zip(children[1:], tree.holders[1:]):
        seen |= child.aliases
        known = [b for b in bounds if {b.left.partition(".")[0], b.right.partition(".")[0]} <= seen]
        decided = [c for c in clauses if c.aliases <= seen and (not c.late or child is children[-1])]
        bounds = [b for b in bounds if b not in known]
        clauses = [c for c in clauses if c not in decided]
        holders = (tree.holders[0], holder)
        where = tree.where if child is children[-1] else ()
        below = JoinNode("inner", (below, child), holders, tuple(known), tuple(decided), where)
    return below


def is_chain(tree: Join | Leaf) -> bool:
    """Whether an inner join reads an inner join of its own key, which the
    planner would otherwise have merged.
    """
    return isinstance(tree, Join) and tree.kind == "inner" and any(_inner(c) for c in tree.inputs)


def reasons(tree: Join | Leaf) -> Iterator[str]:
    """Explain why an n-way join was made, or a chain."""
    if not isinstance(tree, Join) or tree.kind != "inner":
        return
    n = len(tree.inputs)
    if is_chain(tree):
        n = 1 + sum(1 for _ in _spine(tree))
        yield (
            f"join.strategy binary: a chain of {n - 1} joins. A key with a row in each input takes"
            f" {_work_text(chained(n))}; one operator would take {_work_text(merged(n))}, and store no"
            " intermediate result"
        )
    elif n > 2:
        yield (
            f"one operator for {n} inputs: no intermediate result is stored. A key with a row in each takes"
            f" {_work_text(merged(n))}; a chain of binary joins would take {_work_text(chained(n))}. Where"
            " keys have many rows in each input it may be faster and stores far more: join.strategy binary"
        )


def _inner(tree: Join | Leaf) -> bool:
    return isinstance(tree, Join) and tree.kind == "inner"


def _spine(tree: Join | Leaf) -> Iterator[Join]:
    while isinstance(tree, Join) and tree.kind == "inner":
        yield tree
        tree = tree.inputs[0]


def _work_text(work: JoinWork) -> str:
    stored = f" and {work.stored} stored rows" if work.stored else ""
    return f"{work.queries:.3g} probes{stored}"
