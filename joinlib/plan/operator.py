"""Which operator joins, by which route and index? Law: the choice changes the cost, never the answer.

an equality                       by the hash of the key, n-way; strategy biclique: ContRand, hot keys over several units
an equality, comparisons          strategy inequality: by the hash of the key to its unit, there the rows of a key are sorted
no equality, comparisons          join-biclique by random routing, stored rows sorted (strategy inequality)
no equality, anything else        the same, every stored row is looked at (strategy biclique)
"""

from dataclasses import dataclass, replace

from joinlib.errors import SpecError
from joinlib.expr import Expr
from joinlib.expr.compare import Comparison
from joinlib.expr.logic import is_null, negate
from joinlib.join.config import Index, Meet
from joinlib.plan.theta import decides, meets
from joinlib.route.config import Biclique, Group
from joinlib.sql import Node, Scan
from joinlib.sql.graph import Clause, aliases

_COMPARES = "join.strategy inequality needs a comparison of a column of one input with one of the other"


@dataclass(frozen=True)
class Choice:
    """How a stage's rows are routed and found."""

    route: Biclique | None = None
    index: Index = "hash"
    meets: tuple[Meet, ...] = ()
    never: tuple[
        Clause, ...
    ] = ()  # the join's conditions, where rows that have a NULL in them are not stored
    decided: tuple[Clause, ...] = ()  # those that the index says exactly


def chosen(tree: Node | Scan, units: int, strategy: str, subgroups: int | None = None) -> Choice:
    """The operator of a query's joins; SpecError where the strategy that is asked for cannot run it."""
    if isinstance(tree, Scan):
        return Choice()
    if tree.holders[0]:
        return _keyed(tree, units, strategy, subgroups)
    if strategy in ("multiway", "binary"):
        raise SpecError(f"join.strategy {strategy} joins by equality, and this join has none; write auto")
    if subgroups not in (None, 1):
        raise SpecError(
            f"join.subgroups is {subgroups}, but a join without equality has no key to tell subgroups by; leave it out"
        )
    found, decided = _found(tree)
    if strategy == "inequality" and not found:
        raise SpecError(f"{_COMPARES}; write biclique")
    sorts = found and strategy != "biclique"
    return Choice(halves(units), "sorted" if sorts else "scan", found, tree.predicate, decided)


def _found(tree: Node) -> tuple[tuple[Meet, ...], tuple[Clause, ...]]:
    """What an index can find of the join's conditions, and those of which it says all."""
    left = min(tree.children[0].aliases)
    found = meets([c.value for c in tree.predicate], tree.bounds, left)
    return found, tuple(c for c in tree.predicate if decides(c.value, left))


def _keyed(tree: Node, units: int, strategy: str, subgroups: int | None) -> Choice:
    if strategy != "biclique" and subgroups is not None:
        raise SpecError("join.subgroups is for join.strategy biclique; write that, or leave it out")
    if strategy in ("auto", "multiway", "binary"):
        return Choice()
    simple = (
        tree.kind == "inner" and len(tree.children) == 2 and all(isinstance(c, Scan) for c in tree.children)
    )
    if strategy == "inequality":
        found, decided = _found(tree)
        if not simple:
            raise SpecError("join.strategy inequality is for the INNER join of two inputs; write auto")
        if not found:
            raise SpecError(f"{_COMPARES}; write auto")
        return Choice(None, "sorted", found, tree.predicate, decided)
    if not simple:
        raise SpecError(
            "join.strategy biclique is for the INNER join of two inputs: where partners may lie in several units, none can"
            " say that a row has no other; write auto"
        )
    if subgroups is not None and (subgroups < 1 or subgroups & (subgroups - 1)):
        raise SpecError(f"join.subgroups is {subgroups}; it must be a power of two")
    return Choice(shared(units, subgroups or units))


def halves(units: int) -> Biclique:
    """Random routing: half the units for each input; one unit alone stores both."""
    half = max(units // 2, 1)
    return Biclique((Group(0, half, 1), Group(units - half, half, 1)))


def shared(units: int, subgroups: int) -> Biclique:
    """ContRand. Every unit stores both inputs: a key of one unit needs no second copy to find its partners."""
    group = Group(0, units, min(subgroups, units))
    return Biclique((group, group))


def present(scan: Scan, choice: Choice) -> Scan:
    """The scan without the rows that match nothing, since a value that is compared is NULL: they are never stored."""
    sides = {s.sql: s for clause in choice.never for s in _compared(clause.value, scan.alias)}
    known = {c.value.sql for c in scan.filter}
    wanted = [negate(is_null(side)) for side in sides.values()]
    place = choice.never[0].place if choice.never else (1, 1)
    return replace(scan, filter=(*scan.filter, *(Clause(w, place) for w in wanted if w.sql not in known)))


def _compared(clause: Expr, alias: str) -> list[Expr]:
    """The sides of a comparison that read this input only."""
    node = clause.node
    if not isinstance(node, Comparison) or node.sign == "<=>":
        return []
    return [side for side in (node.left, node.right) if aliases(side) == {alias}]
