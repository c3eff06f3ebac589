"""Every aggregate over a column of every kind; histories of rows that come and go; and what plain Python says of them."""

from collections import Counter
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from functools import cmp_to_key
from math import inf, isnan, nan, sqrt
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from joinlib.expr import ref
from joinlib.model.grouping import AggregateCall, Function, Grouping, GroupKey
from joinlib.model.inputs import WEIGHT
from joinlib.sql.calls import result_type

Row = tuple[Any, ...]
KINDS = [pa.int64(), pa.decimal128(6, 2), pa.float64(), pa.string(), pa.bool_()]
SCHEMA = pa.schema(
    [("$g0", pa.string()), ("$g1", pa.float64()), *((f"$x{n}", k) for n, k in enumerate(KINDS))]
)
EXACT: tuple[Function, ...] = ("count", "min", "max", "collect_list", "collect_set", "min_by", "max_by")
NUMERIC: tuple[Function, ...] = (
    "sum",
    "avg",
    "percentile",
    "var_pop",
    "var_samp",
    "stddev_pop",
    "stddev_samp",
)
ONCE: tuple[Function, ...] = ("count", "sum", "avg", "var_pop")
TIME = "$x0"  # what min_by and max_by go by

floats = st.sampled_from([None, 0.0, -0.0, 1.5, -2.25, 0.1, 1e17, -1e17, 1e-300, nan, inf, -inf])
values = st.tuples(
    st.sampled_from(["a", "b", None]),
    floats,
    st.sampled_from([None, 0, 1, -7, 2**55]),
    st.sampled_from([None, Decimal("0.01"), Decimal("-9999.99"), Decimal("1.00")]),
    floats,
    st.sampled_from([None, "", "ä", "zz"]),
    st.sampled_from([None, True, False]),
)


def grouping(keys: int, **more: Any) -> Grouping:
    """count(*), and every function of every column that it takes, DISTINCT too."""
    keyed = tuple(GroupKey(SCHEMA.field(i).name, SCHEMA.field(i).type, "") for i in range(keys))
    calls = [AggregateCall("$a", "count", None, pa.null(), pa.int64(), "count(*)")]
    for field in list(SCHEMA)[2:]:
        number = field.type not in (pa.string(), pa.bool_())
        wanted: list[tuple[Function, bool]] = [(f, False) for f in (*EXACT, *(NUMERIC if number else ()))]
        wanted += [(f, True) for f in ONCE if number or f == "count"]
        for function, distinct in wanted:
            by = function in ("min_by", "max_by")
            if by and field.name == TIME:
                continue
            call = AggregateCall(
                f"$a{len(calls)}",
                function,
                field.name,
                field.type,
                result_type(function, field.type),
                f"{function}({'DISTINCT ' * distinct}{field.name})",
                ((TIME, pa.int64()),) if by else (),
                distinct,
                (0.3,) if function == "percentile" else (),
            )
            calls.append(call)
    select = (
        *((k.name, ref(k.name, k.type)) for k in keyed),
        *((c.name, ref(c.name, c.type)) for c in calls),
    )
    return Grouping(keyed, tuple(calls), None, select, **more)


@st.composite
def histories(draw: st.DrawFn, changes: bool = True, batches: int = 5) -> list[list[list[tuple[Row, int]]]]:
    """Batches of parts of changes; what goes has come before, in an earlier batch or in the same one."""
    there: Counter[Row] = Counter()
    pool = draw(st.lists(values, min_size=1, max_size=4))  # few rows, which come again
    history = []
    for _ in range(draw(st.integers(1, batches))):
        batch = []
        for _ in range(draw(st.integers(0, 6))):
            alive = [row for row in pool if there[row] > 0]
            if changes and alive and draw(st.booleans()):
                row = draw(st.sampled_from(alive))
                weight = -draw(st.integers(1, there[row]))
            else:
                row, weight = draw(st.sampled_from(pool)), draw(st.sampled_from([1, 1, 3])) if changes else 1
            there[row] += weight
            batch.append((row, weight))
        cut = draw(st.integers(0, len(batch)))
        history.append([batch[:cut], batch[cut:]])
    return history


def batch(part: list[tuple[Row, int]], changes: bool = True) -> pa.RecordBatch:
    columns = list(zip(*(row for row, _ in part), strict=True)) or [()] * len(SCHEMA)
    arrays = [pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)]
    made = pa.record_batch(arrays, schema=SCHEMA)
    if not changes:
        return made
    return made.append_column(WEIGHT, pa.array([weight for _, weight in part], pa.int64()))


def answer(rows: Counter[Row], asked: Grouping) -> Counter[Row]:
    """The result over these rows, group by group and call by call."""
    keys = len(asked.keys)
    groups: dict[Row, list[Row]] = {} if keys else {(): []}
    for row in rows.elements():
        groups.setdefault(tuple(plain(v) for v in row[:keys]), []).append(row)
    found: Counter[Row] = Counter()
    for key, group in groups.items():
        found[(*key, *(plain(_call(call, group)) for call in asked.calls))] += 1
    return found


def _call(call: AggregateCall, group: list[Row]) -> Any:
    if call.argument is None:
        return len(group)
    at = SCHEMA.get_field_index(call.argument)
    if call.function in ("min_by", "max_by"):
        time = SCHEMA.get_field_index(TIME)
        pairs = sorted([(r[time], r[at]) for r in group if r[time] is not None], key=cmp_to_key(_compared))
        return None if not pairs else pairs[0 if call.function == "min_by" else -1][1]
    some = sorted([r[at] for r in group if r[at] is not None], key=cmp_to_key(_compared))
    if call.distinct or call.function == "collect_set":
        some = [v for n, v in enumerate(some) if n == 0 or _compared(some[n - 1], v)]
    return _value(call.function, some, call.type)


def _value(function: str, some: list[Any], kind: pa.DataType) -> Any:
    """The value of a function over sorted values."""
    if function == "count":
        return len(some)
    if function in ("collect_list", "collect_set"):
        return tuple(plain(v) for v in some)
    if not some or (function.endswith("samp") and len(some) < 2):
        return None
    if function in ("min", "max"):
        return some[0 if function == "min" else -1]
    if function == "percentile":
        place = 0.3 * (len(some) - 1)
        low, high = float(some[int(place)]), float(some[-int(-place // 1)])
        return low if low == high else (1 - place % 1) * low + place % 1 * high
    if function in ("sum", "avg") and isinstance(some[0], Decimal):
        total = sum(some)
        return (
            total if function == "sum" else (total / len(some)).quantize(Decimal("0.000001"), ROUND_HALF_UP)
        )
    if function == "sum" and isinstance(some[0], int):
        return sum(some)
    if function == "avg" and isinstance(some[0], int):
        return float(sum(some)) / len(some)
    return _of_doubles(function, [float(v) for v in some])


def _of_doubles(function: str, some: list[float]) -> float:
    """Exactly, then rounded once."""
    odd = [v for v in some if v != v or v in (inf, -inf)]
    if odd:
        return sum(odd) if function in ("sum", "avg") else nan
    exact, count = [Fraction(v) for v in some], len(some)
    total = sum(exact)
    if function in ("sum", "avg"):
        return float(total / (1 if function == "sum" else count))
    squares = sum(v * v for v in exact) - total * total / count
    variance = float(squares / (count - function.endswith("samp")))
    return sqrt(variance) if function.startswith("stddev") else variance


def _compared(a: Any, b: Any) -> int:
    """NaN is the greatest number; NULL comes last; zeros are equal."""
    if isinstance(a, tuple):
        return _compared(a[0], b[0]) or _compared(a[1], b[1])
    ranks = [2 if v is None else 1 if isinstance(v, float) and isnan(v) else 0 for v in (a, b)]
    if ranks[0] or ranks[1]:
        return ranks[0] - ranks[1]
    if isinstance(a, str):
        a, b = a.encode(), b.encode()
    return int(a > b) - int(a < b)


def plain(value: Any) -> Any:
    """NaN equal to itself, zeros alike, lists as tuples."""
    if isinstance(value, list | tuple):
        return tuple(plain(v) for v in value)
    if isinstance(value, float):
        return "NaN" if isnan(value) else value + 0.0
    return value


def counted(batches: list[pa.RecordBatch]) -> Counter[Row]:
    return Counter(
        tuple(plain(v) for v in row)
        for b in batches
        for row in zip(*(c.to_pylist() for c in b.columns), strict=True)
    )
