"""Lets time pass through stages that need none themselves, to later ones that do.

    DISTINCT k, ts of o  ─►  groups by hour(ts), final when the hour is over

What comes out of the groups depends on the watermark, so the stage of DISTINCT must hear how far `o` has been read.
A stage that joins hears its inputs by their event times anyway, if its joins bound any.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from joinlib.model.inputs import InputPlan
from joinlib.model.stage import AnyStage, GroupStage, OverStage, PathStage, Stage, read_once
from joinlib.plan.source import SourceInput

WATERMARK = "$watermark"  # what tells the time of rows of a stage


def with_clocks(stages: Sequence[AnyStage], inputs: Mapping[str, SourceInput]) -> tuple[AnyStage, ...]:
    """Return the stages, of which those hear their inputs' time whose watermark a later one needs."""
    found, needed = list(stages), set[int]()
    for number in reversed(range(len(stages))):
        if number in needed or _timed(found[number]):
            found[number] = stage = _hearing(found[number], inputs)
            needed |= {p.upstream for p in stage.inputs if p.upstream is not None and _hears(stage, p)}
    return tuple(found)


def clocked(stages: Sequence[AnyStage], number: int, inputs: Mapping[str, SourceInput]) -> bool:
    """Return whether some input below a stage has an event time."""
    return any(
        inputs[p.source].time is not None if p.upstream is None else clocked(stages, p.upstream, inputs)
        for p in read_once(stages[number])
    )


def _timed(stage: AnyStage) -> bool:
    """Return whether what a stage emits depends on its watermark."""
    if isinstance(stage, GroupStage):
        return stage.grouping.release is not None
    if isinstance(stage, OverStage):
        return stage.over.time is not None or stage.over.present is not None
    return any(p.time is not None for p in stage.inputs)


def _hears(stage: AnyStage, plan: InputPlan) -> bool:
    by_stage = plan.upstream is not None and not isinstance(stage, Stage | PathStage)
    return by_stage or plan.time is not None or plan.clock is not None


def _hearing(stage: AnyStage, inputs: Mapping[str, SourceInput]) -> AnyStage:
    """Return the stage so that it hears its inputs: one that joins without bounds, or any other."""
    joins = isinstance(stage, PathStage) or (isinstance(stage, Stage) and bool(stage.operators))
    if joins and any(_hears(stage, p) for p in stage.inputs):
        return stage
    return replace(stage, inputs=tuple(p if _hears(stage, p) else _told(p, inputs) for p in stage.inputs))


def _told(plan: InputPlan, inputs: Mapping[str, SourceInput]) -> InputPlan:
    if plan.upstream is not None:
        return replace(plan, clock=WATERMARK)
    given = inputs[plan.source]
    if given.time is None:
        return plan
    read = tuple(n for n in given.schema.names if n in {*plan.read, given.time})
    return replace(plan, clock=given.time, read=read, delay_us=given.delay_us, idle_us=given.idle_us)
