"""Warns of operators whose state never shrinks, and says which clause would bound it.

A row that is kept until it is deleted is kept forever if nothing deletes it: rows of inputs that only grow, and of
groups that are. What a group keeps forever its readers keep too: that is told of the group alone.
"""

from collections.abc import Iterator

from joinlib.expr.bound import Bound
from joinlib.model.bags import bags_of
from joinlib.model.inputs import InputPlan
from joinlib.model.joins import Leaf
from joinlib.model.operator import Operator
from joinlib.model.side import SideConfig
from joinlib.model.stage import (
    AnyStage,
    GroupStage,
    HopStage,
    OverStage,
    PathStage,
    Pipeline,
    Stage,
    read_once,
)
from joinlib.plan.explain.groups import ENDLESS, of_windows
from joinlib.plan.explain.paths import forever
from joinlib.plan.explain.retention import unbounded
from joinlib.plan.explain.stage import called, spoken

_RECENT = "read recent rows only (WHERE t > now() - INTERVAL 1 DAY, t an eventTime)"


def of_stage(plan: Pipeline, stage: GroupStage | OverStage) -> Iterator[str]:
    """Warn of groups, or of window functions."""
    yield from _groups(plan, stage) if isinstance(stage, GroupStage) else _over(plan, stage)


def of_join(plan: Pipeline, stage: Stage, join: Operator) -> Iterator[str]:
    """Warn of one join of a stage."""
    kept = [
        spoken(stage, child)
        for child, side in zip(join.children, join.sides, strict=True)
        if join.kind != "upsert" and unbounded(side) and _stays(plan, stage, child)
    ]
    yield from _kept(kept, join.sides, join.bounds)


def of_paths(plan: Pipeline, stage: PathStage) -> Iterator[str]:
    """Warn of a join by paths."""
    kept = [called(given) for given in forever(stage) if _kept_for_ever(plan, given)]
    yield from _kept(kept, stage.sides, stage.tree.bounds)


def _kept(kept: list[str], sides: tuple[SideConfig, ...], bounds: tuple[Bound, ...]) -> Iterator[str]:
    if kept:
        verb = "is" if len(kept) == 1 else "are"
        yield f"{' and '.join(kept)} {verb} kept forever, state grows with every row; {_bound(sides, bounds)}"


def _stays(plan: Pipeline, stage: Stage, child: Operator | Leaf) -> bool:
    """Whether rows that a join keeps until they are deleted stay forever, and nobody else is to be told so."""
    if isinstance(child, Operator):
        return _emits(plan, stage, child)
    return _kept_for_ever(plan, stage.inputs[child.input])


def _kept_for_ever(plan: Pipeline, given: InputPlan) -> bool:
    below = None if given.upstream is None else plan.stages[given.upstream]
    told = isinstance(below, GroupStage | OverStage) and below.changes and any(of_stage(plan, below))
    return grows(plan, given) and not told


def _bound(sides: tuple[SideConfig, ...], bounds: tuple[Bound, ...]) -> str:
    """Say what would let a join forget."""
    if any(side.mutable for side in sides):
        return f"only deletions shrink it: {_RECENT}"
    missing = [
        f"{bound.right} <= {bound.left} + INTERVAL 1 HOUR"
        if bound.high_us is None
        else f"{bound.left} <= {bound.right} + INTERVAL 1 HOUR"
        for bound in bounds
        if None in (bound.low_us, bound.high_us)
    ]
    between = " AND ".join(missing) or "a.t BETWEEN b.t - INTERVAL 1 HOUR AND b.t"
    return f"bound the event times in ON ({between}), or set join.retention"


# --- groups and window functions ----------------------------------------------------------------------


def _groups(plan: Pipeline, stage: GroupStage) -> Iterator[str]:
    grouping = stage.grouping
    if grouping.release is not None or not _fed(plan, stage):
        return
    final = ", in output.mode: append" if grouping.changes else ""
    clause = ENDLESS if of_windows(grouping) and not final else f"group by a window of an event time{final}"
    if grouping.keys and grouping.calls:
        yield f"every group is kept forever, state grows with the number of groups; {clause}, or {_RECENT}"
    elif grouping.keys:
        clause = f"have a window of an event time among its columns{final}"
        yield f"every different row is kept forever, state grows with their number; {clause}, or {_RECENT}"
    elif any(bag.values for bag in bags_of(grouping)):
        yield f"each different value is kept forever, state grows with their number; {clause}, or {_RECENT}"


def _over(plan: Pipeline, stage: OverStage) -> Iterator[str]:
    over = stage.over
    by = ", ".join(over.partition)
    if over.present is not None or not _fed(plan, stage):
        return
    if over.top is not None and over.changes:
        yield (
            "its rows may be taken back, so those behind the last rank are kept forever too: they may move up; a batch"
            f" goes through all rows of the partitions that it touches; {_RECENT}"
        )
    elif over.top is not None:
        if by:
            yield f"the first rows of each {by} are kept forever, state grows with the number of these; {_RECENT}"
    elif over.settles_by is not None:
        if by and not over.sessions:
            yield (
                f"what later rows need is kept of each {by} forever, state grows with the number of these; write"
                f" output.mode: changelog, and {_RECENT}"
            )
    elif not by:
        yield (
            "there is no PARTITION BY: one unit keeps all rows forever, and goes through them in each batch; add"
            " PARTITION BY, or QUALIFY row_number() OVER (...) <= n"
        )
    else:
        yield (
            "all rows are kept forever, and a batch goes through all rows of the partitions that it touches; functions that"
            f" are ordered by an event time and look back forget rows in mode append; or {_RECENT}"
        )


# --- what grows ---------------------------------------------------------------------------------------


def grows(plan: Pipeline, given: InputPlan) -> bool:
    """Whether an input has more and more rows at the same time: nothing deletes them."""
    if given.upstream is None:
        return not given.changes
    stage = plan.stages[given.upstream]
    if isinstance(stage, Stage):
        return _emits(plan, stage, stage.root)
    if isinstance(stage, GroupStage):
        return bool(stage.grouping.keys) and _fed(plan, stage)
    if isinstance(stage, PathStage | HopStage):
        return _fed(plan, stage)
    over = stage.over
    if over.present is not None and over.present[1] is not None:
        return False
    few = over.top is not None and not over.partition
    return not few and _fed(plan, stage)


def _fed(plan: Pipeline, stage: AnyStage) -> bool:
    return any(grows(plan, given) for given in read_once(stage))


def _emits(plan: Pipeline, stage: Stage, tree: Operator | Leaf) -> bool:
    """Whether the rows that a tree of joins has emitted, and not taken back, grow in number."""
    if isinstance(tree, Leaf):
        inputs = stage.inputs if tree is stage.root else (stage.inputs[tree.input],)
        return any(grows(plan, given) for given in inputs)
    if tree.kind == "upsert":
        return False
    emitted = tree.children[:1] if tree.kind in ("semi", "anti") else tree.children
    return any(_emits(plan, stage, child) for child in emitted)
