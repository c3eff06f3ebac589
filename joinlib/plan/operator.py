"""Chooses the operator of a join, its routing and its index.

Law: the choice changes the cost, never the answer.

    an equality                  n-way, by the hash of the key; strategy biclique: ContRand spreads hot keys
    an equality, comparisons     strategy inequality: routed by the hash of the key, rows of a key are sorted
    no equality, a band          join-biclique by cells of values (ContRand), stored rows are sorted
    no equality, comparisons     join-biclique by random routing, stored rows are sorted (strategy inequality)
    no equality, anything else   the same, but every stored row is scanned (strategy biclique)
"""

from dataclasses import dataclass, replace

from joinlib.errors import SpecError
from joinlib.expr import Expr
from joinlib.expr.compare import Comparison
from joinlib.expr.logic import is_null, negate
from joinlib.model.inputs import Biclique, Cells, Group
from joinlib.model.joins import Index, IndexCondition
from joinlib.plan.cells import cells_of
from joinlib.plan.options import JoinOptions
from joinlib.plan.theta import decides, index_conditions, moved
from joinlib.sql import JoinNode, Scan
from joinlib.sql.graph import Clause, aliases

_COMPARES = "join.strategy inequality needs a comparison of a column of one input with one of the other"


@dataclass(frozen=True)
class Choice:
    """How a stage's rows are routed and indexed."""

    route: Biclique | None = None
    index: Index = "hash"
    index_conditions: tuple[IndexCondition, ...] = ()
    # Conditions that no NULL satisfies: rows with a NULL in one of them are not stored.
    never: tuple[Clause, ...] = ()
    decided: tuple[Clause, ...] = ()  # conditions that the index decides exactly


def chosen(tree: JoinNode | Scan, options: JoinOptions) -> Choice:
    """Choose the operator for the joins of a query.

    Raises:
        SpecError: if the strategy that the spec demands cannot run them.
    """
    units, strategy, subgroups = options.units, options.strategy, options.subgroups
    if isinstance(tree, Scan):
        return Choice()
    if tree.holders[0] or tree.kind != "inner":
        return _keyed(tree, units, strategy, subgroups)
    if strategy in ("multiway", "binary"):
        raise SpecError(f"join.strategy {strategy} joins by equality, and this join has none; write auto")
    found, decided = _index_conditions(tree)
    cells = cells_of(found) if options.cells else None
    if subgroups not in (None, 1) and cells is None:
        raise SpecError(
            f"join.subgroups is {subgroups}, but a join without equality has no key to choose subgroups by;"
            " leave it out"
        )
    if strategy == "inequality" and not found:
        raise SpecError(f"{_COMPARES}; write biclique")
    sorts = found and strategy != "biclique"
    route = halves(units) if cells is None or units == 1 or subgroups == 1 else _by_cells(options, cells)
    return Choice(route, "sorted" if sorts else "scan", found, _early(tree), decided)


def _by_cells(options: JoinOptions, cells: Cells) -> Biclique:
    return replace(shared(options.units, _power_of_two(options.subgroups or options.units)), cells=cells)


def _power_of_two(subgroups: int) -> int:
    if subgroups < 1 or subgroups & (subgroups - 1):
        raise SpecError(f"join.subgroups is {subgroups}; it must be a power of two")
    return subgroups


def _index_conditions(tree: JoinNode) -> tuple[tuple[IndexCondition, ...], tuple[Clause, ...]]:
    """The conditions of the join that an index can search by, and those of them that it decides exactly."""
    left = min(tree.children[0].aliases)
    early = _early(tree)
    found = index_conditions([c.value for c in early], tree.bounds, left)
    return found, tuple(c for c in early if decides(c.value, left))


def _early(tree: JoinNode) -> tuple[Clause, ...]:
    """The conditions by which rows are stored and found."""
    return tuple(clause for clause in tree.predicate if not clause.late)


def _keyed(tree: JoinNode, units: int, strategy: str, subgroups: int | None) -> Choice:
    if strategy != "biclique" and subgroups is not None:
        raise SpecError("join.subgroups is for join.strategy biclique; write that, or leave it out")
    if strategy in ("auto", "multiway", "binary", "stages", "paths"):
        return Choice()
    simple = (
        tree.kind == "inner" and len(tree.children) == 2 and all(isinstance(c, Scan) for c in tree.children)
    )
    if strategy == "inequality":
        found, decided = _index_conditions(tree)
        if not simple:
            raise SpecError("join.strategy inequality is for the INNER join of two inputs; write auto")
        if not found:
            raise SpecError(f"{_COMPARES}; write auto")
        return Choice(None, "sorted", found, _early(tree), decided)
    if not simple:
        raise SpecError(
            "join.strategy biclique is for the INNER join of two inputs: partners of a row may be in several"
            " units, so no unit can tell that it has none; write auto"
        )
    return Choice(shared(units, _power_of_two(subgroups or units)))


def halves(units: int) -> Biclique:
    """Random routing: each input is stored in half of the units; a single unit stores both."""
    half = max(units // 2, 1)
    return Biclique((Group(0, half, 1), Group(units - half, half, 1)))


def shared(units: int, subgroups: int) -> Biclique:
    """ContRand routing: every unit stores both inputs, so a key of one
    unit finds its partners without a copy.
    """
    group = Group(0, units, min(subgroups, units))
    return Biclique((group, group))


def present(scan: Scan, choice: Choice, columns: bool = False) -> Scan:
    """Filter out rows with NULL in a compared value: they match nothing, so they are never stored.

    columns: Whether the test is of `x` where `x + 5` is compared.
    """
    compared = (s for clause in choice.never for s in _compared(clause.value, scan.alias))
    sides = {s.sql: s for s in (moved(s)[0] if columns else s for s in compared)}
    known = {c.value.sql for c in scan.filter}
    wanted = [negate(is_null(side)) for side in sides.values()]
    place = choice.never[0].place if choice.never else (1, 1)
    return replace(scan, filter=(*scan.filter, *(Clause(w, place) for w in wanted if w.sql not in known)))


def _compared(clause: Expr, alias: str) -> list[Expr]:
    """The sides of a comparison that read only this input."""
    node = clause.node
    if not isinstance(node, Comparison) or node.sign == "<=>":
        return []
    return [side for side in (node.left, node.right) if aliases(side) == {alias}]
