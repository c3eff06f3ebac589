"""Explains what groups and window functions have in common: what they read, what comes out of them, and when."""

from collections.abc import Iterable

from joinlib.expr.types import name
from joinlib.model.stage import GroupStage, OverStage, selected
from joinlib.plan.explain.stage import reads
from joinlib.plan.explain.texts import bare
from joinlib.spec.duration import text as duration

CLOSED = "once, when the inputs are closed"


def told(stage: GroupStage | OverStage, title: str, lines: Iterable[str], reader: str) -> str:
    """Describe a stage in several lines. `reader`: who takes its rows."""
    columns = (
        f"{column} {name(value.type)}"
        if column in (value.column, bare(value.sql)) or value.sql.endswith(f".{column}")
        else f"{column} = {bare(value.sql)}, {name(value.type)}"
        for column, value in selected(stage)
    )
    parts = [
        ["Inputs", *(f"  {line}" for given in stage.inputs for line in reads(given))],
        [title, *(f"  {line}" for line in lines)],
        [reader, *(f"  {column}" for column in columns)],
    ]
    return "\n\n".join("\n".join(part) for part in parts)


def settled(behind_us: int, passed: str) -> str:
    """Say that rows are final once the watermark has passed something."""
    behind = f", {duration(behind_us)} behind," if behind_us else ""
    return f"once, when the watermark{behind} has passed {passed}; the rest when the inputs are closed"
