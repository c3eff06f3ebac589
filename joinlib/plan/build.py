"""The join graph as a stage: numbers for names, bounds from the retention, columns to store."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from types import MappingProxyType

import pyarrow as pa

from joinlib.errors import SpecError
from joinlib.expr import Expr
from joinlib.expr.bound import Bound
from joinlib.expr.cast import cast
from joinlib.expr.logic import all_of
from joinlib.join.config import Caching, Join, Leaf, Lookup, Range
from joinlib.join.stage import OutputColumn, Stage
from joinlib.plan.columns import Need, input_plan, key_column, need, upstream_plan
from joinlib.plan.merge import chain
from joinlib.plan.operator import Choice, chosen, present
from joinlib.plan.source import SourceInput
from joinlib.plan.window import counted
from joinlib.route.config import StoredColumn
from joinlib.sql import KeyClass, Node, Query, RangeEnd, Result, Scan, Table, analyse
from joinlib.sql import Lookup as AskedLookup
from joinlib.sql.bounds import intersect
from joinlib.sql.graph import inputs, kept

STRATEGIES = ("auto", "multiway", "binary", "biclique", "inequality")


def build(
    sql: str,
    inputs: Mapping[str, SourceInput],
    *,
    units: int,
    retention_us: int | None = None,
    strategy: str = "auto",
    subgroups: int | None = None,
    window_rows: int | None = None,
) -> Stage:
    """The one stage that answers the query over these inputs, by name; SqlError where they share no key."""
    asked = Asked(inputs, units, retention_us, strategy, subgroups, window_rows)
    query = analyse(sql, asked.tables)
    tree = timed(query, asked)
    return stage(query, tree, bounded([tree]), asked)


@dataclass(frozen=True)
class Asked:
    """What is asked for beside the text."""

    inputs: Mapping[str, SourceInput]
    units: int
    retention_us: int | None = None
    strategy: str = "auto"
    subgroups: int | None = None
    window_rows: int | None = None

    def __post_init__(self) -> None:
        _check(self.units, self.retention_us, self.strategy)

    @property
    def tables(self) -> dict[str, Table]:
        """The inputs as the text may name them."""
        return {n: Table(n, i.schema, i.time, i.role == "stream") for n, i in self.inputs.items()}


def timed(query: Query, asked: Asked) -> Node | Scan:
    """The tree with all that bounds the time of its rows."""
    tree = query.tree if asked.retention_us is None else _retained(query.tree, asked.retention_us)
    tree = tree if asked.window_rows is None else counted(tree, asked.window_rows, asked.inputs)
    return chain(tree) if asked.strategy == "binary" else tree


def stage(
    query: Query,
    tree: Node | Scan,
    times: frozenset[str],
    asked: Asked,
    types: Mapping[str, pa.DataType] = MappingProxyType({}),
) -> Stage:
    """The query as a stage. `times`: columns among bounds, its own and later ones; `types`: of earlier stages' columns."""
    choice = chosen(tree, asked.units, asked.strategy, asked.subgroups)
    wanted = need(query, tree, times)
    plans = tuple(
        upstream_plan(i, s, query.classes, wanted, types)
        if isinstance(s, Result)
        else input_plan(i, present(s, choice), asked.inputs[s.table.name], query.classes, wanted)
        for i, s in enumerate(query.scans)
    )
    return Stage(
        inputs=plans,
        tree=_join(tree, {s.alias: i for i, s in enumerate(query.scans)}, query.classes, choice),
        select=tuple(OutputColumn(name, value) for name, value in query.select),
        timed=bool(times),
        final_close=_waits(tree),
        units=asked.units,
        lookups=tuple(
            _lookup(number, looked, asked.inputs[looked.scan.table.name], wanted)
            for number, looked in enumerate(query.lookups)
        ),
        route=choice.route,
        index=choice.index,
    )


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
    """By a range where there is no equality; with one, where both ends are known and the whole table is kept."""
    return not asked.keys or (None not in (asked.low, asked.high) and caching.mode != "incremental")


def _end(alias: str, name: str, end: RangeEnd | None) -> tuple[StoredColumn, Expr] | None:
    """The column of a table that is one end of its ranges, and the point that is compared with it."""
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
    """A database can only be asked for keys that its columns hold."""
    if caching.mode == "full" or (None not in columns and not ranged):
        return caching
    if caching.mode == "incremental":
        why = "this join looks for ranges" if ranged else "a key of this join is computed from its columns"
        raise SpecError(
            f"{alias}: cache: incremental asks the database for keys, but {why}; join on plain columns, or write"
            " cache: full"
        )
    return replace(caching, mode="full")


def _check(units: int, retention_us: int | None, strategy: str) -> None:
    if units < 1 or units & (units - 1):
        raise SpecError(f"join.units is {units}; it must be a power of two")
    if retention_us is not None and retention_us <= 0:
        raise SpecError(f"join.retention is {retention_us} µs; it must be positive")
    if strategy not in STRATEGIES:
        raise SpecError(f"join.strategy is {strategy!r}; it must be one of {', '.join(STRATEGIES)}")


def _retained(tree: Node | Scan, retention_us: int) -> Node | Scan:
    """Retention R as a predicate: |t1 - t2| <= R for every pair of times that a node brings together."""
    if isinstance(tree, Scan):
        return tree
    times = [_times(c) for c in tree.children]
    pairs = [(a, b) for one, two in combinations(times, 2) for a in one for b in two]
    more = [Bound(a, b, -retention_us, retention_us) for a, b in pairs]
    children = tuple(_retained(c, retention_us) for c in tree.children)
    return replace(tree, children=children, bounds=intersect([*tree.bounds, *more]))


def _times(tree: Node | Scan) -> list[str]:
    """Event-time columns of the rows of a child, those never filled with NULL."""
    if isinstance(tree, Result):
        return [t for s in inputs(tree) if s.alias in kept(tree) for t in _times(s)]
    if isinstance(tree, Scan):
        if tree.table.time is None:
            raise SpecError(
                f"join.retention needs the time of every row; give input {tree.table.name} an eventTime"
            )
        return [f"{tree.alias}.{tree.table.time}"]
    alive = kept(tree)
    return [t for c in tree.children for t in _times(c) if t.partition(".")[0] in alive]


def bounds(tree: Node | Scan) -> list[Bound]:
    """All bounds of a tree."""
    if isinstance(tree, Scan):
        return []
    return [*tree.bounds, *(b for c in tree.children for b in bounds(c))]


def bounded(trees: Iterable[Node | Scan]) -> frozenset[str]:
    """The event times that bounds speak of."""
    return frozenset(c for tree in trees for b in bounds(tree) for c in (b.left, b.right))


def _waits(tree: Node | Scan) -> bool:
    """Does some row come out only when no partner can come any more?"""
    if isinstance(tree, Scan):
        return False
    return tree.kind in ("left", "full", "anti") or any(_waits(c) for c in tree.children)


def _join(
    tree: Node | Scan, numbers: Mapping[str, int], classes: tuple[KeyClass, ...], choice: Choice
) -> Join | Leaf:
    if isinstance(tree, Scan):
        return Leaf(numbers[tree.alias])

    def keys(holders: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(key_column(a, i, c).name for i, (a, c) in enumerate(zip(holders, classes, strict=True)))

    return Join(
        kind=tree.kind,
        inputs=tuple(_join(c, numbers, classes, choice) for c in tree.children),
        keys=tuple(keys(h) for h in tree.holders),
        bounds=tree.bounds,
        predicate=all_of([c.value for c in tree.predicate]),
        where=all_of([c.value for c in tree.where]),
        meets=choice.meets,
        residual=all_of([c.value for c in tree.predicate if c not in choice.decided]),
    )
