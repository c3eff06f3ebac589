"""What is understood of OVER, and what is refused with which words."""

from typing import Any

import pyarrow as pa
import pytest
from sqlglot import exp

from joinlib.errors import SqlError
from joinlib.model.over import Frame, Over
from joinlib.sql.graph import Table
from joinlib.sql.over import over_of
from joinlib.sql.parse import parse

SCHEMA = pa.schema(
    [
        ("k", pa.string()),
        ("t", pa.timestamp("us", "UTC")),
        ("d", pa.date32()),
        ("v", pa.int64()),
        ("m", pa.decimal128(8, 2)),
    ]
)


def over(text: str) -> Over:
    """Return the plan of a query over `s`."""
    query = parse(text)
    assert isinstance(query, exp.Select)
    return over_of(text, query, Table("s", SCHEMA, "t"))


def one(call: str, tail: str = "") -> Over:
    """Return the plan of one function."""
    return over(f"SELECT k, {call} AS f FROM s {tail}")


@pytest.mark.parametrize(
    ("text", "frame"),
    [
        ("ORDER BY t", Frame("range", None, 0)),
        ("PARTITION BY k", Frame("rows", None, None)),
        ("ORDER BY t ROWS 2 PRECEDING", Frame("rows", -2, 0)),
        ("ORDER BY t ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING", Frame("rows", 1, None)),
        (
            "ORDER BY t RANGE BETWEEN INTERVAL 1 HOUR PRECEDING AND CURRENT ROW",
            Frame("range", -3_600_000_000, 0),
        ),
        ("ORDER BY d RANGE BETWEEN INTERVAL 2 DAYS PRECEDING AND 1 FOLLOWING", Frame("range", -2, 1)),
        ("ORDER BY m DESC RANGE BETWEEN 1.5 PRECEDING AND 2 FOLLOWING", Frame("range", -150, 200)),
        ("ORDER BY t GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW", Frame("groups", -1, 0)),
    ],
)
def test_frames_are_in_units_of_what_is_ordered_by(text: str, frame: Frame) -> None:
    assert one(f"sum(v) OVER ({text})").calls[0].frame == frame


def test_only_what_is_read_is_kept_and_a_function_is_computed_once() -> None:
    found = over(
        "SELECT v, rank() OVER w AS a, 1 + rank() OVER w AS b FROM s"
        " QUALIFY a <= 2 WINDOW w AS (PARTITION BY k ORDER BY v DESC)"
    )
    assert [name for name, _ in found.columns] == ["s.k", "s.v"]
    assert (len(found.calls), found.partition, found.top) == (1, ("s.k",), ("$w0", 2))


@pytest.mark.parametrize(
    ("text", "top"),
    [
        ("QUALIFY f < 3", 2),
        ("QUALIFY f = 1 AND v > 0", 1),
        ("QUALIFY 4 >= f AND f > 1", 4),
        ("QUALIFY f BETWEEN 2 AND 5", 5),
        ("QUALIFY f <= 1 OR v > 0", None),
        ("QUALIFY f > 1", None),
    ],
)
def test_a_rank_that_rows_must_not_exceed_is_found(text: str, top: int | None) -> None:
    found = one("row_number() OVER (PARTITION BY k ORDER BY v)", text).top
    assert found == (None if top is None else ("$w0", top))


def test_rows_behind_the_top_are_kept_if_another_function_reads_them() -> None:
    found = one(
        "row_number() OVER (PARTITION BY k ORDER BY v) AS r, lead(v) OVER (PARTITION BY k ORDER BY v)",
        "QUALIFY r = 1",
    )
    assert found.top is None


@pytest.mark.parametrize(
    ("call", "settles"),
    [
        ("row_number() OVER (ORDER BY t)", True),
        ("sum(v) OVER (ORDER BY t ROWS BETWEEN 3 PRECEDING AND CURRENT ROW)", True),
        ("row_number() OVER (ORDER BY t DESC)", False),
        ("lead(v) OVER (ORDER BY t)", False),
        ("row_number() OVER (ORDER BY v, t)", False),
        ("sum(v) OVER (PARTITION BY k)", False),
    ],
)
def test_functions_that_look_back_in_time_are_final_at_the_watermark(call: str, settles: bool) -> None:
    assert (one(call).time == "s.t") == settles


def test_types_are_sparks() -> None:
    calls: dict[str, Any] = {
        "row_number()": pa.int32(),
        "cume_dist()": pa.float64(),
        "count(v)": pa.int64(),
        "sum(m)": pa.decimal128(18, 2),
        "avg(m)": pa.decimal128(12, 6),
        "lag(m, 1, 0)": pa.decimal128(8, 2),
    }
    for call, kind in calls.items():
        assert one(f"{call} OVER (ORDER BY v)").calls[0].type == kind


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("row_number() OVER (PARTITION BY k)", "row_number depends on the order of rows"),
        ("sum(v + 1) OVER ()", "is not a column; compute it in a query below"),
        ("sum(k) OVER ()", "sum: it takes a number, not STRING"),
        ("sum(DISTINCT v) OVER ()", "DISTINCT is not supported with OVER"),
        ("collect_list(v) OVER ()", "collect_list is not supported with OVER; use one of row_number"),
        ("sum(v) OVER (ORDER BY k RANGE 1 PRECEDING)", "RANGE over a STRING takes a constant number"),
        ("sum(v) OVER (ORDER BY v, k RANGE 1 PRECEDING)", "RANGE with a distance takes one column"),
        ("sum(v) OVER (ORDER BY t RANGE 1 PRECEDING)", "takes an INTERVAL of days or less"),
        ("sum(v) OVER (ORDER BY t RANGE INTERVAL 1 MONTH PRECEDING)", "takes an INTERVAL of days or less"),
        (
            "sum(v) OVER (ORDER BY t ROWS BETWEEN 1 FOLLOWING AND CURRENT ROW)",
            "the frame begins behind its end",
        ),
        ("ntile(0) OVER (ORDER BY t)", "ntile takes a number from 1 on"),
        ("lag(v, k) OVER (ORDER BY t)", "lag takes a constant whole number"),
        ("sum(v) OVER w", "w is not a window of the WINDOW clause"),
        ("rank() FILTER (WHERE v > 1) OVER (ORDER BY t)", "FILTER is only allowed after an aggregate"),
        ("sum(v) IGNORE NULLS OVER ()", "IGNORE NULLS is not supported in sum"),
    ],
)
def test_what_is_refused_says_what_to_write(call: str, message: str) -> None:
    with pytest.raises(SqlError) as error:
        one(call)
    assert message in str(error.value)


def test_a_bare_name_in_qualify_is_the_output_and_no_column_of_its_table() -> None:
    text = "SELECT s.k, row_number() OVER (PARTITION BY s.k ORDER BY s.v) AS n FROM s QUALIFY n = 1"
    query = parse(text)
    assert isinstance(query, exp.Select)
    found = over_of(text, query, Table("s", SCHEMA.append(pa.field("n", pa.int64())), "t"))
    assert found.top == ("$w0", 1)
    assert [name for name, _ in found.columns] == ["s.k", "s.v"]
