"""Explains which edges of a plan carry changes, and why; the others only grow and pay nothing for it."""

from collections.abc import Iterator

from joinlib.model.operator import Operator
from joinlib.model.stage import AnyStage, GroupStage, Pipeline, Stage
from joinlib.plan.explain.stage import called, spoken, title


def edges(plan: Pipeline) -> Iterator[str]:
    """Yield a line for each edge, each once; none where all edges are append-only."""
    yield from dict.fromkeys(_edges(plan))


def _edges(plan: Pipeline) -> Iterator[str]:
    if not any(stage.changes for stage in plan.stages) and not plan.changes:
        return
    for number, stage in enumerate(plan.stages):
        yield from _inputs(stage)
        if isinstance(stage, Stage):
            for join in stage.operators:
                yield from _operator(stage, join)
        else:
            what = "group" if isinstance(stage, GroupStage) else "row"
            why = (
                f"a {what} is taken back when it changes"
                if stage.changes
                else f"a {what} is emitted when it is final"
            )
            yield f"{'groups' if isinstance(stage, GroupStage) else 'window functions'}: {_kind(stage.changes)}: {why}"
        for reader, _ in plan.readers(number):
            yield f"stage {number} to stage {reader}: {_kind(stage.changes)}"
    yield f"result: {_kind(plan.changes)}"


def _inputs(stage: AnyStage) -> Iterator[str]:
    upserts = any(join.kind == "upsert" for join in stage.operators)
    for plan in stage.inputs:
        if plan.upstream is None:
            taken = "the last row of a key counts" if upserts else "its rows may be deleted"
            why = taken if plan.changes else "its rows only come"
            yield f"{called(plan)}: {_kind(plan.changes)}: {why}"


def _operator(stage: Stage, join: Operator) -> Iterator[str]:
    if join.kind == "upsert":
        return
    of = f"{title(join)} of {', '.join(spoken(stage, child) for child in join.children)}"
    if not join.changes:
        yield f"{of}: {_kind(False)}: what it joins only grows"
    elif join.eager:
        yield f"{of}: {_kind(True)}: rows are emitted without waiting for partners"
    else:
        yield f"{of}: {_kind(True)}: what it joins may be deleted"


def _kind(changes: bool) -> str:
    return "changes" if changes else "append"
