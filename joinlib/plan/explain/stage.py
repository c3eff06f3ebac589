"""Explains a stage: what each input reads, drops and stores, what is
joined how, how long rows are kept, and why.
"""

from collections.abc import Iterator

from joinlib.expr import Expr
from joinlib.expr.types import name
from joinlib.model.bounds import describe, signed
from joinlib.model.inputs import ORDINAL, InputPlan
from joinlib.model.joins import Caching, Leaf, Lookup
from joinlib.model.operator import Operator
from joinlib.model.stage import Stage
from joinlib.plan.explain.biclique import figures, routes, sorted_by_key, warnings, why
from joinlib.plan.explain.not_in import not_in
from joinlib.plan.explain.retention import retention, unbounded
from joinlib.plan.merge import reasons
from joinlib.spec.duration import text as duration

TITLES = {
    "inner": "INNER",
    "left": "LEFT",
    "full": "FULL",
    "semi": "LEFT SEMI",
    "anti": "LEFT ANTI",
    "upsert": "UPSERT",
}


def title(join: Operator) -> str:
    """Return what an operator is called."""
    return "UPSERT" if join.kind == "upsert" else f"{TITLES[join.kind]} JOIN"


def explain(stage: Stage, number: int | None = None, reader: int | None = None, grouped: bool = False) -> str:
    """Describe a stage in several lines for people.

    `number`: the stage's number where there are several. `reader`: the number of the stage that reads its
    rows. `grouped`: whether its rows become groups.
    """
    joined = bool(stage.operators)
    result = "result" if reader is None else f"stage {reader}"
    lines = ["Inputs"]
    for plan in stage.inputs:
        lines += _indent(_input(plan, _reasons(stage, plan, result), "stores" if joined else "passes"))
    if joined:
        lines += ["", "Joins", *_indent(_tree(stage, stage.root))]
    if stage.route is not None:
        lines += ["", "Route", *_indent(routes(stage)), *_indent(figures(stage))]
    if stage.lookups:
        lines += ["", "Tables", *_indent(line for lookup in stage.lookups for line in _lookup(lookup))]
    columns = ", ".join(f"{c.name} {name(c.value.type)}" for c in stage.select)
    title = "To the groups" if grouped else "Result" if reader is None else f"To stage {reader}"
    lines += ["", title, f"  {columns}", "", "Why", *_bullets(_why(stage, number, grouped))]
    warned = list(cautions(stage))
    return "\n".join(lines + (["", "Warnings", *_bullets(warned)] if warned else []))


def _indent(lines: Iterator[str]) -> list[str]:
    return [f"  {line}" for line in lines]


def _bullets(lines: Iterator[str] | list[str]) -> list[str]:
    return [f"  - {line}" for line in lines]


def _input(plan: InputPlan, reasons: dict[str, str], verb: str) -> Iterator[str]:
    shown = plan.source if plan.alias == plan.source else f"{plan.alias} = {plan.source}"
    yield shown if plan.upstream is None else called(plan)
    yield f"  reads   {', '.join(plan.read) or 'nothing, rows only count'}"
    if plan.filter is not None:
        yield f"  where   {plan.filter.sql}"
    for at, column in enumerate(plan.columns):
        value = "" if column.value.column else f" = {column.value.sql}"
        label = verb if at == 0 else "      "
        yield f"  {label}  {column.name}{value}, {name(column.value.type)}: {reasons[column.name]}"
    if plan.numbered:
        yield "  window  by the number of each row, which its source gives"
    elif plan.upstream is not None and plan.time is not None:
        late = ", ".join(f"{time} up to {duration(us)} behind" for time, us in plan.behind)
        yield f"  time    the watermark of stage {plan.upstream}; {late or 'rows may be any time behind it'}"
    elif plan.time is not None:
        idle = (
            ""
            if plan.idle_us is None
            else f"; after {duration(plan.idle_us)} of silence it is not waited for"
        )
        yield f"  time    {plan.time}; rows up to {duration(plan.delay_us)} behind the latest are taken{idle}"
    if plan.keep_null_keys:
        yield "  NULL    rows whose key is NULL are emitted without a partner"


def _lookup(lookup: Lookup) -> Iterator[str]:
    table = lookup.table
    shown = table.source if table.alias == table.source else f"{table.alias} = {table.source}"
    yield f"{shown}, {TITLES[lookup.kind]} lookup"
    yield f"  reads   {', '.join(table.read)}"
    if table.filter is not None:
        yield f"  where   {table.filter.sql}"
    for probe, key in zip(lookup.probe, table.keys, strict=True):
        yield f"  key     {probe.sql} = {key}, {name(probe.type)}"
    if lookup.range is not None:
        ends = [f"{lookup.range.low} <= {lookup.range.x.sql}"] if lookup.range.x else []
        ends += [f"{lookup.range.y.sql} <= {lookup.range.high}"] if lookup.range.y else []
        yield f"  range   {' and '.join(ends)}, found in a sorted array"
    if lookup.predicate is not None:
        yield f"  if      {lookup.predicate.sql}"
    if lookup.where is not None:
        yield f"  where   {lookup.where.sql}, checked on the result"
    yield f"  cache   {_cached(lookup.caching)}"


def _cached(caching: Caching) -> str:
    refresh, budget = caching.refresh_us, f"{caching.budget / 2**20:g} MiB"
    again = "never again" if refresh is None else f"again every {duration(refresh)}"
    holds = "forever" if refresh is None else f"for {duration(refresh)}"
    full = f"the whole table, at most {budget}; read before the first batch, {again}"
    asked = f"the rows that were looked up, at most {budget}; an answer holds {holds}"
    if caching.mode == "auto":
        return f"decided at the start by the table's size: {full}; or, if it is larger, {asked}"
    return full if caching.mode == "full" else asked


def called(plan: InputPlan) -> str:
    """The name that the text uses for an input."""
    own = plan.upstream is None or plan.settled
    return plan.alias if own else f"the result of stage {plan.upstream}"


def _reasons(stage: Stage, plan: InputPlan, result: str) -> dict[str, str]:
    """Say why each column is stored."""
    late = [e for lookup in stage.lookups for e in lookup.reads]
    uses = {
        "key": set(plan.keys),
        "time": {c for j in stage.operators for b in j.bounds for c in (b.left, b.right)},
        "condition": {c for j in stage.operators for e in (j.predicate, j.where) if e for c in e.columns},
        "lookup": {c for e in late for c in e.columns},
        result: {c for o in stage.select for c in o.value.columns},
    }
    return {c.name: ", ".join(u for u, names in uses.items() if c.name in names) for c in plan.columns}


def _tree(stage: Stage, tree: Operator | Leaf) -> Iterator[str]:
    if isinstance(tree, Leaf):
        yield called(stage.inputs[tree.input])
        return
    yield f"{title(tree)} of {', '.join(spoken(stage, c) for c in tree.children)}"
    for position in zip(*(side.keys for side in tree.sides), strict=True):
        yield f"  key     {' = '.join(position)}, {name(_type(stage, position[0]))}"
    for bound in tree.bounds:
        yield f"  {'window' if bound.left.endswith(ORDINAL) else 'time  '}  {describe(bound)}"
    yield from _conditions(tree)
    for child, side in zip(tree.children, tree.sides, strict=True):
        yield f"  keeps   {spoken(stage, child)} {retention(side)}"
    if tree.kind in ("left", "full", "anti"):
        yield f"  alone   {_moment(tree)}"
    for child in tree.children:
        if isinstance(child, Operator):
            yield from (f"  {line}" for line in _tree(stage, child))


def _conditions(tree: Operator) -> Iterator[str]:
    if tree.predicate is not None:
        yield f"  if      {tree.predicate.sql}"
    if tree.where is not None:
        yield f"  where   {tree.where.sql}, checked on the result"


def _moment(tree: Operator) -> str:
    if tree.eager:
        return "rows without a partner are emitted at once, and taken back when one comes"
    sides = tree.sides if tree.kind == "full" else tree.sides[:1]
    if any(map(unbounded, sides)):
        return "rows without a partner are emitted when the inputs are closed"
    after = " or ".join(f"{signed(s.hold_us)} after {s.time}" for s in sides)
    return f"rows without a partner are emitted when the watermark is past {after}"


def spoken(stage: Stage, tree: Operator | Leaf) -> str:
    """The name of what a join reads; a nested join is shown in parentheses."""
    if isinstance(tree, Leaf):
        return called(stage.inputs[tree.input])
    return f"({', '.join(spoken(stage, c) for c in tree.children)})"


def key(stage: Stage, column: str) -> str:
    """A key as the query has it: a column, or the expression that it is computed from."""
    return _value(stage, column).sql


def _value(stage: Stage, column: str) -> Expr:
    return next(c.value for i in stage.inputs for c in i.columns if c.name == column)


def classes(stage: Stage, join: Operator) -> str:
    """The equalities of a join in words; empty where it has none, and all rows meet in one unit."""
    positions = zip(*(side.keys for side in join.sides), strict=True)
    related = (ks for ks in positions if any(_value(stage, k).columns for k in ks))
    return " and ".join(" = ".join(key(stage, k) for k in ks) for ks in related)


def _type(stage: Stage, column: str) -> object:
    return next(c.value.type for i in stage.inputs for c in i.columns if c.name == column)


def _why(stage: Stage, number: int | None, grouped: bool) -> Iterator[str]:
    yield from _placed(stage, number)
    yield from sorted_by_key(stage)
    for join in reversed(stage.operators):
        yield from not_in(stage, join)
    if stage.lookups and grouped:
        yield "lookups come before the groups: a row counts as it met the tables in its batch"
    elif stage.lookups:
        yield "lookups come last: a batch that is run again may see a newer table, and no state depends on it"
    yield from reasons(stage.tree)
    if any(join.kind != "upsert" for join in stage.operators):
        order = ", ".join(called(i) for i in stage.inputs)
        yield f"each batch is joined in the order {order}, against what is stored of the others"
    if any(i.filter is not None for i in stage.inputs):
        yield "conditions on one input are decided while it is read: what fails is never stored"
    if stage.operators:
        yield _dropped(stage)


def _placed(stage: Stage, number: int | None) -> Iterator[str]:
    """Say why rows go to the units that they go to."""
    if stage.route is not None:
        yield from why(stage, stage.operators[-1])
    elif any(join.kind == "upsert" for join in stage.operators):
        yield f"all rows of a key meet in one of the {stage.units} units, which keeps the last of them"
    elif stage.operators:
        which = "one stage: all joins" if number is None else f"the joins of stage {number}"
        yield f"{which} share a key, so all rows of a key meet in one of the {stage.units} units"
    elif not stage.lookups:
        yield "nothing is stored: rows go to units by the result's key, so one unit sees all changes of a row"
    else:
        first = stage.lookups[0].table
        how = f"by the key of {first.alias}" if first.keys else "evenly"
        yield f"nothing is stored: rows go to the {stage.units} units {how}, which look them up"
        if first.keys and stage.units > 1:
            yield (
                "an uneven batch gives the next one a new rule: equal shares of the keys, a hot key to"
                " several units"
            )


def _dropped(stage: Stage) -> str:
    if any(i.numbered for i in stage.inputs):
        return "a window of rows says how long a row can find partners; it moves as the slower input does"
    if stage.timed:
        return "a time bound says how long a row can find partners: after that it is dropped"
    return "nothing compares event times, so no row is ever late and none is dropped"


def cautions(stage: Stage) -> Iterator[str]:
    """Warn of state without bound, results without bound, and time bounds that no pair of rows can meet."""
    yield from dict.fromkeys(_cautions(stage))


def _cautions(stage: Stage) -> Iterator[str]:
    for join in reversed(stage.operators):
        yield from warnings(stage, join)
        alone = join.sides if join.kind == "full" else join.sides[:1]
        if join.kind in ("left", "full", "anti") and any(map(unbounded, alone)) and not join.eager:
            yield "rows without a partner are emitted only when the inputs are closed: no bound on the time"
        for child, side in zip(join.children, join.sides, strict=True):
            if unbounded(side) and not side.mutable and (join.sides[0].keys or isinstance(child, Leaf)):
                yield (
                    f"{spoken(stage, child)} is kept forever, state grows with it; "
                    "bound the time in ON, or set join.retention"
                )
        for bound in join.bounds:
            if None not in (bound.low_us, bound.high_us) and bound.low_us > bound.high_us:  # type: ignore[operator]
                yield f"no pair of rows can match: {describe(bound)}"
