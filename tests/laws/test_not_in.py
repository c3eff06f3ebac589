"""The law of NOT IN: a row comes out where the value equals none of the subquery's, and neither is NULL. DuckDB agrees."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.laws.cases import Case, cases, holds
from tests.laws.oracle import Condition, Query, Row, same


@dataclass(frozen=True)
class NotIn(Query):
    """The same tree, told as NOT IN. DuckDB has none of pairs that is correlated: there, as what it means."""

    text: str = ""

    @property
    def sql(self) -> str:
        return self.text

    def duckdb(self, tables: Mapping[str, pa.Table]) -> Counter[tuple[object, ...]]:
        _, left, right, on = self.tree
        meant = Query(self.select, ("anti", left, right, on), self.where)
        return super().duckdb(tables) if self.text.count(", b.k") == 0 else meant.duckdb(tables)


def unsure(left: str, right: str) -> Condition:
    """Equality is TRUE or NULL."""
    equal = same(left, right)

    def test(row: Row) -> bool | None:
        return row.get(left) is None or row.get(right) is None or equal.test(row)

    return Condition(f"coalesce({left} = {right}, TRUE)", test)


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


@settings(max_examples=60)
@given(cases(correlated(), cuts=(1, 3), most=10))
def test_rows_that_share_a_key(case: Case) -> None:
    """A NULL later, a NULL before, no row at all: what comes out waits until no partner can come."""
    holds(replace(case, delay_s=9))


@settings(max_examples=30)
@given(cases(known(), cuts=(1, 3), most=10))
def test_values_that_are_never_null(case: Case) -> None:
    """An anti join by the value itself."""
    holds(replace(case, delay_s=9))
