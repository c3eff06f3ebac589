"""Plans what changes: which inputs and results do, the upserts in front of joins, and the result's key.

    orders {upsert: {key: [id]}}  ─► upsert by id: the last row of each key ─► -old, +new ─► join
    join ─► changes of the result ─► by the output's key ─► sink        so one unit sees all changes of a key

Edges that are append-only carry no weights and pay nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import pyarrow as pa

from joinlib.errors import SpecError
from joinlib.expr import ref
from joinlib.model.inputs import HASH, UNCHANGED, InputPlan, StoredColumn
from joinlib.model.joins import Join, Leaf
from joinlib.model.keys import hash_is_key
from joinlib.model.operator import Operator
from joinlib.model.side import SideConfig
from joinlib.model.stage import (
    AnyStage,
    GroupStage,
    HopStage,
    NamedResult,
    OutputColumn,
    OverStage,
    Pipeline,
    Stage,
)
from joinlib.plan.clocks import WATERMARK
from joinlib.plan.explain.asof import asof
from joinlib.plan.explain.groups import by_keys
from joinlib.plan.explain.over import summary
from joinlib.plan.explain.words import SUBQUERY, plain, spoken
from joinlib.plan.source import SourceInput

Mode = Literal["append", "changelog", "upsert"]


@dataclass(frozen=True)
class OutputMode:
    """How an output takes its result."""

    mode: Mode = "append"
    key: tuple[str, ...] = ()


def upserted(inputs: Mapping[str, SourceInput]) -> dict[str, SourceInput]:
    """Return the inputs as the joins see them: what comes out of an upsert are changes."""
    return {n: replace(i, changes=True) if i.upsert else i for n, i in inputs.items()}


def check_changes(plan: Pipeline, inputs: Mapping[str, SourceInput], mode: Mode) -> None:
    """Refuse what cannot be done with changes.

    Raises:
        SpecError: if the output can only append, or columns cannot be compared, or a table may change.
    """
    reasons = [p for p in plan.inputs if p.changes and (inputs[p.source].changes or inputs[p.source].upsert)]
    if plan.changes and mode == "append" and not reasons:
        raise SpecError(
            f"output.mode: append takes rows that are final, but {_taken_back(plan)}; write output.mode: changelog,"
            " or upsert with output.key"
        )
    if plan.changes and mode == "append":
        raise SpecError(
            f"output.mode: append takes rows that are final, but rows of {_names(reasons)} may be deleted"
            f" (inputs.{reasons[0].source}.{_clause(inputs[reasons[0].source])}), and the result with them; write"
            " output.mode: changelog, or upsert with output.key"
        )
    for planned in reasons:
        if planned.maps and planned.skip_unknown and not inputs[planned.source].upsert:
            raise SpecError(
                f"changes.onUnknownDelete: skip tells deletions of {planned.source} without their row by all its"
                " columns, and this query computes others before it joins; write fail, or join the input itself"
            )
        if planned.numbered:
            raise SpecError(
                f"join.window.rows needs rows that only come, and rows of {planned.source} may be deleted"
            )
    for stage in plan.stages:
        _check_stage(stage, inputs, reasons)


def _taken_back(plan: Pipeline) -> str:
    """Say which rows are taken back in a query whose inputs only grow."""
    told = spoken(plan)
    for number, stage in enumerate(told.stages):
        alias = stage.inputs[0].alias
        within = any(i.alias.startswith(SUBQUERY) for _, i in told.readers(number))
        if isinstance(stage, GroupStage) and stage.changes:
            by = by_keys(stage.grouping, alias)
            row = f"the row of a group (GROUP BY {by})" if by else "the row of an aggregate"
            return f"{'the value of a subquery' if within else row} is taken back when it changes"
        if isinstance(stage, OverStage) and stage.over.present is not None:
            return "a row that is compared with now() goes when its time is over"
        if isinstance(stage, OverStage) and stage.changes:
            if stage.over.top is not None:
                return f"which are the {summary(stage)}{', in a subquery,' * within} changes when other rows come"
            calls = ", ".join(plain(call.sql, alias) for call in stage.over.calls)
            what = f"the partner in {joined}" if (joined := asof(stage)) else f"the value of {calls}"
            return (
                f"{what} is taken back when other rows come: it is final only if it looks back in the"
                " order of an event time alone"
            )
    return "rows of outer joins are taken back when a partner comes"


def _check_stage(stage: AnyStage, inputs: Mapping[str, SourceInput], reasons: Sequence[InputPlan]) -> None:
    """Refuse what the joins and lookups of a stage cannot do with changes; `reasons`: the inputs that change."""
    if isinstance(stage, GroupStage | OverStage) and any(_skips(p, inputs) for p in stage.inputs):
        raise SpecError(
            "changes.onUnknownDelete: skip needs a join of streams, whose state knows which rows are there, and"
            " here rows are grouped or ranked as they come; write fail"
        )
    if isinstance(stage, Stage):
        _check_joins(stage, inputs)
    if isinstance(stage, Stage | HopStage) and stage.changes:
        _check_lookups(stage, reasons)


def _check_joins(stage: Stage, inputs: Mapping[str, SourceInput]) -> None:
    if stage.route is not None and any(_skips(p, inputs) for p in stage.inputs):
        raise SpecError(
            "changes.onUnknownDelete: skip is for joins by the hash of a key: here, the units that a deletion"
            " probes do not know whether its row was there; write fail"
        )
    if isinstance(stage.root, Leaf) and any(_skips(p, inputs) for p in stage.inputs):
        raise SpecError(
            "changes.onUnknownDelete: skip needs a join of streams, whose state knows which rows are there, and"
            " this query stores none; write fail"
        )


def _check_lookups(stage: Stage | HopStage, reasons: Sequence[InputPlan]) -> None:
    for lookup in stage.lookups:
        if lookup.caching.refresh_us is not None or lookup.caching.mode == "incremental":
            why = (
                f"rows of {_names(reasons)} may be deleted"
                if reasons
                else "rows of an outer join are taken back"
            )
            raise SpecError(
                f"{why}, so the table {lookup.table.alias} must stay as it is: a deletion takes back the row"
                " that was found for its insertion; leave out refresh and cache: incremental, or read the table"
                " as a stream of changes"
            )


def static(plan: Pipeline) -> Pipeline:
    """Load tables whole and once where rows may be deleted."""

    def kept(stage: AnyStage) -> AnyStage:
        if not stage.changes or not isinstance(stage, Stage | HopStage):
            return stage
        lookups = (replace(found, caching=replace(found.caching, mode="full")) for found in stage.lookups)
        return replace(stage, lookups=tuple(lookups))

    return replace(plan, stages=tuple(map(kept, plan.stages)))


def _skips(plan: InputPlan, inputs: Mapping[str, SourceInput]) -> bool:
    """Return whether deletions of an input without their row are left out by the join; an upsert does it before."""
    return plan.changes and plan.skip_unknown and plan.upstream is None and not inputs[plan.source].upsert


def _clause(given: SourceInput) -> str:
    return "upsert" if given.upsert else "changes"


def _names(plans: Sequence[InputPlan]) -> str:
    return ", ".join(dict.fromkeys(p.source for p in plans))


# --- upserts ----------------------------------------------------------------------------------------


def with_upserts(plan: Pipeline, inputs: Mapping[str, SourceInput]) -> Pipeline:
    """Put a stage in front of each input that is an upsert; other stages follow, with their numbers shifted."""
    reading = [(n, p) for n, p in plan.counted_inputs if inputs[p.source].upsert]
    if not reading:
        return plan
    first = [_upsert(p, inputs[p.source], plan.units) for _, p in reading]
    numbers = {(n, p.number): at for at, (n, p) in enumerate(reading)}

    def moved(stage: int, p: InputPlan) -> InputPlan:
        if p.upstream is not None:
            return p.of_stage(p.upstream + len(first))
        own = stage, p.number if p.again is None else p.again  # the same rows come out of one upsert
        return _after(p, numbers[own]) if own in numbers else p

    rest = [
        replace(stage, inputs=tuple(moved(n, p) for p in stage.inputs)) for n, stage in enumerate(plan.stages)
    ]
    named = tuple(NamedResult(result.name, result.stage + len(first)) for result in plan.named)
    return replace(plan, stages=(*first, *rest), named=named)


def _after(plan: InputPlan, upstream: int) -> InputPlan:
    """Return the input as it is read of its upsert. Rows behind the watermark are late here, not before."""
    behind = () if plan.time is None else ((plan.time, 0),)
    return replace(
        plan,
        source=f"$stage{upstream}",
        upstream=upstream,
        delay_us=0,
        idle_us=None,
        clock=plan.clock and WATERMARK,
        settled=True,
        behind=behind,
    )


def _upsert(plan: InputPlan, source: SourceInput, units: int) -> Stage:
    """Return the stage that keeps the last row of each key of an input, and emits what that changes."""
    alias, kinds = plan.alias, {f.name: f.type for f in source.schema}
    # The columns that the stage reads of the upsert are in `read`: what maps compute is computed after it.
    read = tuple(f.name for f in source.schema if f.name in {*plan.read, *source.upsert})
    columns = tuple(StoredColumn(f"{alias}.{n}", ref(f"{alias}.{n}", kinds[n])) for n in read)
    keys = tuple(f"{alias}.{n}" for n in source.upsert)
    bits = tuple((f"{alias}.{n}", source.schema.names.index(n)) for n in read) if source.partial else ()
    more = (StoredColumn(UNCHANGED, ref(f"{alias}.{UNCHANGED}", pa.int64())),) if bits else ()
    own = replace(
        plan,
        number=0,
        read=read,
        filter=None,
        maps=(),
        clock=None,
        time=plan.source_time and f"{alias}.{plan.source_time}",
        columns=(*columns, *more),
        keys=keys,
        keep_null_keys=False,
        apart=None,
        copies=0,
    )
    schema = pa.schema([(HASH, pa.uint64()), *((c.name, c.value.type) for c in columns)])
    side = SideConfig(0, schema, keys, None, None, marked=False, mutable=True)
    tree = Join("upsert", (Leaf(0),), (keys,), (), None, None)
    root = Operator(
        "upsert",
        (Leaf(0),),
        (side,),
        hash_is_key([kinds[n] for n in source.upsert]),
        (),
        None,
        None,
        schema,
        partial=bits,
        changes=True,
    )
    select = tuple(OutputColumn(n, ref(f"{alias}.{n}", kinds[n])) for n in read)
    return Stage((own,), tree, root, select, timed=False, final_close=False, units=units, changes=True)


# --- the result's key ---------------------------------------------------------------------------------


def with_key(whole: Pipeline, result: NamedResult, key: tuple[str, ...], mode: Mode) -> Pipeline:
    """Let all changes of one value of a result's key come out of one unit.

    Raises:
        SpecError: if groups are not told apart by the key. A column that the result does not have is named when
            the output is checked (`plan.landing`).
    """
    plan = whole.only(result)
    grows = mode == "changelog" and not plan.changes  # nothing of a key is taken back
    if mode == "append" or not key or grows or any(name not in plan.schema.names for name in key):
        return whole
    if plan.grouping is not None:  # a group comes out of one unit
        if mode == "upsert":
            _check_groups(plan, key)
        return replace(whole, by_key=True)
    if _by_key(plan.last, key):
        return replace(whole, by_key=True)
    made = NamedResult(result.name, len(whole.stages))
    named = tuple(made if other == result else other for other in whole.named)
    return replace(whole, by_key=True, stages=(*whole.stages, _keyed(plan, key)), named=named)


def _check_groups(plan: Pipeline, key: tuple[str, ...]) -> None:
    assert plan.grouping is not None
    shown = {value.column for name, value in plan.grouping.select if name in key}
    missing = [k.sql for k in plan.grouping.keys if k.name not in shown]
    if missing:
        raise SpecError(
            f"output.key does not tell the groups apart: it lacks {', '.join(missing)} of GROUP BY; add it, or"
            " take it from GROUP BY and select max() of it"
        )


def _by_key(stage: AnyStage, key: tuple[str, ...]) -> bool:
    """Return whether a stage's units are chosen by columns of the result's key alone."""
    if isinstance(stage, OverStage):  # NULL is a value in both
        return set(stage.over.partition) <= {value.column for name, value in stage.over.select if name in key}
    if (
        not isinstance(stage, Stage)
        or stage.route is not None
        or isinstance(stage.root, Leaf)
        or stage.root.kind == "full"
    ):
        return False
    shown = {c.value.column for c in stage.select if c.name in key}
    own = stage.inputs[_first(stage.root)]
    spread = own.keep_null_keys and len(key) > 1  # sinks refuse NULL in a key of one column
    return bool(own.keys) and set(own.keys) <= shown and own.apart is None and not own.copies and not spread


def _first(root: Operator | Leaf) -> int:
    """Return the first input, whose key is never filled with NULL."""
    while isinstance(root, Operator):
        root = root.children[0]
    return root.input


def _keyed(plan: Pipeline, key: tuple[str, ...]) -> Stage:
    """Return a stage that only routes the result by its key."""
    number = plan.results[0].stage
    columns = tuple(StoredColumn(f.name, ref(f.name, f.type)) for f in plan.schema)
    own = InputPlan(
        number=0,
        alias=f"${number}",
        source=f"$stage{number}",
        read=tuple(plan.schema.names),
        filter=None,
        columns=columns,
        keys=key,
        time=None,
        delay_us=0,
        idle_us=None,
        keep_null_keys=True,
        upstream=number,
        changes=plan.changes,
        null_is_value=True,
    )
    select = tuple(OutputColumn(c.name, c.value) for c in columns)
    return Stage(
        (own,),
        Leaf(0),
        Leaf(0),
        select,
        timed=False,
        final_close=False,
        units=plan.units,
        changes=plan.changes,
    )
