"""A query as stages, each with a key class of its own. Law: they give the rows that one join of everything would give.

Every condition and time bound is decided in the first stage that sees its inputs, and a stage gives just the columns that
later ones read. What an earlier stage's rows wait for, a later one's state waits for too: `forward` says how long that is where
all joins are inner or semi, and else the engine's own layout, which knows how long an outer join keeps a row back.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from joinlib.errors import SpecError
from joinlib.expr import ref
from joinlib.join.config import Leaf
from joinlib.join.stage import Pipeline, Stage
from joinlib.plan.build import Asked, bounded, bounds, stage, timed
from joinlib.plan.forward import forward
from joinlib.plan.grouping import grouping_of
from joinlib.plan.source import SourceInput
from joinlib.sql import Node, Query, Result, Scan, analyse_stages
from joinlib.sql.graph import inputs as inputs_below
from joinlib.sql.graph import scans


def pipeline(
    sql: str,
    inputs: Mapping[str, SourceInput],
    *,
    units: int,
    retention_us: int | None = None,
    strategy: str = "auto",
    subgroups: int | None = None,
    window_rows: int | None = None,
    changelog: bool = False,
) -> Pipeline:
    """The stages that answer the query: one where its inputs share a key, and then just what `build` gives."""
    asked = Asked(inputs, units, retention_us, strategy, subgroups, window_rows)
    queries = analyse_stages(sql, asked.tables, changelog)
    if len(queries) > 1:
        _check(asked)
    trees = [timed(query, asked) for query in queries]
    numbered = asked.window_rows is not None  # then row numbers are the stage's time
    grouping = grouping_of(queries, {} if numbered else _of_result(trees))
    alone = isinstance(trees[-1], Scan) and grouping and grouping.release
    # Rows behind the watermark are late then, though none is stored.
    more = frozenset([alone.column]) if alone else frozenset()
    return Pipeline(tuple(_told(_stages(queries, trees, asked, more), queries, trees)), grouping)


def _stages(
    queries: Sequence[Query],
    trees: Sequence[Node | Scan],
    asked: Asked,
    more: frozenset[str],
) -> list[Stage]:
    """The last one first: what it reads of an earlier one is all that that one gives. `more` times that matter."""
    types = {f"{s.alias}.{f.name}": f.type for q in queries for s in q.scans for f in s.table.schema}
    read: dict[int, tuple[str, ...]] = {}
    found: list[Stage] = []
    for number in reversed(range(len(queries))):
        query, tree = queries[number], trees[number]
        own = frozenset().union(*(scan.aliases for scan in query.scans))
        times = frozenset(c for c in bounded(trees[number:]) | more if c.partition(".")[0] in own)
        if number in read:
            query = replace(query, select=tuple((name, ref(name, types[name])) for name in read[number]))
        found.insert(0, stage(query, tree, times, asked, types))
        read |= {plan.upstream: plan.read for plan in found[0].inputs if plan.upstream is not None}
    return found


def _told(stages: Sequence[Stage], queries: Sequence[Query], trees: Sequence[Node | Scan]) -> Iterator[Stage]:
    """The stages, and how far behind the watermark the event times may be that each reads of earlier ones."""
    late: list[Mapping[str, int]] = []
    for bare, query, tree in zip(stages, queries, trees, strict=True):
        known = tuple(
            plan
            if plan.upstream is None or plan.time is None  # nothing is kept there by its rows' times
            else replace(plan, behind=_named(late[plan.upstream], {c.name for c in plan.columns}))
            for plan in bare.inputs
        )
        told = replace(bare, inputs=known)
        late.append(_forwarded(tree, late) if query.waits is None else _kept_back(told))
        yield told


def _named(late: Mapping[str, int], columns: Collection[str]) -> tuple[tuple[str, int], ...]:
    return tuple((time, us) for time, us in late.items() if time in columns)


def _forwarded(tree: Node | Scan, late: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """How far behind its watermark the event times of a stage's rows may be: inner and semi joins."""
    return forward([_times([s]) for s in scans(tree)], bounds(tree), _arriving(tree, late))


def _kept_back(stage: Stage) -> Mapping[str, int]:
    """The same of any stage."""
    if isinstance(stage.tree, Leaf):
        return {}
    from joinlib.join.layout import lateness  # numba: not for those who only build plans

    return lateness(stage.tree, stage.inputs, stage.above)


def _of_result(trees: Sequence[Node | Scan]) -> dict[str, int]:
    """The same of the result, where all bounds of all stages hold: inner and semi joins."""
    late: list[Mapping[str, int]] = []
    for tree in trees[:-1]:
        late.append(_forwarded(tree, late))
    every = [bound for tree in trees for bound in bounds(tree)]
    return forward([_times([s]) for s in scans(trees[-1])], every, _arriving(trees[-1], late))


def _arriving(tree: Node | Scan, found: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """How far behind the watermark event times are as their rows come in."""
    late: dict[str, int] = {}
    for scan in scans(tree):
        late |= found[scan.stage] if isinstance(scan, Result) else dict.fromkeys(_times([scan]), 0)
    return late


def _times(leaves: Sequence[Scan]) -> frozenset[str]:
    """The event times of their rows."""
    return frozenset(
        f"{s.alias}.{s.table.time}" for leaf in leaves for s in inputs_below(leaf) if s.table.time
    )


def _check(asked: Asked) -> None:
    """What several stages cannot do."""
    if asked.strategy not in ("auto", "multiway", "binary") or asked.subgroups is not None:
        raise SpecError(
            "join.strategy biclique and inequality, and join.subgroups, are for the INNER join of two inputs, and this query"
            " joins by several keys in turn; write auto, and leave subgroups out"
        )
    if asked.window_rows is not None:
        raise SpecError(
            "join.window.rows is for joins by one key: rows of a stage have no numbers; bound the time instead"
        )
