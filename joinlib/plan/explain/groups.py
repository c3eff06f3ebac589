"""Explains the groups of a plan: what is computed where, when a group is emitted, and what is kept."""

from collections.abc import Iterator

from joinlib.expr.types import name
from joinlib.model.bags import bag_of, bags_of, distinct_of
from joinlib.model.grouping import Grouping
from joinlib.model.stage import GroupStage, Pipeline, Stage
from joinlib.spec.duration import text as duration


def grouped(pipeline: Pipeline, grouping: Grouping) -> str:
    """Describe the second phase, which follows the join, and the result."""
    columns = ", ".join(f"{field.name} {name(field.type)}" for field in grouping.schema)
    lines = ["Groups", *(f"  {line}" for line in _groups(pipeline, grouping)), "", "Result", f"  {columns}"]
    warned = [f"  - {line}" for line in cautions(pipeline, grouping)]
    return "\n".join(lines + (["", "Warnings", *warned] if warned else []))


def _groups(pipeline: Pipeline, grouping: Grouping) -> Iterator[str]:
    by = ", ".join(f"{key.sql} {name(key.type)}" for key in grouping.keys)
    yield f"by      {by or 'nothing: all rows are one group'}"
    for call in grouping.calls:
        yield f"of      {call.sql} {name(call.type)}"
    if grouping.having is not None:
        yield f"having  {grouping.having.sql}"
    yield f"phase 1 {_makers(pipeline, grouping)} one partial for each group and batch"
    yield f"phase 2 {pipeline.units} units of groups, hashed by group, merge partials and keep them"
    yield f"out     {_moment(grouping)}"
    yield f"keeps   {_kept(grouping)}"
    for bag in bags_of(grouping):
        of = [c.sql for c in grouping.calls if bag in (distinct_of(c), bag_of(c, grouping.changes))]
        if bag.values:
            yield f"        and each different value of {', '.join(of)}, with how often it is there"


def cautions(pipeline: Pipeline, grouping: Grouping) -> Iterator[str]:
    """Warn of state that grows without bound, and of what two attempts of a batch may count differently."""
    if grouping.final_close and grouping.release is None:
        yield (
            "groups are emitted only when the inputs are closed (--until-done): none of them is an event"
            " time that the watermark passes; group by date_trunc of one and bound the time between the"
            " inputs, or write output.mode: changelog"
        )
    elif not grouping.final_close and grouping.keys and grouping.release is None:
        yield (
            "every group is kept forever, since it may change or come again; state grows with the number of"
            " groups"
            if not grouping.changes
            else "a group is kept until its last row is deleted; state grows with the number of groups"
        )
    asked = [lookup.table.alias for _, lookup in pipeline.lookups if lookup.caching.mode != "full"]
    if asked:
        yield (
            f"rows of {', '.join(asked)} that are not in the cache are looked up again when a task is run"
            " again, and may have changed: then some groups hold what the first attempt found, and others"
            " what the second did; with cache: full both see the same table"
        )


def _moment(grouping: Grouping) -> str:
    if grouping.changelog:
        return "for each group that a batch has changed: its old row goes, its new one comes"
    if grouping.eager:
        return "a group when it is new: nothing in it can change"
    release = grouping.release
    if release is None:
        return "once, when the inputs are closed"
    behind = f", {duration(release.behind_us)} behind," if release.behind_us else ""
    return (
        f"once, when the watermark{behind} has passed all of its {release.value.sql}; the rest when the"
        " inputs are closed"
    )


def _kept(grouping: Grouping) -> str:
    if grouping.eager and grouping.release is None:
        return "which groups have been emitted"
    if grouping.eager:
        return "which groups have been emitted, until the watermark has passed their windows"
    return "groups until they are emitted" if grouping.release is not None else "all groups"


def _makers(pipeline: Pipeline, grouping: Grouping) -> str:
    """Say who makes partials."""
    stage = next(s for s in pipeline.stages if isinstance(s, GroupStage) and s.grouping == grouping)
    below = {None if plan.upstream is None else plan.upstream for plan in stage.inputs}
    if below == {None}:
        return "each task that reads the input makes"
    joins = all(n is not None and isinstance(pipeline.stages[n], Stage) for n in below)
    return "each unit of the join makes" if joins else "each unit of the stage before makes"
