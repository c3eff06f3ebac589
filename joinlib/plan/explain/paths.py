"""Explains a join by paths: what is stored by which keys and for how long, and a line for each path.

lineitem ─orderkey► orders │ ─custkey► customer       a probe of each, an exchange between them
"""

from collections.abc import Iterator

from joinlib.expr import Expr
from joinlib.expr.types import name
from joinlib.model.bounds import describe
from joinlib.model.inputs import InputPlan
from joinlib.model.stage import HopStage, PathStage, Pipeline
from joinlib.path.graph import Key
from joinlib.plan.explain.retention import retention, unbounded
from joinlib.plan.explain.stage import called, input_lines, lookup_lines, purpose
from joinlib.plan.explain.texts import bare


def stored(plan: Pipeline, number: int, stage: PathStage) -> str:
    """Describe what a join by paths stores, and all its paths."""
    lines, whole = ["Inputs"], whole_of(plan, number)
    for given in origins(stage):
        lines += _indent(input_lines(given, _reasons(stage, whole, given), "stores"))
    lines += ["", f"Joins by paths of {', '.join(map(called, origins(stage)))}"]
    lines += _indent(f"key     {text}" for text in equalities(stage))
    lines += _indent(f"time    {describe(bound)}" for bound in stage.tree.bounds)
    if stage.tree.predicate is not None:
        lines += _indent([f"if      {bare(stage.tree.predicate.sql)}"])
    lines += ["", "Stored", *_indent(_arrangements(stage))]
    lines += ["", "Paths", *_indent(path(stage, at) for at in stage.orders)]
    return "\n".join([*lines, "", "Why", *(f"  - {line}" for line in _why(stage))])


def probed(plan: Pipeline, number: int, stage: HopStage, to: str) -> str:
    """Describe what is probed after one more exchange."""
    at = plan.store_of(number)
    store = plan.stages[at]
    assert isinstance(store, PathStage)
    lines = [f"Probes of what stage {at} stores"]
    for leg in (leg for leg in stage.legs if leg.route in store.orders):
        asked = ", ".join(called(store.inputs[hop.side]) for hop in leg.hops)
        by = _key(store, store.arrangements[leg.hops[0].side].key)
        of = called(store.inputs[store.homes[store.paths[leg.route].start]])
        lines += _indent([f"for new rows of {of}: {asked} by {by}"])
    if stage.lookups:
        lines += ["", "Tables", *_indent(line for lookup in stage.lookups for line in lookup_lines(lookup))]
    if stage.last:
        columns = ", ".join(f"{c.name} {name(c.value.type)}" for c in stage.select)
        lines += ["", to, f"  {columns or 'rows only count'}"]
    return "\n".join(lines)


def forever(stage: PathStage) -> tuple[InputPlan, ...]:
    """Return the inputs whose rows are kept forever."""
    kept = [stage.arrangements[side.number].input for side in stage.sides if unbounded(side)]
    return tuple(given for one, given in enumerate(origins(stage)) if one in kept)


def origins(stage: PathStage) -> tuple[InputPlan, ...]:
    """Return the inputs of the join, each as it comes in."""
    return tuple(stage.inputs[home] for home in stage.homes)


def whole_of(plan: Pipeline, number: int) -> HopStage:
    """Return the stage that makes the rows of the join by paths whose state is that of stage `number`."""
    return next(
        s
        for n, s in enumerate(plan.stages)
        if isinstance(s, HopStage) and s.last and plan.store_of(n) == number
    )


def equalities(stage: PathStage) -> Iterator[str]:
    """Say each class of the join: what is equal in the inputs that have a member."""
    for number, members in enumerate(stage.graph.classes):
        yield " = ".join(value.sql for one in sorted(members) if (value := _member(stage, one, number)))


def path(stage: PathStage, route: int) -> str:
    """Draw the probes of a route."""
    way = stage.paths[route]
    parts, key = [called(stage.inputs[stage.homes[way.start]])], None
    for leg in way.legs(stage.arrangements):
        if key is not None:
            parts.append("│")
        for probe in leg:
            aim = stage.arrangements[probe.arrangement]
            key = aim.key
            parts.append(f"─{_key(stage, key)}► {called(stage.inputs[probe.arrangement])}")
    return " ".join(parts)


def _arrangements(stage: PathStage) -> Iterator[str]:
    for one, given in enumerate(origins(stage)):
        for side in stage.sides:
            arrangement = stage.arrangements[side.number]
            if arrangement.input == one:
                yield f"{called(given)} by {_key(stage, arrangement.key)}, kept {retention(side)}"


def _why(stage: PathStage) -> Iterator[str]:
    copies = len(stage.arrangements) - stage.graph.inputs
    also = f"; {copies} input{'s' * (copies > 1)} more than once, by several keys" if copies else ""
    yield f"nothing that the joins find is stored, only inputs{also}"
    yield "a new row goes from key to key until it has met all others; where the key changes, through an exchange"
    yield f"all rows of a key meet in one of the {stage.units} units"
    if any(given.filter is not None for given in stage.inputs):
        yield "conditions on one input are decided while it is read"
    yield "rows with NULL in a key or a bounded time match nothing, and are not stored"


def _key(stage: PathStage, key: Key) -> str:
    """Name each class of a key by its first member that is a column, or else by what it is computed from."""
    names = []
    for number in key:
        every = [v for one in sorted(stage.graph.classes[number]) if (v := _member(stage, one, number))]
        plain = (v.sql.partition(".")[2] or v.sql for v in every if v.column is not None)
        names.append(next(plain, every[0].sql))
    return ", ".join(names)


def _member(stage: PathStage, one: int, number: int) -> Expr | None:
    """Return what an input of the join has of a class, as its source has it."""
    own = sorted(stage.graph.of(one))
    if number not in own:
        return None
    column = stage.tree.keys[one][own.index(number)]
    plan = stage.inputs[stage.homes[one]]
    return next(c.value for c in plan.columns if c.name == column)


def _reasons(stage: PathStage, whole: HopStage, given: InputPlan) -> dict[str, str]:
    """Say why each column is stored."""
    read = stage.tree.predicate.columns if stage.tree.predicate is not None else ()
    uses = {
        "key": {column for keys in stage.tree.keys for column in keys},
        "time": {c for bound in stage.tree.bounds for c in (bound.left, bound.right)},
        "condition": set(read),
        "result": set(whole.reads),
    }
    return {c.name: purpose(c.name, uses) for c in given.columns}


def _indent(lines: Iterator[str] | list[str]) -> list[str]:
    return [f"  {line}" for line in lines]
