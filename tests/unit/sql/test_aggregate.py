"""What GROUP BY, DISTINCT, HAVING and aggregate functions mean; and what is refused, at its place."""

from dataclasses import replace

import pyarrow as pa
import pytest

from joinlib.errors import SpecError, SqlError
from joinlib.expr import types as t
from joinlib.sql import analyse
from joinlib.sql.aggregate import check_append
from joinlib.sql.calls import result_type
from joinlib.sql.parse import parse
from tests.unit.sql.tables import TABLES

O_S = " FROM orders o JOIN ships s ON o.id = s.order_id"
HOUR = "date_trunc('hour', o.at)"
MEANT = [
    # select list and the rest: groups, aggregates, HAVING
    ("SELECT o.id, count(*) AS n", " GROUP BY o.id", ["o.id"], ["count(*)"], None),
    ("SELECT sum(unix_micros(s.at) - unix_micros(o.at)) AS n", "", [], ["sum((unix_micros(s.at) - unix_micros(o.at)))"], None),
    ("SELECT o.id AS i, sum(amount) + 1 AS a", " GROUP BY i", ["o.id"], ["sum(o.amount)"], None),
    (f"SELECT {HOUR} AS h, min(carrier) AS c", " GROUP BY 1", [HOUR], ["min(s.carrier)"], None),
    (f"SELECT year({HOUR}) AS y, mean(o.id) AS c", f" GROUP BY {HOUR}", [HOUR], ["avg(o.id)"], None),
    ("SELECT o.id, carrier, max(s.at) AS m", " GROUP BY ALL", ["o.id", "s.carrier"], ["max(s.at)"], None),
    ("SELECT count(carrier) AS n", "", [], ["count(s.carrier)"], None),
    ("SELECT DISTINCT o.id + 1 AS i, carrier", "", ["(o.id + 1)", "s.carrier"], [], None),
    ("SELECT o.id", " GROUP BY o.id", ["o.id"], [], None),
    ("SELECT o.id, count(*) AS n", " GROUP BY o.id HAVING n > 1", ["o.id"], ["count(*)"], "(count(*) > 1)"),
    ("SELECT o.id", " GROUP BY o.id HAVING sum(1) > 1", ["o.id"], ["sum(1)"], "(sum(1) > 1)"),
    ("SELECT 1 AS one", " HAVING count(*) > 5", [], ["count(*)"], "(count(*) > 5)"),
    ("SELECT sum(o.id) + sum(o.id) AS s", "", [], ["sum(o.id)"], None),
    ("SELECT count(DISTINCT o.id, carrier) AS n", "", [], ["count(DISTINCT o.id, s.carrier)"], None),
    ("SELECT max(DISTINCT o.id) AS n", "", [], ["max(DISTINCT o.id)"], None),
    ("SELECT median(o.id) AS a, percentile(o.id, 0.5) AS b", "", [], ["median(o.id)", "percentile(o.id, 0.5)"], None),
    ("SELECT percentile(o.id, array(0, 1)) AS p", "", [], ["percentile(o.id, array(0.0, 1.0))"], None),
    ("SELECT count(*) FILTER (WHERE o.id > 1) AS n", "", [], ["count(*) FILTER (WHERE (o.id > 1))"], None),
    ("SELECT max_by(carrier, s.at) FILTER (WHERE o.id > 1) AS n", "", [], ["max_by(s.carrier, s.at) FILTER (WHERE (o.id > 1))"], None),
    ("SELECT every(o.id > 1) AS a, some(o.id > 1) AS b", "", [], ["bool_and((o.id > 1))", "bool_or((o.id > 1))"], None),
    ("SELECT count_if(o.id > 1) AS a, std(o.id) AS b", "", [], ["count_if((o.id > 1))", "stddev_samp(o.id)"], None),
    ("SELECT o.id", " GROUP BY o.id HAVING count(*) FILTER (WHERE o.id > 1) > 1", ["o.id"], ["count(*) FILTER (WHERE (o.id > 1))"],
     "(count(*) FILTER (WHERE (o.id > 1)) > 1)"),
]  # fmt: skip
REFUSED = [
    ("SELECT o.id, s.carrier, sum(1) AS n", " GROUP BY o.id", (1, 14), "s.carrier is neither grouped nor aggregated; add it"),
    ("SELECT o.id, count(*) AS n", "", (1, 8), "o.id is neither grouped nor aggregated"),
    ("SELECT o.id", " GROUP BY o.id HAVING s.carrier = 'x'", (1, 82), "s.carrier is neither"),
    ("SELECT DISTINCT count(*) AS n", "", (1, 17), "DISTINCT with GROUP BY"),
    ("SELECT sum(s.carrier) AS n", "", (1, 8), "sum(s.carrier): it takes a number, not STRING"),
    ("SELECT collect_list(NULL) AS n", "", (1, 8), "its values have no type; write CAST(NULL AS ...)"),
    ("SELECT max(NULL) AS n", "", (1, 8), "an output column has no type"),
    ("SELECT DISTINCT map('a', o.id) AS m", "", (1, 17), "cannot be grouped; group by its parts"),
    ("SELECT sum(*) AS n", "", (1, 8), "name the column"),
    ("SELECT sum(o.id, 1) AS n", "", (1, 8), "sum takes 1 argument, not 2"),
    ("SELECT hll_sketch_agg(o.id) AS n", "", (1, 8), "function hll_sketch_agg is not supported"),
    ("SELECT first(o.id) AS n", "", (1, 8), "first depends on the order of rows, and a stream has none; say by what: first(value ORDER BY time), which is min_by(value, time)"),
    ("SELECT percentile_approx(o.id, 2) AS n", "", (1, 32), "takes a number from 0 to 1"),
    ("SELECT percentile(o.id) AS n", "", (1, 8), "percentile takes 2 arguments, not 1"),
    ("SELECT percentile(o.id, 1.5) AS n", "", (1, 25), "percentile takes a number from 0 to 1"),
    ("SELECT percentile(DISTINCT o.id) AS n", "", (1, 8), "percentile takes 2 arguments, not 1"),
    ("SELECT median(DISTINCT o.id) AS n", "", (1, 8), "DISTINCT in median is not supported"),
    ("SELECT count(DISTINCT *) AS n", "", (1, 8), "name the column"),
    ("SELECT sum(DISTINCT o.id, 1) AS n", "", (1, 8), "sum takes 1 argument, not 2"),
    ("SELECT var_pop(carrier) AS n", "", (1, 8), "var_pop(s.carrier): it takes a number, not STRING"),
    ("SELECT sum(s.at - o.at) AS n", "", (1, 8), "it takes a number, not INTERVAL; of two times write unix_micros(a) - unix_micros(b), or timestampdiff(SECOND, b, a)"),
    ("SELECT bool_or(o.id) AS n", "", (1, 8), "it takes a condition, not BIGINT"),
    ("SELECT listagg(o.id) WITHIN GROUP (ORDER BY o.at) AS n", "", (1, 8), "no other order is kept, such as that of o.at; write WITHIN GROUP (ORDER BY the same"),
    ("SELECT listagg(carrier) WITHIN GROUP (ORDER BY carrier, o.id) AS n", "", (1, 8), "no other order is kept, such as that of carrier, o.id"),
    ("SELECT map() AS n", "", (1, 8), "the keys have no type; for an empty map write map_from_arrays(CAST(array() AS ARRAY<STRING>), array())"),
    ("SELECT map_from_arrays(array(), array()) AS n", "", (1, 8), "the keys have no type"),
    ("SELECT count_if(o.id) AS n", "", (1, 8), "count_if takes a condition, o.id is BIGINT"),
    ("SELECT sum(o.id) FILTER (WHERE o.id) AS n", "", (1, 32), "FILTER takes a condition, o.id is BIGINT"),
    ("SELECT sum(o.id) FILTER (WHERE count(*) > 1) AS n", "", (1, 32), "FILTER cannot contain aggregates"),
    ("SELECT abs(o.id) FILTER (WHERE o.id > 1) AS n", "", (1, 8), "FILTER is only allowed after an aggregate"),
    ("SELECT sum(count(*)) AS n", "", (1, 12), "an aggregate of an aggregate"),
    ("SELECT sum(o.id) OVER (PARTITION BY o.at) AS n", "", (1, 8), "OVER"),
    ("SELECT o.id", " WHERE sum(o.id) > 1", (1, 67), "in the select list and in HAVING"),
    ("SELECT o.id", " GROUP BY o.id, count(*)", (1, 76), "GROUP BY cannot contain aggregates"),
    ("SELECT o.id", " GROUP BY 2", (1, 70), "GROUP BY 2: there are 1 output columns"),
    ("SELECT o.id", " GROUP BY o.id WITH ROLLUP", (1, 70), "ROLLUP is not supported"),
    ("SELECT o.*", " GROUP BY o.id", (1, 8), "name the groups"),
    ("SELECT o.id", " GROUP BY o.id HAVING count(*)", (1, 82), "HAVING is a condition, count(*) is BIGINT"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("select", "rest", "keys", "calls", "having"), MEANT, ids=[s + r for s, r, *_ in MEANT]
)
def test_meaning(select: str, rest: str, keys: list[str], calls: list[str], having: str | None) -> None:
    """Groups by expression, by number and by name; each aggregate once; names of the output in HAVING."""
    grouping = analyse(select + O_S + rest, TABLES).grouping

    assert grouping is not None
    assert [k.sql for k in grouping.keys] == keys
    assert [c.sql for c in grouping.calls] == calls
    assert (grouping.having and grouping.having.sql) == having


@pytest.mark.parametrize(("select", "rest", "place", "message"), REFUSED, ids=[s + r for s, r, *_ in REFUSED])
def test_refused(select: str, rest: str, place: tuple[int, int], message: str) -> None:
    """The error stands where the mistake is and says what to write instead."""
    with pytest.raises(SqlError) as e:
        analyse(select + O_S + rest, TABLES)

    assert message in str(e.value)
    assert (e.value.line, e.value.column) == place


def test_types_are_those_of_spark() -> None:
    """Whole numbers add up to BIGINT, decimals get digits, averages are DOUBLE or finer decimals."""
    assert result_type("sum", t.INT) == result_type("count", t.STRING) == t.BIGINT
    assert result_type("sum", t.FLOAT) == result_type("avg", t.BIGINT) == t.DOUBLE
    assert result_type("sum", pa.decimal128(12, 2)) == pa.decimal128(22, 2)
    assert result_type("sum", pa.decimal128(35, 2)) == pa.decimal128(38, 2)
    assert result_type("avg", pa.decimal128(12, 2)) == pa.decimal128(16, 6)
    assert result_type("min", t.DATE) == result_type("max_by", t.DATE) == t.DATE
    assert result_type("collect_list", t.INT) == pa.list_(t.INT)
    assert result_type("percentile", pa.decimal128(9, 2)) == result_type("var_pop", t.INT) == t.DOUBLE
    with pytest.raises(SpecError, match="takes a number, not DATE"):
        result_type("avg", t.DATE)


def test_distinct_rows_of_changes_cannot_only_be_appended() -> None:
    """Where the last of them goes, the row that came out must go too; the error names the clause."""
    for select, rest, place, clause in (
        ("SELECT DISTINCT o.id", "", (1, 17), "SELECT DISTINCT"),
        ("SELECT o.id", " GROUP BY o.id", (1, 70), "GROUP BY without aggregates"),
    ):
        text = select + O_S + rest
        grouping, asked = analyse(text, TABLES).grouping, parse(text)
        assert grouping is not None
        check_append(grouping, text, asked)
        check_append(replace(grouping, changes=True, changelog=True), text, asked)
        with pytest.raises(SqlError, match=f"append cannot take rows back, but a row of {clause}") as e:
            check_append(replace(grouping, changes=True), text, asked)
        assert (e.value.line, e.value.column) == place
