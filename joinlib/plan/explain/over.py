"""Explains a stage of window functions: over which partitions, what is computed, and when rows come out."""

from joinlib.expr.types import name
from joinlib.model.stage import OverStage
from joinlib.spec.duration import text as duration


def ranked(stage: OverStage) -> str:
    """Describe the stage in several lines."""
    over = stage.over
    if over.present is not None:
        return _present(stage)
    lines = ["Window functions", f"  over    {', '.join(over.partition) or 'all rows, in one unit'}"]
    lines += [f"  of      {call.sql} {name(call.type)}" for call in over.calls]
    if over.qualify is not None:
        lines.append(f"  keeps   rows with {over.qualify.sql}")
    if over.changelog:
        lines.append("  out     for each partition that a batch has changed: what goes and what comes")
    elif over.time is not None:
        behind = f", {duration(over.behind_us)} behind," if over.behind_us else ""
        lines.append(f"  out     once, when the watermark{behind} has passed {over.time}")
    else:
        lines.append("  out     once, when the inputs are closed")
    columns = ", ".join(f"{field.name} {name(field.type)}" for field in over.schema)
    return "\n".join([*lines, "", "Result", f"  {columns}"])


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
