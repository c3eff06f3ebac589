"""Turns the plan of an input over a named part of the query into plans of what feeds it.

    SELECT ... FROM recent r ...       recent: SELECT id, upper(x) AS x FROM orders WHERE x > 1

    r  reads x of recent   ─►   reads x of orders, maps: filter x > 1, x = upper(x)

Maps compute only the columns that are read, and the source only those that they need.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from joinlib.model.inputs import InputPlan
from joinlib.model.maps import Map
from joinlib.plan.source import Inflow, SourceInput


def feeds_of(name: str, given: SourceInput) -> tuple[Inflow, ...]:
    """Return what feeds an input, or a part of the query."""
    if given.feeds:
        return given.feeds
    changes = given.changes
    return (
        Inflow(
            name,
            given.schema,
            clock=given.time,
            delay_us=given.delay_us,
            idle_us=given.idle_us,
            changes=changes,
            skip_unknown=given.skip_unknown,
        ),
    )


def fed(plan: InputPlan, feed: Inflow, *, clocked: bool = False) -> InputPlan:
    """Return the plan of an input over a part of the query as one over its feed.

    clocked: the watermark counts although no event time is stored.
    """
    maps, read = needed(feed.maps, plan.read)
    heeds = clocked or plan.time is not None
    clock = feed.clock if heeds and feed.upstream is None else None
    used = {*read, *((clock,) if clock else ())}
    behind = ((plan.time, feed.behind_us),) if plan.time and feed.upstream is not None else ()
    return replace(
        plan,
        source=feed.source,
        read=tuple(n for n in feed.schema.names if n in used),
        upstream=feed.upstream,
        maps=maps,
        clock=clock,
        delay_us=feed.delay_us,
        idle_us=feed.idle_us if heeds else None,
        behind=behind,
        skip_unknown=feed.skip_unknown,
        settled=feed.settled,
        united=feed.united,
    )


def needed(maps: Sequence[Map], wanted: Iterable[str]) -> tuple[tuple[Map, ...], set[str]]:
    """Return the maps with the columns that are wanted of the last one, and the columns that they read."""
    read, found = set(wanted), list[Map]()
    for step in reversed(maps):
        columns = tuple(c for c in step.columns if c[0] in read)
        found.insert(0, replace(step, columns=columns))
        values = (
            [v for _, v in columns] + [e.value for e in step.expands] + ([step.filter] if step.filter else [])
        )
        added = {name for e in step.expands for name in e.columns}
        read = {name for value in values for name in value.columns} - added
    return tuple(found), read
