"""Explains a stage of window functions: over which partitions, what is computed, what is kept, when rows come out."""

from collections.abc import Iterator

from joinlib.expr.types import name
from joinlib.model.over import Over
from joinlib.model.stage import OverStage
from joinlib.spec.duration import text as duration


def summary(stage: OverStage) -> str:
    """Say in a few words what the stage computes."""
    over = stage.over
    if over.top is not None and len(over.calls) == 1:
        function, most = over.calls[0].function, over.top[1]
        return f"the rows with {function} up to {most}" if most > 1 else f"the row with {function} 1"
    return ", ".join(dict.fromkeys(call.function for call in over.calls))


def by_partition(stage: OverStage) -> str:
    """Say over which partitions."""
    return f"for each {', '.join(stage.over.partition)}" if stage.over.partition else "over all rows"


def ranked(stage: OverStage) -> str:
    """Describe the stage in several lines."""
    if stage.over.present is not None:
        return _present(stage)
    columns = ", ".join(f"{field.name} {name(field.type)}" for field in stage.over.schema)
    lines = ["Window functions", *(f"  {line}" for line in _lines(stage)), "", "Result", f"  {columns}"]
    warned = [f"  - {line}" for line in cautions(stage)]
    return "\n".join(lines + (["", "Warnings", *warned] if warned else []))


def _present(stage: OverStage) -> str:
    """Describe rows that come and go with the watermark."""
    begin, end = stage.over.present or (None, None)
    lines = ["Rows of a time"]
    if begin is not None:
        lines.append(f"  come    when the watermark reaches {begin}")
    if end is not None:
        lines.append(f"  go      when the watermark reaches {end}")
    columns = ", ".join(f"{field.name} {name(field.type)}" for field in stage.over.schema)
    return "\n".join([*lines, "", "Result", f"  {columns}"])


def _lines(stage: OverStage) -> Iterator[str]:
    over = stage.over
    yield f"for     {', '.join(over.partition) or 'all rows, in one unit'}"
    for call in over.calls:
        yield f"of      {call.sql} {name(call.type)}"
    if over.qualify is not None:
        yield f"only    {over.qualify.sql}"
    yield f"out     {_moment(over)}"
    yield f"keeps   {_kept(over)}"


def _moment(over: Over) -> str:
    if over.changelog:
        return "for each partition that a batch touches: rows whose values change go and come"
    if over.settles_by is None:
        return "once, when the inputs are closed"
    behind = f", {duration(over.behind_us)} behind," if over.behind_us else ""
    last = "the end of the row's session" if over.sessions else over.settles_by
    return f"once, when the watermark{behind} has passed {last}; the rest when the inputs are closed"


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


def cautions(stage: OverStage) -> Iterator[str]:
    """Warn of state that grows without bound, and of work that one unit does alone."""
    over = stage.over
    if over.present is not None:
        return
    bounded = over.settles_by is not None or (over.top is not None and not over.changes)
    if over.top is not None and over.changes:
        yield (
            "its rows may be taken back, so those behind the last rank are kept too: they may move up; a batch goes"
            " through all rows of the partitions that it touches"
        )
    elif not over.partition and not bounded:
        yield (
            "there is no PARTITION BY: one unit keeps all rows forever, and goes through them in each batch; add"
            " PARTITION BY, or QUALIFY row_number() OVER (...) <= n"
        )
    elif not bounded:
        yield (
            "all rows are kept forever, and a batch goes through all rows of the partitions that it touches; functions that"
            " are ordered by an event time and look back forget rows in mode append"
        )
