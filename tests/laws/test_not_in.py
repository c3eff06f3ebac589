"""The law of NOT IN: a row comes out where x = y is FALSE for every row of the subquery: NULLs on either side, windows, no rows
at all, several units, restarts. DuckDB agrees.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joinlib.model.operator import Operator
from joinlib.plan.build import build
from joinlib.plan.options import JoinOptions
from joinlib.plan.source import SourceInput
from tests.laws.cases import DAY, UTC, Case, bounds, cases, holds
from tests.laws.changelog import Changelog
from tests.laws.document import written
from tests.laws.harness import SMALL, Flow, Trouble
from tests.laws.oracle import Condition, Query, differ, same, unsure
from tests.laws.product import Course, Product


@dataclass(frozen=True)
class NotIn(Query):
    """The same tree, told as NOT IN. DuckDB has none of pairs that is correlated: there, as what it means."""

    text: str = ""
    spelled: bool = False  # for DuckDB, as what it means

    @property
    def sql(self) -> str:
        return self.text

    def duckdb(self, tables: Mapping[str, pa.Table]) -> Counter[tuple[object, ...]]:
        _, left, right, on = self.tree
        meant = Query(self.select, ("anti", left, right, on), self.where)
        return meant.duckdb(tables) if self.spelled else super().duckdb(tables)


def present(column: str) -> Condition:
    return Condition(f"{column} IS NOT NULL", lambda r: r.get(column) is not None)


@st.composite
def correlated(draw: st.DrawFn) -> Query:
    """One or two values of rows that share a key: NULLs in all of them."""
    values = draw(st.sampled_from([("k",), ("v", "k")]))
    on = (same("a.j", "b.j"), *(unsure(f"a.{c}", f"b.{c}") for c in values))
    left, right = (", ".join(f"{side}.{c}" for c in values) for side in "ab")
    said = "NOT ({}) IN ({})" if draw(st.booleans()) else "({}) NOT IN ({})"
    test = said.format(left, f"SELECT {right} FROM b WHERE b.j = a.j")
    return NotIn(
        ("a.k", "a.v", "a.j"),
        ("anti", "a", "b", on),
        text=f"SELECT a.k AS a_k, a.v AS a_v, a.j AS a_j FROM a WHERE {test}",
        spelled=len(values) > 1,
    )


@st.composite
def known(draw: st.DrawFn) -> Query:
    """No value is NULL, as the text says in one way or another; the second of a pair may be."""
    one = draw(st.sampled_from(["a.k IS NOT NULL", "a.k = a.k", "(a.k > a.k OR a.k <= a.k)"]))
    two = draw(st.sampled_from(["b.k IS NOT NULL", "b.k = b.k", "NOT (b.k IS NULL)"]))
    pair = draw(st.booleans())
    on = (present("b.k"), same("a.k", "b.k"), *([unsure("a.v", "b.v")] if pair else []))
    left, right = ("(a.k, a.v)", "b.k, b.v") if pair else ("a.k", "b.k")
    return NotIn(
        ("a.k", "a.v"),
        ("anti", "a", "b", on),
        (present("a.k"),),
        text=f"SELECT a.k AS a_k, a.v AS a_v FROM a WHERE {one} AND {left} NOT IN (SELECT {right} FROM b WHERE {two})",
    )


@st.composite
def anywhere(draw: st.DrawFn) -> Query:
    """Nothing is known of NULLs, or of one side only; windows, and what else the subquery asks of both rows."""
    values = draw(st.sampled_from([("k",), ("k",), ("j",), ("k", "j"), ("j", "k", "v")]))
    on = [unsure(f"a.{c}", f"b.{c}") for c in values]
    asked = draw(
        st.sampled_from([[], [], [draw(bounds("a", "b"))], [draw(bounds("a", "b"))], [differ("a.v", "b.v")]])
    )
    asked += [present(f"b.{c}") for c in values if draw(st.integers(0, 5)) == 0]
    where = [present(f"a.{c}") for c in values if draw(st.integers(0, 5)) == 0]
    left, right = (", ".join(f"{side}.{c}" for c in values) for side in "ab")
    query = f"SELECT {right} FROM b" + "".join(
        f" {word} {c.sql}" for word, c in zip(["WHERE", *["AND"] * len(asked)], asked)
    )
    said = draw(
        st.sampled_from(["({}) NOT IN ({})", "NOT ({}) IN ({})", "({}) <> ALL ({})", "NOT ({}) = ANY ({})"])
    )
    test = said.format(left, query)
    return NotIn(
        ("a.k", "a.v", "a.j", "a.t"),
        ("anti", "a", "b", (*asked, *on)),
        tuple(where),
        text="SELECT a.k AS a_k, a.v AS a_v, a.j AS a_j, a.t AS a_t FROM a WHERE "
        + " AND ".join([*(c.sql for c in where), test]),
        spelled=len(values) > 1 or bool(asked),
    )


@pytest.mark.slow
@settings(max_examples=120)
@given(cases(anywhere(), cuts=(1, 3), most=10))
def test_values_that_may_be_null(case: Case) -> None:
    """A NULL that keeps all rows out, wherever they lie; one that only an empty subquery lets pass."""
    holds(case)


@pytest.mark.slow
@settings(max_examples=60)
@given(cases(correlated(), cuts=(1, 3), most=10))
def test_rows_that_share_a_key(case: Case) -> None:
    """A NULL later, a NULL before, no row at all: what comes out waits until no partner can come."""
    holds(replace(case, delay_s=9))


@pytest.mark.slow
@settings(max_examples=30)
@given(cases(known(), cuts=(1, 3), most=10))
def test_values_that_are_never_null(case: Case) -> None:
    """An anti join by the value itself."""
    holds(replace(case, delay_s=9))


SCHEMA = pa.schema([("k", pa.int64()), ("t", UTC)])
WINDOWED = (
    "SELECT a.k FROM a WHERE k NOT IN (SELECT k FROM b WHERE b.t BETWEEN a.t AND a.t + INTERVAL 9 SECONDS)"
)


def run(
    folder: Path, *batches: dict[str, list[tuple[int | None, int]]], close: bool = True
) -> tuple[Flow, list[object]]:
    """The windowed query over rows (k, seconds) in these batches, each read by a new process; and what came out."""
    stage = build(WINDOWED, dict.fromkeys("ab", SourceInput(SCHEMA, "t")), JoinOptions(units=8))
    flow = Flow(stage, folder, trouble=Trouble(restart=frozenset(range(9))))
    made = [{name: table(rows) for name, rows in batch.items()} for batch in batches]
    return flow, sorted(k for (k,) in flow.run(made, close).elements())


def table(rows: list[tuple[int | None, int]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"k": k, "t": DAY + timedelta(seconds=s)} for k, s in rows], SCHEMA)


def test_a_null_keeps_the_rows_of_all_units_out(tmp_path: Path) -> None:
    """Those of its window: a batch later, in units that no other row of the subquery came to."""
    first = {"a": [(k, k) for k in range(20)], "b": [(99, 0)]}
    _, out = run(tmp_path, first, {"b": [(None, 19), (None, 100)], "a": [(1000, 100)]})

    assert out == list(range(10))


def test_what_is_late_is_counted_once(tmp_path: Path) -> None:
    """However many units would have had a copy."""
    flow, _ = run(tmp_path, {"a": [(1, 50)], "b": [(1, 50)]}, {"b": [(None, 0), (2, 0)], "a": [(None, 0)]})

    assert flow.late == {"a": 1, "b": 1, "b_2": 1, "b_3": 1}


@pytest.mark.parametrize("grouped", [False, True])
def test_rows_whose_values_nobody_reads_go_apart(grouped: bool, tmp_path: Path) -> None:
    """Two rows that are alike but for x of `x NOT IN`: each finds its value, and a NULL comes in the same batch."""
    sql = "SELECT 1 AS n FROM a WHERE k NOT IN (SELECT k FROM b)"
    sql = f"SELECT n, count(*) AS c FROM ({sql}) GROUP BY n" if grouped else sql
    for name, parts in {"a": [[1, 2]], "b": [[9], [1, 2, None]]}.items():
        (tmp_path / name).mkdir()
        for at, keys in enumerate(parts):
            pq.write_table(pa.table({"k": pa.array(keys, pa.int64())}), tmp_path / name / f"{at}.parquet")
    files = {"maxFilesPerBatch": 1, "orderBy": "name"}
    spec = {
        "sql": sql,
        "inputs": {n: {"schema": "k BIGINT", "files": {"path": n, **files}} for n in "ab"},
        "output": {"mode": "changelog", "files": {"path": "out"}},
        "checkpoint": {"path": "checkpoint"},
    }
    seen = Changelog(tmp_path / "out")
    for number in Product(written(spec, tmp_path), SMALL, Course()).batches():
        seen.batch(number, units_apart=False)
        assert number or seen.answer

    assert not seen.answer


def test_of_rows_that_only_their_time_tells_apart_few_are_stored(tmp_path: Path) -> None:
    """The first and the last of each stretch as long as the window."""
    flow, _ = run(tmp_path, {"a": [(1, 0)], "b": [(k, k // 100) for k in range(1000)]}, close=False)
    below = flow.root.children[0]
    assert isinstance(below, Operator)
    copies = below.sides[1]

    assert copies.schema.names == ["$hash", "b_2.t"]
    assert sum(m.sides[copies.number].rows for m in flow.manifests) == 4
