"""The summary of a run when it is over."""

import os
from pathlib import Path

from jobs.cli import words
from jobs.cli.screen import Scene, table_line
from joinlib.spec.model import StreamJoin
from joinlib.spec.output import Output


def summary(scene: Scene, document: StreamJoin) -> str:
    """Return a few lines: the rows in, the rows out and where they are."""
    title = "stopped; run again to go on" if scene.stopping else "done"
    figures = scene.figures
    if figures is None or not figures.batches:
        return f"{title}: no new rows"
    seconds = max(figures.marks[-1].at - figures.began, 0.01)
    rows = sum(figures.rows_in)
    made = {name: f"out {name}".rstrip() if name else "rows out" for name in document.spec.results}
    width = max(len(label) for label in (*made.values(), *(i.label for i in scene.inputs)))
    rate = words.number(rows / seconds)
    lines = [
        f"{title}: {words.counted(figures.batches, 'batches')} in {words.seconds(seconds)}, {rate} rows/s"
    ]
    for at, shown in enumerate(scene.inputs):
        late = f", {words.number(figures.late[at])} late and left out" if figures.late[at] else ""
        passed = " that pass its filter" if shown.filtered else ""
        skipped = scene.behind(shown, "skipped")
        bad = f", {skipped} files skipped" if skipped else ""
        if lost := scene.behind(shown, "lost"):
            bad += f", {words.counted(lost, 'messages')} gone before they were read"
        if figures.bad[at]:
            bad += f", {words.counted(figures.bad[at], 'messages')} could not be decoded"
        lines.append(
            f"  {shown.label:{width}}  {words.number(figures.rows_in[at]):>12} rows in{passed}{late}{bad}"
        )
    for name, output in document.spec.results.items():
        rows_out = scene.rows_out.get(name, figures.rows_out)
        lines.append(
            f"  {made[name]:{width}}  {words.number(rows_out):>12}{' rows' if name else ''}{_where(output)}"
        )
    lines.append(
        f"  {'state':{width}}  {words.number(figures.state_rows):>12} rows, {words.size(figures.state_bytes)}"
    )
    if dead := sum(figures.dead.values()):
        box = document.spec.dead_letters
        to = f" to {near(box.path)}" if box is not None else ""
        lines.append(f"  {'dead':{width}}  {words.number(dead):>12} letters{to}")
    lines += [f"  {'table':{width}}  {table_line(*table)}" for table in figures.tables.items()]
    return "\n".join(lines)


def _where(output: Output) -> str:
    if output.kafka:
        return f" to topic {output.kafka.topic}"
    if output.postgres:
        return f" to table {output.postgres.table}"
    return f" to {near(output.files.path)}" if output.files else ""


def near(path: str | Path) -> str:
    """Return the path relative to the working folder, if that is shorter."""
    there = os.path.relpath(path)
    return there if len(there) < len(str(path)) else str(path)
