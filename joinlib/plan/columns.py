"""Decides which columns each input reads and stores.

Law: an input stores its keys, its event time where a bound needs it, and the columns that the select list and
the clauses read; besides them what a checkpoint has stored (`plan.follow`), and nothing else.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from joinlib.expr import Expr, ref
from joinlib.expr.cast import cast
from joinlib.expr.logic import all_of
from joinlib.model.inputs import ORDINAL, InputPlan, StoredColumn
from joinlib.plan.options import JoinOptions
from joinlib.plan.source import SourceInput
from joinlib.sql import JoinNode, KeyClass, Query, Result, Scan
from joinlib.sql.graph import inputs


@dataclass(frozen=True)
class Need:
    """The requirements of a tree on its inputs."""

    columns: frozenset[str]  # qualified names
    times: frozenset[str]  # event-time columns that bounds compare
    null_keys: frozenset[str]  # inputs whose rows with a NULL key are emitted
    apart: Mapping[str, Expr]  # input -> which of its rows go to unit 0, whatever their key
    copies: Mapping[str, int]  # input without a key -> the number of units that have its rows
    stored: Mapping[str, frozenset[str]]  # input -> columns that a checkpoint has stored of it

    def of(self, alias: str) -> frozenset[str]:
        """Return the columns to store of an input, among those of others."""
        return self.columns | self.stored.get(alias, frozenset())


def input_plan(
    number: int,
    scan: Scan,
    source: SourceInput,
    classes: Iterable[KeyClass],
    need: Need,
    more: Iterable[StoredColumn] = (),
) -> InputPlan:
    """Plan what the scan reads, filters and stores.

    `more`: columns to store besides the keys and what `need` names.
    """
    keys = [key_column(scan.alias, i, c) for i, c in enumerate(classes) if scan.alias in c.members]
    ordinal = f"{scan.alias}.{ORDINAL}"
    time = ordinal if ordinal in need.times else f"{scan.alias}.{source.time}" if source.time else None
    time = time if time in need.times else None
    plain = [ref(f"{scan.alias}.{f.name}", f.type) for f in scan.table.schema]
    if time == ordinal:
        plain.append(ref(ordinal, pa.int64()))
    # A deletion without its row is told by all columns: by some, it might take another row.
    columns = need.of(scan.alias)
    wanted = [
        StoredColumn(e.sql, e)
        for e in plain
        if e.sql in columns or e.sql == time or (source.skip_unknown and not source.upsert)
    ]
    stored = {c.name: c for c in (*keys, *wanted, *more)}
    filter = all_of([c.value for c in scan.filter])
    apart = need.apart.get(scan.alias)
    return InputPlan(
        number=number,
        alias=scan.alias,
        source=scan.table.name,
        read=_read(scan, [*(c.value for c in stored.values()), *(e for e in (filter, apart) if e)]),
        filter=filter,
        columns=tuple(stored.values()),
        keys=tuple(k.name for k in keys),
        time=time,
        delay_us=0 if time == ordinal else source.delay_us,
        idle_us=None if time == ordinal else source.idle_us,
        keep_null_keys=scan.alias in need.null_keys,
        apart=apart,
        copies=need.copies.get(scan.alias, 0),
        behind=((time, source.behind_us),) if time and source.behind_us else (),
        changes=source.changes,
        skip_unknown=source.skip_unknown,
    )


def upstream_plan(
    number: int, result: Result, classes: Iterable[KeyClass], need: Need, types: Mapping[str, pa.DataType]
) -> InputPlan:
    """Plan what is read and stored of an earlier stage's rows. `types`: of all columns, by qualified name."""
    keys = [key_column(result.alias, i, c) for i, c in enumerate(classes) if result.alias in c.members]
    apart = need.apart.get(result.alias)
    names = [f"{s.alias}.{f.name}" for s in inputs(result) for f in s.table.schema]
    times, columns = [name for name in names if name in need.times], need.of(result.alias)
    wanted = [StoredColumn(n, ref(n, types[n])) for n in names if n in columns or n in times]
    stored = {c.name: c for c in (*keys, *wanted)}
    used = {c for s in stored.values() for c in s.value.columns} | set(apart.columns if apart else ())
    return InputPlan(
        number=number,
        alias=result.alias,
        source=result.table.name,
        read=tuple(name for name in names if name in used),
        filter=None,
        columns=tuple(stored.values()),
        keys=tuple(k.name for k in keys),
        time=times[0] if times else None,
        delay_us=0,
        idle_us=None,
        keep_null_keys=result.alias in need.null_keys,
        upstream=result.stage,
        apart=apart,
    )


def _read(scan: Scan, values: list[Expr]) -> tuple[str, ...]:
    used = {c for v in values for c in v.columns}
    return tuple(n for n in scan.table.schema.names if f"{scan.alias}.{n}" in used)


def key_column(alias: str, number: int, key: KeyClass) -> StoredColumn:
    """The column itself if it has the key's type, else a computed column `$key<number>`."""
    value = cast(key.members[alias], key.type)
    return StoredColumn(value.column or f"{alias}.$key{number}", value)


def need(query: Query, tree: JoinNode | Scan, times: frozenset[str], options: JoinOptions) -> Need:
    """Collect what the tree, the lookups and the select list read, and where rows without a key go."""
    values = [v for _, v in query.select] + list(_clauses(tree))
    for lookup in query.lookups:
        values += [*lookup.probe, *(c.value for c in (*lookup.predicate, *lookup.where))]
    columns = frozenset(c for v in values for c in v.columns)
    # A single stream is routed by the key of its first lookup; an INNER lookup drops rows with a NULL key.
    alone = isinstance(tree, Scan)
    come_out = not (alone and query.lookups and query.lookups[0].kind in ("inner", "semi"))
    nodes = [node for node in _nodes(tree) if node.right != "keyed" or node.apart]
    apart = {a: node.apart for node in nodes if node.apart for a in node.children[0].aliases}
    unkeyed = {"apart": 1, "everywhere": options.units}
    copies = {a: unkeyed[n.right] for n in nodes if n.right in unkeyed for a in n.children[1].aliases}
    nulls = frozenset(_null_keys(tree, come_out))
    return Need(columns, times, nulls, apart, copies, options.stored.inputs)


def _nodes(tree: JoinNode | Scan) -> Iterator[JoinNode]:
    if isinstance(tree, JoinNode):
        yield tree
        for child in tree.children:
            yield from _nodes(child)


def _clauses(tree: JoinNode | Scan) -> Iterator[Expr]:
    if isinstance(tree, JoinNode):
        yield from (c.value for c in (*tree.predicate, *tree.where))
        for child in tree.children:
            yield from _clauses(child)


def _null_keys(tree: JoinNode | Scan, come_out: bool) -> Iterator[str]:
    """The inputs whose rows are emitted even without a partner, so that a NULL key must not drop them."""
    if isinstance(tree, Scan):
        if come_out:
            yield tree.alias
        return
    for number, child in enumerate(tree.children):
        kept = tree.kind == "full" or (tree.kind in ("left", "anti") and number == 0)
        yield from _null_keys(child, come_out and kept)
