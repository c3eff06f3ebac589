"""Builds a stage from an analysed query: inputs get numbers, retention
becomes bounds, stored columns are listed.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from types import MappingProxyType

import pyarrow as pa

from joinlib.errors import SpecError
from joinlib.expr import Expr
from joinlib.expr.bound import Bound
from joinlib.expr.cast import cast
from joinlib.expr.logic import all_of
from joinlib.model.inputs import InputPlan, StoredColumn
from joinlib.model.joins import Caching, Join, Leaf, Lookup, Range
from joinlib.model.operator import Operator
from joinlib.model.stage import OutputColumn, Stage, above
from joinlib.plan import once
from joinlib.plan.columns import Need, input_plan, key_column, need, upstream_plan
from joinlib.plan.decide import PathChooser
from joinlib.plan.layout import layout
from joinlib.plan.merge import chain
from joinlib.plan.operator import Choice, chosen, present
from joinlib.plan.options import JoinOptions
from joinlib.plan.order import Decide, as_written
from joinlib.plan.source import SourceInput
from joinlib.plan.window import counted
from joinlib.sql import JoinNode, KeyClass, Query, RangeEnd, Result, Scan, Table, analyse
from joinlib.sql import LookupJoin as AskedLookup
from joinlib.sql.bounds import intersect
from joinlib.sql.graph import inputs, preserved


@dataclass(frozen=True)
class Request:
    """The inputs that a query may name, by name, and the options of the join."""

    inputs: Mapping[str, SourceInput]
    options: JoinOptions
    eager: bool = False  # outer joins do not wait: rows without a partner are taken back when one comes
    chooser: PathChooser = field(default_factory=PathChooser)  # of the joins that are done by paths
    decide: Decide = as_written  # in which order inner joins by several keys become stages

    @property
    def tables(self) -> dict[str, Table]:
        """The inputs as tables that the SQL text may name."""
        return {
            n: Table(n, i.schema, i.time, i.role == "stream", i.behind_us, i.rising, i.keeps_failed)
            for n, i in self.inputs.items()
        }


def build(sql: str, inputs: Mapping[str, SourceInput], options: JoinOptions) -> Stage:
    """Plan a query whose joins all share one key as a single stage.

    Raises:
        SqlError: if the inputs share no key, so that one stage cannot join them.
    """
    request = Request(inputs, options)
    query = analyse(sql, request.tables)
    tree = timed(query, request)
    return stage(query, tree, bounded([tree]), request)


def timed(query: Query, request: Request) -> JoinNode | Scan:
    """Add the time bounds of the options (retention, row window) to the
    tree; make it a chain for strategy binary.
    """
    tree = (
        query.tree
        if request.options.retention_us is None
        else _retained(query.tree, request.options.retention_us)
    )
    tree = (
        tree
        if request.options.window_rows is None
        else counted(tree, request.options.window_rows, request.inputs)
    )
    return chain(tree) if request.options.strategy == "binary" else tree


def stage(
    query: Query,
    tree: JoinNode | Scan,
    times: frozenset[str],
    request: Request,
    types: Mapping[str, pa.DataType] = MappingProxyType({}),
) -> Stage:
    """Plan one query as a stage.

    `times` names the event-time columns that bounds of this stage or of later ones compare. `types` maps the
    qualified names of all columns to their types; only stages that read earlier stages need it.
    """
    choice = chosen(tree, request.options)
    wanted = need(query, tree, times, request.options)
    plans = _inputs(query, choice, wanted, request, types)
    if request.options.once and query.paths is None and once.possible(tree, plans):
        both = _inputs(query, choice, once.united(wanted, plans), request, types, columns=True)
        if once.alike(both, choice):
            plans, choice = once.twins(both), once.routed(choice)
    joined = _join(tree, {s.alias: i for i, s in enumerate(query.scans)}, query.classes, choice)
    select = tuple(OutputColumn(name, value) for name, value in query.select)
    lookups = tuple(
        _lookup(number, looked, request.inputs[looked.scan.table.name], wanted)
        for number, looked in enumerate(query.lookups)
    )
    stored = request.options.stored.joined
    root = layout(joined, plans, above(select, lookups), choice.index, request.eager, stored)
    return Stage(
        inputs=plans,
        tree=joined,
        root=root,
        select=select,
        timed=bool(times),
        final_close=_waits(tree) and not request.eager,
        units=request.options.units,
        lookups=lookups,
        route=choice.route,
        index=choice.index,
        changes=changes(root, plans),
    )


def _inputs(
    query: Query,
    choice: Choice,
    wanted: Need,
    request: Request,
    types: Mapping[str, pa.DataType],
    columns: bool = False,
) -> tuple[InputPlan, ...]:
    return tuple(
        upstream_plan(i, s, query.classes, wanted, types)
        if isinstance(s, Result)
        else input_plan(i, present(s, choice, columns), request.inputs[s.table.name], query.classes, wanted)
        for i, s in enumerate(query.scans)
    )


def changes(root: Operator | Leaf, inputs: Sequence[InputPlan]) -> bool:
    """Return whether a stage emits changes."""
    return inputs[root.input].changes if isinstance(root, Leaf) else root.changes


def _lookup(number: int, asked: AskedLookup, source: SourceInput, wanted: Need) -> Lookup:
    alias = asked.scan.alias
    classes = [KeyClass({alias: key}, kind) for key, kind in zip(asked.keys, asked.types, strict=True)]
    columns = tuple(key.column and key.column.removeprefix(f"{alias}.") for key in asked.keys)
    low, high = (_end(alias, *end) for end in (("low", asked.low), ("high", asked.high)))
    ranged = _ranged(asked, source.caching)
    ends = [end for end in (low, high) if end and ranged]
    return Lookup(
        kind=asked.kind,
        table=input_plan(number, asked.scan, source, classes, wanted, [column for column, _ in ends]),
        probe=tuple(cast(e, kind) for e, kind in zip(asked.probe, asked.types, strict=True)),
        key_columns=columns,
        predicate=all_of([c.value for c in asked.predicate]),
        where=all_of([c.value for c in asked.where]),
        caching=_caching(alias, columns, source.caching, ranged),
        range=_range(low, high) if ranged else None,
    )


def _ranged(asked: AskedLookup, caching: Caching) -> bool:
    """Whether the lookup searches by range.

    It does where there is no equality. Besides an equality it does where both ends of the range are known and
    the cache is not incremental.
    """
    return not asked.keys or (None not in (asked.low, asked.high) and caching.mode != "incremental")


def _end(alias: str, name: str, end: RangeEnd | None) -> tuple[StoredColumn, Expr] | None:
    """Return the table's column that is one end of its ranges, and the point that is compared with it."""
    if end is None:
        return None
    value = cast(end.table, end.type)
    return StoredColumn(value.column or f"{alias}.${name}", value), cast(end.point, end.type)


def _range(low: tuple[StoredColumn, Expr] | None, high: tuple[StoredColumn, Expr] | None) -> Range:
    return Range(
        low[0].name if low else None,
        low[1] if low else None,
        high[0].name if high else None,
        high[1] if high else None,
    )


def _caching(alias: str, columns: tuple[str | None, ...], caching: Caching, ranged: bool) -> Caching:
    """Return the caching that this lookup can use: a database can only be
    queried by keys that are plain columns.

    Raises:
        SpecError: if the spec demands incremental caching and this lookup cannot use it.
    """
    if caching.mode == "full" or (None not in columns and not ranged):
        return caching
    if caching.mode == "incremental":
        why = "this join looks for ranges" if ranged else "a key of this join is computed from its columns"
        raise SpecError(
            f"{alias}: cache: incremental asks the database for keys, but {why}; join on plain columns, or"
            " write cache: full"
        )
    return replace(caching, mode="full")


def _retained(tree: JoinNode | Scan, retention_us: int) -> JoinNode | Scan:
    """Express retention R as bounds: |t1 - t2| <= R for every pair of
    event times that a node brings together.
    """
    if isinstance(tree, Scan):
        return tree
    times = [_times(c) for c in tree.children]
    pairs = [(a, b) for one, two in combinations(times, 2) for a in one for b in two]
    more = [Bound(a, b, -retention_us, retention_us) for a, b in pairs]
    children = tuple(_retained(c, retention_us) for c in tree.children)
    return replace(tree, children=children, bounds=intersect([*tree.bounds, *more]))


def _times(tree: JoinNode | Scan) -> list[str]:
    """The event-time columns in the output of `tree` that are never filled with NULL.

    Raises:
        SpecError: if an input has no event time.
    """
    if isinstance(tree, Result):
        return [t for s in inputs(tree) if s.alias in preserved(tree) for t in _times(s)]
    if isinstance(tree, Scan):
        if tree.table.time is None:
            if tree.table.name.startswith("$"):
                raise SpecError(
                    "join.retention needs the time of every row, and this query joins rows that follow no event time"
                    " (of groups, ranks or joins that may be taken back); bound the time in ON instead"
                )
            raise SpecError(
                f"join.retention needs the time of every row; give input {tree.table.name} an eventTime"
            )
        return [f"{tree.alias}.{tree.table.time}"]
    alive = preserved(tree)
    return [t for c in tree.children for t in _times(c) if t.partition(".")[0] in alive]


def bounds(tree: JoinNode | Scan) -> list[Bound]:
    """Collect the time bounds of all joins in the tree."""
    if isinstance(tree, Scan):
        return []
    return [*tree.bounds, *(b for c in tree.children for b in bounds(c))]


def bounded(trees: Iterable[JoinNode | Scan]) -> frozenset[str]:
    """The event-time columns that the trees' bounds compare."""
    return frozenset(c for tree in trees for b in bounds(tree) for c in (b.left, b.right))


def _waits(tree: JoinNode | Scan) -> bool:
    """Whether some rows are emitted only when no partner can arrive any more."""
    if isinstance(tree, Scan):
        return False
    return tree.kind in ("left", "full", "anti") or any(_waits(c) for c in tree.children)


def _join(
    tree: JoinNode | Scan, numbers: Mapping[str, int], classes: tuple[KeyClass, ...], choice: Choice
) -> Join | Leaf:
    if isinstance(tree, Scan):
        return Leaf(numbers[tree.alias])

    def keys(holders: tuple[str, ...]) -> tuple[str, ...]:
        """The key columns of one child; empty for a join that does not look rows up by key."""
        pairs = zip(holders, classes, strict=bool(holders))
        return tuple(key_column(a, i, c).name for i, (a, c) in enumerate(pairs) if a)

    return Join(
        kind=tree.kind,
        inputs=tuple(_join(c, numbers, classes, choice) for c in tree.children),
        keys=tuple(keys(h) for h in tree.holders),
        bounds=tree.bounds,
        predicate=all_of([c.value for c in tree.predicate]),
        where=all_of([c.value for c in tree.where]),
        index_conditions=choice.index_conditions,
        residual=all_of([c.value for c in tree.predicate if c not in choice.decided]),
        everywhere=tree.right == "everywhere",
    )
