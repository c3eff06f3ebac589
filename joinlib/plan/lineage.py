"""Of which columns of inputs is a column of a result made, and on which does it depend which rows there are?

    SELECT o.id, sum(p.v) AS s FROM orders o JOIN payments p ON o.id = p.order WHERE o.x > 0 GROUP BY o.id

        id    IDENTITY orders.id
        s     AGGREGATION payments.v
        rows  JOIN orders.id, payments.order; FILTER orders.x; GROUP_BY orders.id

The words are those of OpenLineage. Law: if the values of a column change, those columns of the result change that
name it, and other rows are there only if the rows do. A test for NULL that the plan adds counts as a filter, except in
joins by paths, where there is one for every key. Cost: one walk over the plan.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import StrEnum
from typing import Any

import pyarrow as pa

from joinlib.expr import Expr, Ref
from joinlib.expr.logic import Case
from joinlib.expr.nodes import Above
from joinlib.model.inputs import InputPlan
from joinlib.model.joins import Join, Leaf, Lookup
from joinlib.model.maps import Map
from joinlib.model.over import Over
from joinlib.model.stage import AnyStage, GroupStage, HopStage, NamedResult, OverStage, PathStage, Pipeline
from joinlib.plan.paths import as_asked


class Effect(StrEnum):
    """How a column has its part in another: the first three as what it is made of."""

    IDENTITY = "IDENTITY"
    TRANSFORMATION = "TRANSFORMATION"
    AGGREGATION = "AGGREGATION"
    CONDITIONAL = "CONDITIONAL"
    WINDOW = "WINDOW"
    JOIN = "JOIN"
    FILTER = "FILTER"
    GROUP_BY = "GROUP_BY"

    @property
    def direct(self) -> bool:
        """Whether values come from the column's values."""
        return self in _DIRECT

    def then(self, later: "Effect") -> "Effect":
        """Return what this effect is of what a later step makes of its outcome."""
        if self.direct and later.direct:
            return max(self, later, key=_DIRECT.index)
        return self if later.direct else later


_DIRECT = (Effect.IDENTITY, Effect.TRANSFORMATION, Effect.AGGREGATION)


@dataclass(frozen=True, order=True)
class Influence:
    """The part that a column of an input has."""

    source: str
    column: str
    effect: Effect


Influences = frozenset[Influence]
_Known = Mapping[str, Influences]  # by the name of a column
_NONE: Influences = frozenset()


@dataclass(frozen=True)
class Lineage:
    """Where rows come from."""

    columns: _Known
    rows: Influences = _NONE  # what decides which rows there are


def lineage(pipeline: Pipeline, result: NamedResult) -> Lineage:
    """Return where the rows of a result come from."""
    made = dict[int, Lineage]()
    for number, stage in enumerate(pipeline.stages[: result.stage + 1]):
        made[number] = _stage(stage, made)
    return made[result.stage]


def _stage(stage: AnyStage, made: Mapping[int, Lineage]) -> Lineage:
    if isinstance(stage, HopStage):  # its tuples have the columns that the stage of the state has stored
        below = stage.inputs[0].upstream
        assert below is not None
        return _selected(stage, made[below]) if stage.last else made[below]
    inputs = (as_asked(stage) if isinstance(stage, PathStage) else stage).inputs
    read = _united([_input(plan, made) for plan in inputs])
    if isinstance(stage, GroupStage):
        return _groups(stage, read)
    if isinstance(stage, OverStage):
        return _over(stage.over, read)
    joined = Lineage(read.columns, read.rows.union(*_joins(stage.tree, read.columns)))
    return joined if isinstance(stage, PathStage) else _selected(stage, joined)


def _input(plan: InputPlan, made: Mapping[int, Lineage]) -> Lineage:
    """Return where the stored columns of an input come from."""
    if plan.upstream is None:
        names = [name for name in plan.read if not name.startswith("$")]
        own = {name: frozenset([Influence(plan.source, name, Effect.IDENTITY)]) for name in names}
        given = Lineage(own)
    else:
        given = made[plan.upstream]
    for step in plan.maps:
        given = _mapped(step, given)
    known = {**given.columns, **{f"{plan.alias}.{name}": found for name, found in given.columns.items()}}
    columns = {c.name: _value(c.value, known) for c in plan.columns}
    return Lineage(columns, given.rows | _as(Effect.FILTER, _values(plan.filter, known)))


def _mapped(step: Map, given: Lineage) -> Lineage:
    known = dict(given.columns)
    for expand in step.expands:
        value = _as(Effect.TRANSFORMATION, _value(expand.value, known))
        known |= dict.fromkeys(expand.columns, value)
    rows = given.rows | _as(Effect.FILTER, _values(step.filter, known))
    return Lineage({name: _value(value, known) for name, value in step.columns}, rows)


def _joins(tree: Join | Leaf, known: _Known) -> Iterator[Influences]:
    """Yield what decides which rows a tree of joins emits. That the last row of a key counts is the input's own."""
    if isinstance(tree, Leaf):
        return
    for child in tree.inputs:
        yield from _joins(child, known)
    if tree.kind == "upsert":
        return
    compared = [name for keys in tree.keys for name in keys]
    compared += [name for bound in tree.bounds for name in (bound.left, bound.right)]
    yield _as(Effect.JOIN, _named(compared, known) | _values(tree.predicate, known))
    yield _as(Effect.FILTER, _values(tree.where, known))


def _selected(stage: Any, joined: Lineage) -> Lineage:
    """Return where the select list of a stage comes from, behind its lookups."""
    for lookup in stage.lookups:
        joined = _looked_up(lookup, joined)
    return Lineage({c.name: _value(c.value, joined.columns) for c in stage.select}, joined.rows)


def _looked_up(lookup: Lookup, joined: Lineage) -> Lineage:
    table = _input(lookup.table, {})
    both = _united([joined, table])
    matched = _values(lookup.predicate, both.columns) | _named(lookup.table.keys, table.columns)
    matched = matched.union(*(_value(probe, both.columns) for probe in lookup.probe))
    where = _as(Effect.FILTER, _values(lookup.where, both.columns))
    return Lineage(both.columns, both.rows | _as(Effect.JOIN, matched) | where)


def _groups(stage: GroupStage, read: Lineage) -> Lineage:
    grouping, known = stage.grouping, dict(read.columns)
    for call in grouping.every:
        known[call.name] = _as(Effect.AGGREGATION, _named([name for name, _ in call.arguments], known))
    keys = _as(Effect.GROUP_BY, _named([key.name for key in grouping.keys], known))
    rows = read.rows | keys | _as(Effect.FILTER, _values(grouping.having, known))
    return Lineage({name: _value(value, known) for name, value in grouping.select}, rows)


def _over(over: Over, read: Lineage) -> Lineage:
    known = dict(read.columns)
    for call in over.calls:
        given = _as(Effect.TRANSFORMATION, _named([name for name, _ in call.arguments], known))
        near = _as(Effect.WINDOW, _named([*over.partition, *(key.column for key in call.order)], known))
        when = _as(Effect.CONDITIONAL, _named([call.condition] if call.condition else [], known))
        known[call.name] = given | near | when
    present = _named([name for name in over.present or () if name], known)
    rows = read.rows | _as(Effect.FILTER, _values(over.qualify, known) | present)
    return Lineage({name: _value(value, known) for name, value in over.select}, rows)


# --- expressions --------------------------------------------------------------------------------------


def _value(value: Expr, known: _Known) -> Influences:
    """Return where a value comes from. Parts of a lambda are no columns, and are not known."""
    return frozenset(_node(value.node, known))


def _values(value: Expr | None, known: _Known) -> Influences:
    return _NONE if value is None else _value(value, known)


def _node(node: Any, known: _Known) -> Iterable[Influence]:
    if isinstance(node, Ref):
        return known.get(node.name, _NONE)
    if isinstance(node, Expr):
        return _node(node.node, known)
    if isinstance(node, Above):
        return _node(node.node, {name: frozenset(_node(below, known)) for name, below in node.below})
    if isinstance(node, Case):
        chosen = _as(Effect.TRANSFORMATION, _parts(node.values, known))
        return chosen | _as(Effect.CONDITIONAL, _parts(node.conditions, known))
    if is_dataclass(node):
        return _as(Effect.TRANSFORMATION, _parts([getattr(node, f.name) for f in fields(node)], known))
    if isinstance(node, pa.Scalar) or not isinstance(node, Sequence) or isinstance(node, str | bytes):
        return _NONE  # a constant is a sequence where it is a list
    return _parts(node, known)


def _parts(nodes: Iterable[Any], known: _Known) -> Influences:
    return frozenset(one for node in nodes for one in _node(node, known))


def _named(names: Iterable[str], known: _Known) -> Influences:
    return _NONE.union(*(known.get(name, _NONE) for name in names))


def _as(effect: Effect, found: Iterable[Influence]) -> Influences:
    """Return what influences are when a step with this effect has used what they have made."""
    return frozenset(Influence(one.source, one.column, one.effect.then(effect)) for one in found)


def _united(parts: Sequence[Lineage]) -> Lineage:
    """Return the lineage of rows that stand beside each other, or are united."""
    names = dict.fromkeys(name for part in parts for name in part.columns)
    columns = {name: _NONE.union(*(part.columns.get(name, _NONE) for part in parts)) for name in names}
    return Lineage(columns, _NONE.union(*(part.rows for part in parts)))
