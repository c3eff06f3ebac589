"""Explains the groups of a plan: what is computed where, when a group is emitted, and what is kept."""

import re
from collections.abc import Iterator

from joinlib.expr.types import name
from joinlib.model.bags import bag_of, bags_of, distinct_of
from joinlib.model.grouping import Grouping
from joinlib.model.panes import panes_of
from joinlib.model.stage import GroupStage, Pipeline, Stage
from joinlib.plan.explain.stateful import CLOSED, settled, told
from joinlib.plan.explain.texts import FROM_KEPT, KEPT, bare
from joinlib.plan.explain.words import plain
from joinlib.spec.duration import text as duration

ENDLESS = (
    "the windows never end, as rows of any time may still come: make their time an eventTime, and bound the event"
    " times of joins in ON"
)
WINDOWS = re.compile(r"\(*(?:TUMBLE|HOP|CUMULATE)\(")


def grouped(plan: Pipeline, stage: GroupStage, reader: str) -> str:
    """Describe the second phase, which follows the inputs, and the result."""
    return told(stage, "Groups", _groups(plan, stage), reader)


def by_keys(grouping: Grouping, alias: str) -> str:
    """Name the keys in a line, but for ends of windows, which their beginnings tell."""
    keys = [plain(key.sql, alias) for key in grouping.keys]
    ends = {key for key in keys for begin in keys if key.startswith(f"{begin} + INTERVAL ")}
    ends |= {"session_end"} if "session_start" in keys else set()
    return ", ".join(key for key in keys if key not in ends)


def _groups(plan: Pipeline, stage: GroupStage) -> Iterator[str]:
    grouping = stage.grouping
    by = ", ".join(f"{key.sql} {name(key.kind or key.type)}" for key in grouping.keys)
    yield f"by      {by or 'nothing: all rows are one group'}"
    for call in grouping.calls:
        kept = "" if {call.name, call.sql} & grouping.read else f": {KEPT}"
        yield f"of      {call.sql} {name(call.type)}{kept}"
    for call in grouping.derived:
        yield f"of      {call.sql} {name(call.type)}: {FROM_KEPT}"
    if grouping.having is not None:
        yield f"having  {bare(grouping.having.sql)}"
    yield f"phase 1 {_makers(plan, stage)} one partial for each group and batch{_by_panes(stage)}"
    yield f"phase 2 {stage.units} units of groups, hashed by group, merge partials and keep them"
    yield f"out     {_moment(grouping)}"
    yield f"keeps   {_kept(grouping)}"
    for bag in bags_of(grouping):
        of = [c.sql for c in grouping.calls if bag in (distinct_of(c), bag_of(c, grouping.changes))]
        if bag.values:
            yield f"        and each different value of {', '.join(of)}, with how often it is there"


def _by_panes(stage: GroupStage) -> str:
    sizes = {found.size_us for i in stage.inputs if (found := panes_of(i, stage.grouping)) is not None}
    return f", of partials of panes of {' and '.join(duration(us) for us in sorted(sizes))}" if sizes else ""


def cautions(plan: Pipeline, grouping: Grouping) -> Iterator[str]:
    """Warn of groups that come out late, and of what two attempts of a batch may count differently."""
    if grouping.final_close and grouping.release is None:
        why = (
            ENDLESS
            if of_windows(grouping)
            else "none of their keys is an event time that the watermark passes; group by a window of one and bound"
            " the time between the inputs"
        )
        yield (
            f"groups are emitted only when the inputs are closed (--until-done): {why}, or write output.mode: changelog"
        )
    asked = [lookup.table.alias for _, lookup in plan.lookups if lookup.caching.mode != "full"]
    if asked:
        yield (
            f"rows of {', '.join(asked)} that are not in the cache are looked up again when a task is run"
            " again, and may have changed: then some groups hold what the first attempt found, and others"
            " what the second did; with cache: full both see the same table"
        )


def of_windows(grouping: Grouping) -> bool:
    """Return whether rows are grouped by windows of a time."""
    return any(WINDOWS.match(key.sql) for key in grouping.keys)


def _moment(grouping: Grouping) -> str:
    if grouping.changelog:
        return "for each group that a batch has changed: its old row goes, its new one comes"
    if grouping.eager:
        return "a group when it is new: nothing in it can change"
    release = grouping.release
    if release is None:
        return CLOSED
    return settled(release.behind_us, f"all of its {release.value.sql}")


def _kept(grouping: Grouping) -> str:
    if grouping.eager and grouping.release is None:
        return "which groups have been emitted"
    if grouping.eager:
        return "which groups have been emitted, until the watermark has passed their windows"
    if grouping.release is not None and grouping.changelog:
        return "groups until the watermark has passed their windows"
    if grouping.release is not None:
        return "groups until they are emitted"
    if not grouping.keys:
        return "the one group"
    return "groups until their last row is deleted" if grouping.changes else "all groups"


def _makers(plan: Pipeline, stage: GroupStage) -> str:
    """Say who makes partials."""
    below = {given.upstream for given in stage.inputs}
    if below == {None}:
        return "each task that reads the input makes"
    joins = all(n is not None and isinstance(plan.stages[n], Stage) for n in below)
    return "each unit of the join makes" if joins else "each unit of the stage before makes"
