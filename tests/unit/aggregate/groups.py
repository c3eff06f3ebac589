"""A grouping over every kind of argument, rows for it, and a dumb definition of what comes out."""

from collections import Counter
from decimal import ROUND_HALF_UP, Decimal
from math import isnan
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from joinlib.expr import ref
from joinlib.model.grouping import AggregateCall, Function, Grouping, GroupKey
from joinlib.model.inputs import InputPlan
from joinlib.model.stage import GroupStage
from joinlib.model.time import ALWAYS, NEVER
from joinlib.model.watermark import Tick
from joinlib.sql.calls import result_type

MONEY = pa.decimal128(6, 2)
SCHEMA = pa.schema(
    [
        ("$g0", pa.string()),
        ("$g1", pa.float64()),
        ("$x0", pa.int64()),
        ("$x1", MONEY),
        ("$x2", pa.float64()),
        ("$x3", pa.string()),
    ]
)
FUNCTIONS: tuple[Function, ...] = ("count", "sum", "min", "max", "avg")
Row = tuple[Any, ...]


def grouping(keys: int, **more: Any) -> Grouping:
    """count(*), and every function of every argument that it takes."""
    keyed = tuple(GroupKey(SCHEMA.field(i).name, SCHEMA.field(i).type, "") for i in range(keys))
    calls = [AggregateCall("$a", "count", None, pa.null(), pa.int64(), "count(*)")]
    for field in list(SCHEMA)[2:]:
        for function in FUNCTIONS:
            if field.type == pa.string() and function in ("sum", "avg"):
                continue
            kind = result_type(function, field.type)
            calls.append(
                AggregateCall(
                    f"$a{len(calls)}", function, field.name, field.type, kind, f"{function}({field.name})"
                )
            )
    select = (
        *((k.name, ref(k.name, k.type)) for k in keyed),
        *((c.name, ref(c.name, c.type)) for c in calls),
    )
    return Grouping(keyed, tuple(calls), None, select, **more)


floats = st.sampled_from([None, 0.0, -0.0, 1.5, -2.25, float("nan"), float("inf")])
rows = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", None]),
        floats,
        st.sampled_from([None, 0, 1, -7, 2**55]),
        st.sampled_from([None, Decimal("0.01"), Decimal("-9999.99"), Decimal("1.00")]),
        floats,
        st.sampled_from([None, "", "ä", "zz"]),
    ),
    max_size=6,
)


def batch(some: list[Row]) -> pa.RecordBatch:
    columns = list(zip(*some, strict=True)) or [()] * len(SCHEMA)
    return pa.record_batch([pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA)


def defined(some: list[Row], keys: int) -> Counter[Row]:
    """The result, group by group and value by value."""
    groups: dict[Row, list[Row]] = {} if keys else {(): []}
    for row in some:
        groups.setdefault(tuple(plain(v) for v in row[:keys]), []).append(row)
    return Counter((*key, len(of), *(plain(v) for v in _values(of))) for key, of in groups.items())


def _values(group: list[Row]) -> list[Any]:
    found: list[Any] = []
    for at in range(2, len(SCHEMA)):
        values = [row[at] for row in group if row[at] is not None]
        found.append(len(values))
        if SCHEMA.field(at).type != pa.string():
            found.append(sum(values) if values else None)
        order = sorted(values, key=lambda v: (isinstance(v, float) and isnan(v), v if v == v else 0))
        found += [order[0], order[-1]] if order else [None, None]
        if SCHEMA.field(at).type != pa.string():
            found.append(_average(values) if values else None)
    return found


def _average(values: list[Any]) -> Any:
    total = sum(values)
    if isinstance(total, Decimal):
        return (total / len(values)).quantize(Decimal("0.000001"), ROUND_HALF_UP)
    return float(total) / len(values)


def plain(value: Any) -> Any:
    """NaN equal to itself, zeros alike."""
    if isinstance(value, float):
        return "NaN" if isnan(value) else value + 0.0
    return value


def counted(batches: list[pa.RecordBatch]) -> Counter[Row]:
    return Counter(
        tuple(plain(v) for v in row)
        for b in batches
        for row in zip(*(c.to_pylist() for c in b.columns), strict=True)
    )


def stage(asked: Grouping) -> GroupStage:
    """A stage of these groups, which reads the rows of another."""
    return GroupStage(
        (InputPlan(0, "$0", "$stage0", (), None, (), (), None, 0, None, True, upstream=0),), asked, 1
    )


def tick(watermark: int) -> Tick:
    """What the other stage says of its time, µs; ALWAYS: that it is closed."""
    closed = watermark == ALWAYS
    return Tick(0, NEVER if closed else watermark, closed=closed)
