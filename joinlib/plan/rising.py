"""Which columns of a part of the query follow an event time, and how far behind the watermark they may be.

    part                       columns that rise
    map                        those computed of rising ones: the time itself, starts and ends of windows
    union                      those that rise in all its parts
    join                       the event time of each input, and what differs from it by a constant
    groups, final at a time    the key that says so, and what differs from it by a constant
    window functions, final    the time that they go by; for sessions, their ends

Rows that are final come out when the watermark passes them, so they are no further behind the watermark before it
than they were when they came in. Rows that may be taken back follow no time.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from joinlib.expr import Expr
from joinlib.expr.behind import Rising, behind, risen
from joinlib.expr.types import is_timestamp
from joinlib.model.grouping import Grouping
from joinlib.model.maps import Map
from joinlib.model.over import Over
from joinlib.plan.source import SourceInput
from joinlib.sql.graph import Scan

Times = Mapping[str, Rising]


def of_map(step: Map, below: SourceInput) -> tuple[Rising, ...]:
    """Return the columns of a map that rise."""
    layer = f"{len(below.feeds[0].maps) if below.feeds else 0}:"
    known = dict(below.times)
    for expand in step.expands:
        late = behind(expand.value, {name: rising.behind_us for name, rising in known.items()})
        name, kind = expand.added[-1]
        if late is not None and is_timestamp(kind):
            known[name] = Rising(name, late, f"{layer}{expand.value.sql}")
    return risen(step.columns, known, layer)


def of_union(sides: Sequence[SourceInput]) -> tuple[Rising, ...]:
    """Return the columns that rise in all sides, which have the same names."""
    found = []
    for name, first in sides[0].times.items():
        each = [side.times.get(name) for side in sides]
        if all(each):
            every = [r for r in each if r is not None]
            family = "|".join(f"{r.family}{r.offset_us - first.offset_us:+d}" for r in every)
            found.append(Rising(name, max(r.behind_us for r in every), family, first.offset_us))
    return tuple(found)


def of_scans(scans: Iterable[Scan], late: Mapping[str, int], alone: bool) -> dict[str, Rising]:
    """Return the rising columns of rows that are joined of these inputs, by qualified name.

    late: µs that their event times may be behind the watermark in these rows. alone: the rows are those of one input.
    """
    found = {}
    for scan in scans:
        own = scan.table.times
        time = own.get(scan.table.time or "")
        for name, rising in own.items():
            full, family = f"{scan.alias}.{name}", f"{scan.alias}.{rising.family}"
            if alone:
                found[full] = replace(rising, column=full, family=family)
            elif (
                time is not None
                and f"{scan.alias}.{scan.table.time}" in late
                and rising.family == time.family
            ):
                us = late[f"{scan.alias}.{scan.table.time}"] - (rising.offset_us - time.offset_us)
                found[full] = Rising(full, us, family, rising.offset_us)
    return found


def of_groups(grouping: Grouping, columns: Iterable[tuple[str, Expr]], below: Times) -> tuple[Rising, ...]:
    """Return the columns of groups that rise. `columns`: the rows that they are made of, computed of `below`."""
    if grouping.changelog or grouping.changes:
        return ()
    keys = {key.name for key in grouping.keys}
    rising = risen([(name, value) for name, value in columns if name in keys], below, "g:")
    if grouping.final_close:
        final = next(
            (r for r in rising if grouping.release is not None and r.column == grouping.release.key), None
        )
        rising = tuple(r for r in rising if final is not None and r.family == final.family)
    return risen(grouping.select, {r.column: r for r in rising}, "o:")


def of_over(over: Over, alias: str, below: Times) -> tuple[Rising, ...]:
    """Return the columns of window functions that rise."""
    if over.settles_by is None:
        return ()
    if over.sessions:
        ends = [c.name for c in over.calls if c.function == "session_end"]
        return risen(over.select, {name: Rising(name, over.behind_us, "session") for name in ends}, "o:")
    known = {f"{alias}.{name}": rising for name, rising in below.items()}
    time = known.get(over.settles_by)
    return risen(
        over.select, {n: r for n, r in known.items() if time is not None and r.family == time.family}, "o:"
    )


def with_time(given: SourceInput, column: str) -> SourceInput:
    """Return a part of the query whose event time is this column, which rises."""
    late = max(given.times[column].behind_us, 0)
    feeds = tuple(replace(f, behind_us=late) if f.upstream is not None else f for f in given.feeds)
    return replace(given, time=column, behind_us=late, feeds=feeds)


def choices(given: SourceInput) -> list[str]:
    """Return the columns that can be the event time of a part, the best first.

    Rows of an input are late by their event time, which must then not be behind that of the input; rows of a stage
    are never late.
    """
    own = [given.time] if given.time is not None else []
    of_stages = all(feed.upstream is not None for feed in given.feeds)
    others = sorted(
        (r for r in given.times.values() if r.behind_us <= 0 or of_stages), key=lambda r: r.behind_us
    )
    return [*own, *(r.column for r in others if r.column != given.time)]


def timed(given: SourceInput) -> SourceInput:
    """Return a part of the query with the event time that it has at best."""
    if given.time is not None or not (names := choices(given)):
        return given
    return with_time(given, names[0])
