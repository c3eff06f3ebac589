"""Numbers what a plan computes: what is equal but for the names in the text has the same number.

    groups of bid (a) by a.auction         groups of bid (b) by b.auction         the same number

A column that a stage stores is known by its place, one that it reads by what computes it; texts do not count.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import pyarrow as pa

from joinlib.expr import Expr, Ref
from joinlib.expr.nodes import Above
from joinlib.model.grouping import Release
from joinlib.model.inputs import InputPlan
from joinlib.model.maps import Map
from joinlib.model.stage import AnyStage

Columns = Mapping[str, int]  # numbers of what columns hold, by name
_TEXTS = ("sql", "text")  # fields that only say what others are


@dataclass(frozen=True)
class Given:
    """Rows, as those see them that read them."""

    source: Hashable  # the name of an input, or the number of a stage
    steps: tuple[int, ...]  # what has changed how many there are
    columns: Columns


class Forms:
    """Gives numbers. Those of one instance can be compared."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}

    def _number(self, *parts: Hashable) -> int:
        return self._numbers.setdefault(parts, len(self._numbers))

    def stage(self, stage: AnyStage, given: Mapping[int, Given]) -> int:
        """Return the number of a stage. `given`: the rows of earlier stages."""
        columns = self.columns(stage, given)
        inputs = tuple(self._input(plan, columns, given) for plan in stage.inputs)
        return self._number(inputs, self._fields(replace(stage, inputs=()), columns))

    def columns(self, stage: AnyStage, given: Mapping[int, Given]) -> Columns:
        """Return the columns of a stage by their places: those that it stores, and others that it reads."""
        found = dict[str, int]()
        for n, plan in reversed([*enumerate([*stage.inputs, *(lookup.table for lookup in stage.lookups)])]):
            read = _qualified(plan, self._given(plan, given).columns)
            found |= {name: self._number("read", n, number) for name, number in read.items() if "." in name}
            found |= {c.name: self._number("stored", n, at) for at, c in enumerate(plan.columns)}
        return found

    def expr(self, value: Expr, columns: Columns) -> int:
        """Return the number of an expression over these columns."""
        return self._number("expr", value.type, self._node(value.node, columns))

    def _given(self, plan: InputPlan, given: Mapping[int, Given]) -> Given:
        """Return the rows of an input after its maps."""
        if plan.upstream is None:
            rows = Given(plan.source, (), {name: self._number("read", name) for name in plan.read})
        else:
            rows = given[plan.upstream]
        for step in plan.maps:
            rows = self.mapped(step, rows)
        return rows

    def mapped(self, step: Map, rows: Given) -> Given:
        """Return what a map makes of rows."""
        steps, known = list(rows.steps), dict(rows.columns)
        for expand in step.expands:
            each = self._number(self.expr(expand.value, known), expand.outer, expand.position, len(steps))
            steps.append(each)
            known |= {name: self._number("of", each, at) for at, name in enumerate(expand.columns)}
        if step.filter is not None:
            steps.append(self.expr(step.filter, known))
        columns = {name: self.expr(value, known) for name, value in step.columns}
        return Given(rows.source, tuple(steps), columns)

    def _input(self, plan: InputPlan, columns: Columns, given: Mapping[int, Given]) -> int:
        """Return the number of an input of a stage that has these columns."""
        rows = self._given(plan, given)
        read = _qualified(plan, rows.columns)
        values = (plan.filter, plan.apart, *(c.value for c in plan.columns))
        made = tuple(value and self.expr(value, read) for value in values)
        bare = replace(
            plan, alias="", source="", read=(), filter=None, columns=(), upstream=None, apart=None, maps=()
        )
        return self._number(rows.source, rows.steps, made, self._fields(bare, columns))

    def _form(self, value: Any, columns: Columns) -> int:
        """Return the number of a value of the plan, in which a text may be the name of a column."""
        if isinstance(value, str) and value in columns:
            return columns[value]
        if isinstance(value, Expr):
            return self.expr(value, columns)
        if isinstance(value, InputPlan):  # of a table
            return self._input(value, columns, {})
        if isinstance(value, Release):
            moment = self.expr(value.value, {value.column: self._number("time")})
            return self._number(self._form(value.key, columns), value.type, moment, value.behind_us)
        if isinstance(value, tuple):
            return self._number("parts", *[self._form(part, columns) for part in value])
        if isinstance(value, pa.Schema):
            return self._form(tuple((field.name, field.type) for field in value), columns)
        return self._fields(value, columns) if is_dataclass(value) else self._leaf(value)

    def _fields(self, value: Any, columns: Columns) -> int:
        own = [getattr(value, field.name) for field in fields(value) if field.name not in _TEXTS]
        return self._number(type(value).__name__, *[self._form(part, columns) for part in own])

    def _node(self, node: Any, columns: Columns) -> int:
        """Return the number of a part of an expression, in which only a `Ref` is a column."""
        if isinstance(node, Ref):
            return columns.get(node.name, self._number("free", node.name))
        if isinstance(node, Expr):
            return self.expr(node, columns)
        if isinstance(node, Above):
            return self._node(node.node, {name: self._node(below, columns) for name, below in node.below})
        if isinstance(node, pa.Scalar):  # before sequences: a list is one of its items, and has none as NULL
            return self._leaf(node)
        if isinstance(node, Sequence) and not isinstance(node, str | bytes):
            return self._number("parts", *[self._node(part, columns) for part in node])
        if not is_dataclass(node):
            return self._leaf(node)
        own = [getattr(node, field.name) for field in fields(node) if field.name not in _TEXTS]
        return self._number(type(node).__name__, *[self._node(part, columns) for part in own])

    def _leaf(self, value: Any) -> int:
        if not isinstance(value, pa.Scalar):
            return self._number("leaf", type(value).__name__, value)
        whole = pa.record_batch([pa.repeat(value, 1)], ["value"]).serialize()  # 0.0 is not -0.0
        return self._number("constant", value.type, whole.to_pybytes())


def _qualified(plan: InputPlan, columns: Columns) -> dict[str, int]:
    """Return the columns as an input calls them, with its alias and without."""
    return {**columns, **{f"{plan.alias}.{name}": number for name, number in columns.items()}}
