"""Partials of any cut merge to what a definition by hand says; what does not fit is said."""

from decimal import Decimal

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joinlib.aggregate.finish import finished
from joinlib.aggregate.partial import Partials, merge, nothing, partial
from joinlib.errors import SpecError
from joinlib.expr import ref
from joinlib.model.grouping import AggregateCall, Grouping
from tests.unit.aggregate.groups import Row, batch, counted, defined, grouping, rows


@settings(max_examples=20)
@given(st.lists(rows, max_size=3), st.integers(0, 2))
def test_partials_of_any_cut_merge_to_the_definition(cuts: list[list[Row]], keys: int) -> None:
    """count, sum, min, max and avg of all types; NULL, NaN and -0.0 among keys and values; no rows at all."""
    asked = grouping(keys)
    merged = merge([nothing(asked), *(partial(batch(cut), asked) for cut in cuts)], asked)

    assert counted([finished(merged, asked)]) == defined([row for cut in cuts for row in cut], keys)


@settings(max_examples=20)
@given(rows, st.integers(0, 2))
def test_duckdb_says_the_same(some: list[Row], keys: int) -> None:
    """Whole numbers, decimals and text."""
    asked = grouping(keys)
    db = duckdb.connect()
    db.register("t", pa.Table.from_batches([batch(some)]))
    names = [k.name for k in asked.keys]
    calls = [c for c in asked.calls if c.function != "avg" and c.argument != "$x2"]
    values = ", ".join(
        [f'"{n}"' for n in names] + [c.sql.replace("$", '"$').replace(")", '")') for c in calls[1:]]
    )
    group = f" GROUP BY {', '.join(str(i + 1) for i in range(keys))}" if keys else ""
    expected = db.sql(f"SELECT {values} FROM t{group}").to_arrow_table().to_batches()

    found = finished(merge([nothing(asked), partial(batch(some), asked)], asked), asked)

    assert counted([found.select(names + [c.name for c in calls[1:]])]) == counted(expected)


@settings(max_examples=20)
@given(st.lists(rows, min_size=1, max_size=4))
def test_partials_are_merged_as_they_come(cuts: list[list[Row]]) -> None:
    """Chunks give what one batch gives, row by row."""
    asked, kept = grouping(2), Partials(grouping(2))
    kept._partials.limit = 1
    for cut in cuts:
        kept.add(batch(cut))

    whole = partial(batch([row for cut in cuts for row in cut]), asked)
    assert counted([finished(kept.merged(), asked)]) == counted([finished(whole, asked)])


def test_a_sum_may_pass_over_the_limit_of_its_type_but_not_stay_there() -> None:
    """Whatever the order of rows, only the sum of all decides."""
    call = AggregateCall("$a0", "sum", "$x0", pa.int64(), pa.int64(), "sum(o.v)")
    asked = Grouping((), (call,), None, (("s", ref("$a0", pa.int64())),))
    large = partial(pa.record_batch({"$x0": [2**63 - 1, 5]}), asked)
    back = partial(pa.record_batch({"$x0": [-6]}), asked)

    assert finished(merge([large, back], asked), asked).to_pylist() == [{"s": 2**63 - 2}]
    with pytest.raises(SpecError, match=r"sum\(o.v\) is too large for BIGINT"):
        finished(large, asked)


def test_a_sum_that_nobody_reads_stops_nothing() -> None:
    """It is kept because a checkpoint has it."""
    call = AggregateCall("$a0", "sum", "$x0", pa.int64(), pa.int64(), "sum(o.v)")
    count = AggregateCall("$a1", "count", None, pa.null(), pa.int64(), "count(*)")
    asked = Grouping((), (call, count), None, (("n", ref("$a1", pa.int64())),))
    large = partial(pa.record_batch({"$x0": [2**63 - 1, 5]}), asked)

    assert asked.asked == (count,)
    assert finished(large, asked).to_pylist() == [{"n": 2}]


def test_decimals_of_many_digits_are_summed_in_wider_ones() -> None:
    """38 digits are enough for the result, not always for the way to it."""
    kind = pa.decimal128(38, 0)
    call = AggregateCall("$a0", "sum", "$x0", kind, kind, "sum(o.v)")
    asked = Grouping((), (call,), None, (("s", ref("$a0", kind)),))
    top = Decimal(10**38 - 1)
    rows = pa.record_batch([pa.array([top, top, top.copy_negate()], kind)], ["$x0"])

    assert finished(partial(rows, asked), asked).to_pylist() == [{"s": top}]
    with pytest.raises(SpecError, match="too large"):
        finished(partial(rows.slice(0, 2), asked), asked)
