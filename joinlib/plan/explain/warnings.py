"""Collects all that a plan warns of, each time with the operator that it is about."""

from collections.abc import Iterator

from joinlib.expr.bound import Bound
from joinlib.model.bounds import describe
from joinlib.model.operator import Operator
from joinlib.model.stage import AnyStage, GroupStage, HopStage, PathStage, Pipeline, Stage
from joinlib.plan.explain.biclique import warnings
from joinlib.plan.explain.cross import cautions as cross_cautions
from joinlib.plan.explain.endless import of_join, of_paths, of_stage
from joinlib.plan.explain.groups import by_keys
from joinlib.plan.explain.groups import cautions as group_cautions
from joinlib.plan.explain.maps import cautions as map_cautions
from joinlib.plan.explain.over import summary
from joinlib.plan.explain.paths import origins
from joinlib.plan.explain.retention import unbounded
from joinlib.plan.explain.stage import called, spoken, title
from joinlib.plan.explain.words import parts
from joinlib.plan.explain.words import spoken as in_words
from joinlib.plan.memory import cautions as memory_cautions


def cautions(plan: Pipeline) -> Iterator[str]:
    """Yield each warning of a plan once."""
    yield from dict.fromkeys(_cautions(in_words(plan)))


def _cautions(plan: Pipeline) -> Iterator[str]:
    yield from plan.notes
    for number, stage in enumerate(plan.stages):
        place = f"stage {number}, " if len(plan.stages) > 1 else ""
        yield from (f"{place}{caution}" for caution in _stage(plan, number, stage))
    yield from cross_cautions(plan)
    yield from memory_cautions(plan)
    yield from map_cautions(plan)


def _stage(plan: Pipeline, number: int, stage: AnyStage) -> Iterator[str]:
    if isinstance(stage, Stage):
        for join in reversed(stage.operators):
            of = ", ".join(spoken(stage, child) for child in join.children)
            said = [*of_join(plan, stage, join), *_late(join), *warnings(stage, join), *_never(join.bounds)]
            yield from (f"{title(join)} of {of}: {caution}" for caution in said)
        return
    if isinstance(stage, PathStage):
        joined = ", ".join(map(called, origins(stage)))
        told = [*of_paths(plan, stage), *_never(stage.tree.bounds)]
        yield from (f"join by paths of {joined}: {caution}" for caution in told)
    if isinstance(stage, PathStage | HopStage):
        return
    said = [*of_stage(plan, stage)]
    if isinstance(stage, GroupStage):
        by = by_keys(stage.grouping, stage.inputs[0].alias) or "nothing"
        what = f"groups by {by}" if stage.grouping.calls else f"distinct {by}"
        said += group_cautions(plan, stage.grouping)
    else:
        what = summary(stage)
    known = parts(plan)
    names = dict.fromkeys(
        known.get(i.alias, i.alias) for _, i in plan.readers(number) if not i.alias.startswith("$")
    )
    yield from (f"{', '.join(names) or what}: {caution}" for caution in said)


def _late(join: Operator) -> Iterator[str]:
    """Warn of rows that come out at the end only."""
    alone = join.sides if join.kind == "full" else join.sides[:1]
    if join.kind in ("left", "full", "anti") and any(map(unbounded, alone)) and not join.eager:
        yield "rows without a partner are emitted only when the inputs are closed: no bound on the time"


def _never(bounds: tuple[Bound, ...]) -> Iterator[str]:
    """Warn of time bounds that no pair of rows can meet."""
    for bound in bounds:
        if None not in (bound.low_us, bound.high_us) and bound.low_us > bound.high_us:  # type: ignore[operator]
            yield f"no pair of rows can match: {describe(bound)}"
