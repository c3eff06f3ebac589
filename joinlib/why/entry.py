"""Where rows of sources come in, and what a condition may call their values.

A value of the result that is computed of one row of one input is asked of that input:

    SELECT o.price * o.pieces AS total …      total > 100 ─► orders: price * pieces > 100
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from joinlib.apart import apart
from joinlib.errors import SpecError
from joinlib.expr import Column, Columns, Expr, Node, ref
from joinlib.model.inputs import InputPlan
from joinlib.model.stage import NamedResult, Pipeline, selected
from joinlib.why.node import Level, level_of


@dataclass(frozen=True)
class Entry:
    """Where rows of a source come in: a leaf of a level."""

    level: Level
    leaf: int
    values: Mapping[str, Expr]  # over the source's columns, by each name that a condition may use
    source: pa.Schema
    optional: bool  # a row of the result may be made of none of its rows

    @property
    def plan(self) -> InputPlan:
        return self.level.inputs[self.leaf]

    @property
    def place(self) -> "Place":
        return self.level.number, self.leaf

    @property
    def types(self) -> dict[str, pa.DataType]:
        """The types of the values by name."""
        return {name: value.type for name, value in self.values.items()}

    def of(self, output: "Carried") -> "Entry":
        """Return the same with the names of an output alone."""
        values = output.get(self.place, {})
        known = {name: value for name, value in values.items() if {*value.columns} <= {*self.source.names}}
        return replace(self, values=known)

    def read_by(self, asked: Expr) -> list[str]:
        """Return the source's columns that a condition reads."""
        return list(dict.fromkeys(column for name in asked.columns for column in self.values[name].columns))

    def meets(self, asked: Expr, rows: pa.RecordBatch) -> npt.NDArray[np.bool_]:
        """Return for which rows a condition is true: not for those of which a computed value fails.

        Raises:
            SpecError: The condition itself fails for a row.
        """

        def true(some: pa.RecordBatch) -> npt.NDArray[np.bool_]:
            def named(name: str) -> Column:
                return self.values[name].evaluate(some.column, some.num_rows)

            return _true(asked.evaluate(named, some.num_rows))

        if all(self.values[name].column for name in asked.columns):
            return true(rows)
        _, found, failing = apart(rows, true, SpecError)
        met = np.ones(rows.num_rows, np.bool_)
        met[[one.at for one in failing]] = False
        if found is not None:
            met[met] = found
        return met

    def meets_without(self, asked: Expr) -> bool:
        """Whether a row of the result that is made of none of its rows may meet a condition.

        A value is NULL there if it is computed before the rows are joined, and else what it is of columns that are NULL.
        """
        if not self.optional:
            return False
        values = [self.values[name] for name in asked.columns]
        before = {name: pa.nulls(1, value.type) for name, value in zip(asked.columns, values, strict=True)}
        after = {
            name: value.evaluate(lambda column: pa.nulls(1, self.source.field(column).type), 1)
            for name, value in zip(asked.columns, values, strict=True)
        }
        return any(_true(asked.evaluate(columns.__getitem__, 1))[0] for columns in (before, after))


def entries(
    pipeline: Pipeline,
    schemas: Mapping[str, pa.Schema],
    aliases: Mapping[str, str],
    outputs: Sequence["Carried"],
) -> Iterator[Entry]:
    """Yield where rows of sources come in, with the names that their values have in the texts and in outputs.

    aliases: what the texts call inputs, by what they are called there.
    """
    optional = _optional(pipeline)
    for number, stage in enumerate(pipeline.stages):
        if pipeline.store_of(number) != number:
            continue
        level = level_of(pipeline, number)
        for leaf, plan in enumerate(level.inputs):
            if plan.upstream is not None or stage.inputs[level.own[leaf]].again is not None:
                continue
            source, at = schemas[plan.source], (number, leaf)
            own = {field.name: ref(field.name, field.type) for field in source}
            called = (
                [plan.alias] if plan.alias in aliases else [a for a, n in aliases.items() if n == plan.source]
            )
            named = {f"{one}.{name}": value for one in (plan.source, *called) for name, value in own.items()}
            entry = Entry(level, leaf, {**named, **own}, source, at in optional)
            yield replace(
                entry, values={**_agreed([entry.of(one).values for one in outputs]), **entry.values}
            )


Place = tuple[int, int]  # the number of a level, and a leaf of it
Carried = dict[Place, dict[str, Expr]]


def carried(pipeline: Pipeline, result: NamedResult) -> Carried:
    """Return which columns of an output are computed of a row of one source, as values over the source's columns."""
    rows, found = dict(selected(pipeline.stages[result.stage])), Carried()
    for name in pipeline.only(result).schema.names:
        for place, value in _of_sources(pipeline, result.stage, rows[name]) if name in rows else ():
            found.setdefault(place, {})[name] = value
    return found


def covered(pipeline: Pipeline, number: int, places: set[Place]) -> bool:
    """Whether each row of a stage is made of a row of one of these places at least."""
    level = level_of(pipeline, number)
    above = ((leaf, level.inputs[leaf].upstream) for leaf in level.covering)
    return all(
        (level.number, leaf) in places or (below is not None and covered(pipeline, below, places))
        for leaf, below in above
    )


def _agreed(given: Sequence[Mapping[str, Expr]]) -> dict[str, Expr]:
    """Return the values that have one name, without those that are different ones."""
    names = dict.fromkeys(chain(*given))
    values = {name: [one[name] for one in given if name in one] for name in names}
    return {name: first for name, (first, *others) in values.items() if all(one == first for one in others)}


def _true(value: Column) -> npt.NDArray[np.bool_]:
    return np.asarray(pc.fill_null(value, False).to_numpy(zero_copy_only=False), np.bool_)


def _optional(pipeline: Pipeline) -> set[Place]:
    """Return the leaves of which a row of the result may lack a row, in their own level or in a later one."""
    levels = [level_of(pipeline, n) for n in range(len(pipeline.stages)) if pipeline.store_of(n) == n]
    lacking, found = set[int](), set[Place]()  # stages, leaves
    for level in reversed(levels):
        every = level.last in lacking
        leaves = [leaf for leaf in range(len(level.inputs)) if every or leaf in level.optional]
        found |= {(level.number, leaf) for leaf in leaves}
        lacking |= {up for leaf in leaves if (up := level.inputs[leaf].upstream) is not None}
    return found


def _of_sources(pipeline: Pipeline, number: int, value: Expr) -> Iterator[tuple[Place, Expr]]:
    """Yield a value over the joined columns of a stage as values over the columns of sources: of each in a union."""
    level = level_of(pipeline, number)
    for leaf, plan in enumerate(level.inputs):
        if not value.columns or not {*value.columns} <= {*plan.schema.names}:
            continue
        below = _below(plan, _over(value, {column.name: column.value for column in plan.columns}))
        if below is None:
            continue
        if plan.upstream is None:
            own = {name: ref(_plain(plan, name), pa.null()) for name in below.columns}
            yield (level.number, leaf), _over(below, own)
        elif (made := _under(below, plan, dict(selected(pipeline.stages[plan.upstream])))) is not None:
            yield from _of_sources(pipeline, plan.upstream, made)


def _below(plan: InputPlan, value: Expr) -> Expr | None:
    """Return a value over what the maps of an input make as one over what they read; None if it is of an element of a list."""
    for step in reversed(plan.maps):
        added = {name for expand in step.expands for name in expand.columns}
        below = _under(value, plan, dict(step.columns))
        if below is None or added.intersection(below.columns):
            return None
        value = below
    return value


def _under(value: Expr, plan: InputPlan, made: Mapping[str, Expr]) -> Expr | None:
    """Return a value over columns that are made of others as one over those; None if it reads more."""
    called = {name: plain if (plain := _plain(plan, name)) in made else name for name in value.columns}
    if not made.keys() >= {*called.values()}:
        return None
    return _over(value, {name: made[there] for name, there in called.items()})


def _plain(plan: InputPlan, name: str) -> str:
    return name.removeprefix(f"{plan.alias}.")


@dataclass(frozen=True)
class _Over:
    """An expression over other expressions."""

    node: Node
    values: Mapping[str, Expr]

    def evaluate(self, columns: Columns, rows: int) -> Column | pa.Scalar:
        return self.node.evaluate(lambda name: self.values[name].evaluate(columns, rows), rows)


def _over(value: Expr, values: Mapping[str, Expr]) -> Expr:
    """Return a value whose columns are other values, of its own type."""
    if value.column is not None:
        return replace(values[value.column], type=value.type)
    columns = tuple(dict.fromkeys(name for one in value.columns for name in values[one].columns))
    return Expr(value.sql, columns, value.type, _Over(value.node, values))
