"""Explains a stage: what each input reads, drops and stores, what is
joined how, how long rows are kept, and why.
"""

from collections.abc import Collection, Iterator, Mapping

from joinlib.expr import Expr
from joinlib.expr.types import name
from joinlib.model.bounds import describe, signed
from joinlib.model.inputs import ORDINAL, InputPlan
from joinlib.model.joins import Caching, Leaf, Lookup
from joinlib.model.operator import Operator
from joinlib.model.stage import Stage
from joinlib.plan.explain.biclique import figures, routes, sorted_by_key, why
from joinlib.plan.explain.not_in import not_in
from joinlib.plan.explain.retention import retention, unbounded
from joinlib.plan.explain.texts import KEPT, bare
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


def explain(stage: Stage, number: int | None, to: str, ruled: bool = False) -> str:
    """Describe a stage in several lines for people.

    `number`: the stage's number where there are several. `to`: who reads its rows, as a title. `ruled`: whether a
    rule spreads its rows' hot keys.
    """
    joined = bool(stage.operators)
    result = to.removeprefix("To ").lower()
    lines = ["Inputs"]
    for plan in stage.inputs:
        if plan.twin is not None:
            lines += _indent(twin_lines(plan, stage.inputs[plan.twin]))
            continue
        lines += _indent(input_lines(plan, _reasons(stage, plan, result), "stores" if joined else "passes"))
    if joined:
        lines += ["", "Joins", *_indent(_tree(stage, stage.root))]
    if stage.route is not None:
        lines += ["", "Route", *_indent(routes(stage)), *_indent(figures(stage))]
    if stage.lookups:
        lines += ["", "Tables", *_indent(line for lookup in stage.lookups for line in lookup_lines(lookup))]
    columns = ", ".join(f"{c.name} {name(c.value.type)}" for c in stage.select if not c.name.startswith("$"))
    values = [f"{c.value.sql} {name(c.value.type)}" for c in stage.select if c.name.startswith("$")]
    lines += ["", to, f"  {columns or ', '.join(values) or 'rows only count'}"]
    return "\n".join([*lines, "", "Why", *_bullets(_why(stage, number, result, ruled))])


def _indent(lines: Iterator[str]) -> list[str]:
    return [f"  {line}" for line in lines]


def _bullets(lines: Iterator[str] | list[str]) -> list[str]:
    return [f"  - {line}" for line in lines]


def reads(plan: InputPlan) -> Iterator[str]:
    """Say which columns an input reads, of which rows, and what becomes of these."""
    yield named(plan)
    if not all(column.startswith("$") for column in plan.read):
        yield f"  reads   {', '.join(plan.read)}"
    elif plan.upstream is None:
        yield "  reads   nothing, rows only count"
    for step in plan.maps:
        for expand in step.expands:
            yield f"  for     each of {bare(expand.value.sql)}"
        if step.filter is not None:
            yield f"  where   {bare(step.filter.sql)}"
        for column, value in step.columns:
            if column not in (value.column, bare(value.sql)) and not column.startswith("$"):
                yield f"  with    {column} = {bare(value.sql)}"
    if plan.filter is not None:
        yield f"  where   {bare(plan.filter.sql)}"


def filters(plan: InputPlan) -> Iterator[str]:
    """Say which rows of an input are read, and what becomes of them, in few words."""
    yield from (f"each of {bare(e.value.sql)}" for step in plan.maps for e in step.expands)
    conditions = [step.filter for step in plan.maps] + [plan.filter]
    if where := " AND ".join(bare(c.sql) for c in conditions if c is not None):
        yield f"where {where}"


def named(plan: InputPlan) -> str:
    """The name that the text uses for an input, and what it is."""
    if plan.upstream is None:
        own = plan.alias == plan.source or plan.alias.startswith("$")
        return plan.source if own else f"{plan.alias} = {plan.source}"
    of = f"the result of stage {plan.upstream}"
    return of if called(plan) == of else f"{called(plan)} = {of}"


def input_lines(plan: InputPlan, reasons: dict[str, str], verb: str) -> Iterator[str]:
    """Say what an input reads, and why each column is stored."""
    yield from reads(plan)
    for at, column in enumerate(plan.columns):
        shown = (
            column.value.sql
            if "$key" in column.name or column.value.column
            else f"{column.name} = {column.value.sql}"
        )
        label = verb if at == 0 else "      "
        yield f"  {label}  {bare(shown)}, {name(column.value.type)}: {reasons[column.name]}"
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
    if plan.keep_null_keys and verb == "stores":
        yield "  NULL    rows whose key is NULL are emitted without a partner"


def twin_lines(plan: InputPlan, other: InputPlan) -> Iterator[str]:
    """Say what an input reads and stores whose rows come as those of another."""
    yield named(plan)
    yield f"  stores  nothing: its rows are those of {called(other)}, which are read and stored once for both"


def lookup_lines(lookup: Lookup) -> Iterator[str]:
    """Say how a table is looked up."""
    table = lookup.table
    yield f"{named(table)}, {TITLES[lookup.kind]} lookup"
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
        yield f"  if      {bare(lookup.predicate.sql)}"
    if lookup.where is not None:
        yield f"  where   {bare(lookup.where.sql)}, checked on the result"
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
    return f"the result of stage {plan.upstream}" if plan.alias.startswith("$") else plan.alias


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
    for twin in (i for i in stage.inputs if i.twin == plan.number):
        own = {t.name: c.name for t, c in zip(twin.columns, plan.columns, strict=True)}
        uses = {use: names | {own[n] for n in names if n in own} for use, names in uses.items()}
    return {c.name: purpose(c.name, uses) for c in plan.columns}


def purpose(column: str, uses: Mapping[str, Collection[str]]) -> str:
    """Return what a stored column is for. `uses`: the columns of each use."""
    return ", ".join(use for use, names in uses.items() if column in names) or KEPT


def _tree(stage: Stage, tree: Operator | Leaf) -> Iterator[str]:
    if isinstance(tree, Leaf):
        yield called(stage.inputs[tree.input])
        return
    yield f"{title(tree)} of {', '.join(spoken(stage, c) for c in tree.children)}"
    for keys in related(stage, tree):
        yield f"  key     {' = '.join(key(stage, k) for k in keys)}, {name(_value(stage, keys[0]).type)}"
    for bound in tree.bounds:
        yield f"  {'window' if bound.left.endswith(ORDINAL) else 'time  '}  {describe(bound)}"
    yield from _conditions(tree)
    for child, side in zip(tree.children, tree.sides, strict=True):
        if side.of is None:
            yield f"  keeps   {spoken(stage, child)} {retention(side)}"
    if tree.kind in ("left", "full", "anti"):
        yield f"  alone   {_moment(tree)}"
    for child in tree.children:
        if isinstance(child, Operator):
            yield from (f"  {line}" for line in _tree(stage, child))


def _conditions(tree: Operator) -> Iterator[str]:
    if tree.predicate is not None:
        yield f"  if      {bare(tree.predicate.sql)}"
    if tree.where is not None:
        yield f"  where   {bare(tree.where.sql)}, checked on the result"


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


def related(stage: Stage, join: Operator) -> Iterator[tuple[str, ...]]:
    """Yield the keys that must be equal, position by position; none where all rows meet in one unit."""
    for keys in zip(*(side.keys for side in join.sides), strict=True):
        if any(_value(stage, k).columns for k in keys):
            yield keys


def classes(stage: Stage, join: Operator) -> str:
    """The equalities of a join in words."""
    return " and ".join(" = ".join(key(stage, k) for k in keys) for keys in related(stage, join))


def _why(stage: Stage, number: int | None, result: str, ruled: bool) -> Iterator[str]:
    yield from _placed(stage, number, ruled)
    yield from sorted_by_key(stage)
    for join in reversed(stage.operators):
        yield from not_in(stage, join)
    if stage.lookups and result.startswith("stage"):
        yield f"lookups come before {result}: a row counts as it met the tables in its batch"
    elif stage.lookups:
        yield "lookups come last: a batch that is run again may see a newer table, and no state depends on it"
    yield from reasons(stage.tree)
    if any(side.of is not None for join in stage.operators for side in join.sides):
        one, other = map(called, stage.inputs)
        yield (
            f"both inputs are one stream, stored once: new rows probe as {one} what was there before them, and as"
            f" {other} what is there with them"
        )
    elif any(join.kind != "upsert" for join in stage.operators):
        order = ", ".join(called(i) for i in stage.inputs)
        yield f"each batch is joined in the order {order}, against what is stored of the others"
    if any(i.filter is not None for i in stage.inputs):
        yield "conditions on one input are decided while it is read: what fails is never stored"
    if stage.operators:
        yield _dropped(stage)


def _sent(stage: Stage) -> str:
    """Say where rows go of a stage that stores none."""
    by = "the result's key" if any(given.keys for given in stage.inputs) else "their values"
    if by == "their values" and not any(given.changes for given in stage.inputs):
        return f"rows are spread over the {stage.units} units"
    return f"rows go to units by {by}, so one unit sees all changes of a row"


def _placed(stage: Stage, number: int | None, ruled: bool) -> Iterator[str]:
    """Say why rows go to the units that they go to."""
    if stage.route is not None:
        yield from why(stage, stage.operators[-1])
    elif any(join.kind == "upsert" for join in stage.operators):
        yield f"all rows of a key meet in one of the {stage.units} units, which keeps the last of them"
    elif stage.operators and not any(True for _ in related(stage, stage.operators[-1])):
        yield f"there is no equality: all rows meet in one of the {stage.units} units"
    elif stage.operators:
        which = "one stage: all joins" if number is None else f"the joins of stage {number}"
        yield f"{which} share a key, so all rows of a key meet in one of the {stage.units} units"
    elif not stage.lookups:
        yield f"nothing is stored: {_sent(stage)}"
    else:
        first = stage.lookups[0].table
        how = f"by the key of {first.alias}" if first.keys else "evenly"
        asked = ", so that each key is asked for in one of them" if stage.asks else ", which look them up"
        yield f"nothing is stored: rows go to the {stage.units} units {how}{asked}"
        if ruled:
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
