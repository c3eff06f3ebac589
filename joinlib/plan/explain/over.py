"""Explains a stage of window functions: over which partitions, what is computed, what is kept, when rows come out."""

from collections.abc import Iterator

from joinlib.expr.types import name
from joinlib.model.over import Over
from joinlib.model.stage import OverStage
from joinlib.plan.explain.asof import asof, in_sides
from joinlib.plan.explain.stateful import CLOSED, settled, told
from joinlib.plan.explain.texts import bare
from joinlib.plan.explain.words import plain
from joinlib.spec.duration import text as duration


def summary(stage: OverStage) -> str:
    """Say in a few words what the stage computes."""
    if stage.over.present is not None:
        return "rows of a time"
    return asof(stage) or plain(_computed(stage.over), stage.inputs[0].alias)


def _computed(over: Over) -> str:
    each = f" of each {by}" if (by := ", ".join(over.partition)) else ""
    if over.sessions:
        gap = over.calls[0].number
        gap += gap % 1000 == 999  # Spark's sessions end before a row that is so far behind
        return f"sessions by {over.calls[0].order[0].column}, {duration(gap)} apart{each}"
    calls = ", ".join(call.sql for call in over.calls)
    if over.top is None or len(over.calls) > 1:
        return f"{calls}{f'  only {bare(over.qualify.sql)}' if over.qualify is not None else ''}"
    function, most = over.calls[0].function, over.top[1]
    rows = "first row" if most == 1 else f"first {most} rows"
    if function != "row_number":
        rows = f"rows with {function} up to {most}"
    order = ", ".join(f"{k.column}{' DESC' if k.descending else ''}" for k in over.calls[0].order)
    return f"{rows}{each} by {order}"


def ranked(stage: OverStage, reader: str) -> str:
    """Describe the stage in several lines."""
    if stage.over.present is not None:
        return told(stage, "Rows of a time", _present(stage.over.present), reader)
    if joined := asof(stage):
        stage = in_sides(stage)
        return told(stage, "As-of join", _nearest(stage, joined), reader)
    return told(stage, "Window functions", _lines(stage), reader)


def _nearest(stage: OverStage, joined: str) -> Iterator[str]:
    """Describe an as-of join, of which the right side has at most one row for each of the left."""
    what, _, on = joined.partition(" on ")
    yield f"join    {what}"
    yield f"on      {on}, the nearest"
    for call in stage.over.calls:
        yield f"takes   {call.sql} {name(call.type)}"
    if stage.over.qualify is not None:
        yield f"only    {stage.over.qualify.sql}"
    yield f"out     {_moment(stage.over)}"
    yield f"keeps   {_kept(stage.over)}"


def _present(present: tuple[str | None, str | None]) -> Iterator[str]:
    """Describe rows that come and go with the watermark."""
    begin, end = present
    if begin is not None:
        yield f"come    when the watermark reaches {begin}"
    if end is not None:
        yield f"go      when the watermark reaches {end}"


def _lines(stage: OverStage) -> Iterator[str]:
    over = stage.over
    yield f"for     {', '.join(over.partition) or 'all rows, in one unit'}"
    for call in over.calls:
        yield f"of      {call.sql} {name(call.type)}"
    if over.qualify is not None:
        yield f"only    {bare(over.qualify.sql)}"
    if over.cuts and over.top is not None:
        sources = all(plan.upstream is None for plan in stage.inputs)
        who = "each task that reads the input" if sources else "each task of the stage before"
        yield f"phase 1 {who} sends, of each partition, only its rows up to rank {over.top[1]}"
        yield f"phase 2 {stage.units} units, hashed by partition, compare them with those they keep"
    yield f"out     {_moment(over)}"
    yield f"keeps   {_kept(over)}"


def _moment(over: Over) -> str:
    if over.changelog:
        return "for each partition that a batch touches: rows whose values change go and come"
    if over.settles_by is None:
        return CLOSED
    return settled(over.behind_us, "the end of the row's session" if over.sessions else over.settles_by)


def _kept(over: Over) -> str:
    if over.settles_by is not None:
        return (
            "rows until they come out, and of each partition what later rows need: counts, sums, the rows that"
            " frames and lag still reach"
            if not over.sessions
            else "rows until their session is over"
        )
    if over.top is not None and not over.changes:
        return f"of each partition the rows up to rank {over.top[1]}: others cannot come back, as rows are only added"
    return "all rows" if not over.changes else "all rows that are not deleted"
