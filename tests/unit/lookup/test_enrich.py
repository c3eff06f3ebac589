"""A lookup of joined rows is SQL's INNER or LEFT JOIN, whatever keeps the table; versions change between batches only."""

import logging
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinlib.errors import InputError
from joinlib.join.rows import Picked, Tuples
from joinlib.lookup.enrich import DatabaseLookup, Finder, VersionLookup, enriched
from joinlib.lookup.incremental import LookupCache
from joinlib.lookup.load import searchable
from joinlib.lookup.task import TableTask
from joinlib.lookup.version import Version, write
from joinlib.lookup.versions import Versions
from joinlib.model.stage import Stage
from joinlib.plan import JoinOptions, SourceInput, build
from joinlib.route.split import block_schema, prepare

ORDERS = pa.schema([("id", pa.int64()), ("k", pa.int64()), ("s", pa.string())])
TABLE = pa.schema([("k", pa.int32()), ("s", pa.string()), ("v", pa.int64())])
INPUTS = {
    "orders": SourceInput(ORDERS),
    "t": SourceInput(TABLE, role="table"),
    "u": SourceInput(TABLE, role="table"),
}
SELECT = "SELECT o.id, t.v AS tv, u.v AS uv FROM orders o "
ON = [
    "{0} JOIN t ON o.k = t.k {1} JOIN u ON u.k = t.v AND u.s = o.s",
    "{0} JOIN t ON o.k = t.k AND t.v > o.id {1} JOIN u ON u.k = o.k AND u.s = t.s WHERE u.v IS NULL OR u.v > t.v",
    "{0} JOIN t ON o.s = t.s AND t.k + 1 = o.k {1} JOIN u ON u.s = t.s AND u.v < o.k",
]
TESTS = [
    "SELECT o.id, o.s FROM orders o SEMI JOIN t ON o.k = t.k",
    "SELECT o.id FROM orders o ANTI JOIN t ON o.k = t.k AND t.v > o.id",
    "SELECT o.id FROM orders o ANTI JOIN t ON o.k = t.k AND o.s = 'a'",
    "SELECT o.id FROM orders o WHERE NOT EXISTS (SELECT 1 FROM t WHERE t.k = o.k AND t.v < 2)",
    "SELECT o.id FROM orders o WHERE o.k IN (SELECT t.k FROM t WHERE t.s = o.s)",
    "SELECT o.id, u.v FROM orders o LEFT JOIN u ON u.k = o.k WHERE EXISTS (SELECT 1 FROM t WHERE t.k = u.v)",
    "SELECT o.id, u.v FROM orders o ANTI JOIN t ON t.k = o.k JOIN u ON u.s = o.s WHERE u.v > o.id",
    "SELECT o.id FROM orders o WHERE EXISTS (SELECT 1 FROM t WHERE o.k BETWEEN t.k AND t.v)",
    "SELECT o.id FROM orders o WHERE NOT EXISTS (SELECT 1 FROM t WHERE t.s = o.s AND o.k BETWEEN t.k AND t.v)",
]
some = st.one_of(st.none(), st.integers(0, 2))
text = st.one_of(st.none(), st.sampled_from("ab"))
rows = st.lists(st.tuples(some, text, some), max_size=8)


class Given:
    """A finder over rows in memory, as a version or through a cache."""

    def __init__(
        self, folder: Path, stage: Stage, data: dict[str, list[tuple[Any, ...]]], whole: bool, budget: int
    ) -> None:
        self.folder, self.stage, self.data, self.whole, self.budget = folder, stage, data, whole, budget

    def finders(self) -> Iterator[Finder]:
        for lookup in self.stage.lookups:
            plan = lookup.table
            table = pa.Table.from_arrays(
                [
                    pa.array(c, f.type)
                    for c, f in zip(
                        zip(*self.data[plan.source]) if self.data[plan.source] else [()] * 3, TABLE
                    )
                ],
                schema=TABLE,
            ).combine_chunks()
            batch = pa.record_batch([c.combine_chunks() for c in table.columns], schema=TABLE)
            block = prepare(plan, batch, 0, 2)
            if self.whole or lookup.range is not None:
                write(self.folder / plan.alias, searchable(lookup, block), lookup.range)
                yield VersionLookup(Version(self.folder / plan.alias, plan.keys, 2, lookup.range is not None))
            else:
                cache = LookupCache(self.folder / plan.alias, block_schema(plan), plan.keys, self.budget, 2)
                asked = DatabaseLookup(TableTask(lookup, None, self.folder), cache, 2, lambda: 0)
                asked._fetch = lambda keys, block=block: block  # type: ignore[method-assign]
                yield asked


@pytest.mark.slow
@given(
    st.sampled_from(ON), st.tuples(*[st.sampled_from(["", "LEFT"])] * 2),
    st.lists(st.tuples(st.integers(0, 2), some, text), max_size=8), rows, rows, st.booleans(), st.sampled_from([1, 20_000]),
)  # fmt: skip
def test_lookups_are_joins(
    on: str, kinds: tuple[str, str], orders: list[Any], t: list[Any], u: list[Any], whole: bool, budget: int
) -> None:
    """Two tables one after the other, further predicates, NULLs, computed keys: as DuckDB has it."""
    # A database cannot be asked for what is computed.
    agree(SELECT + on.format(*kinds), orders, t, u, whole or "t.k + 1" in on, budget)


@pytest.mark.slow
@given(
    st.sampled_from(TESTS), st.lists(st.tuples(st.integers(0, 2), some, text), max_size=8), rows, rows, st.booleans(),
    st.sampled_from([1, 20_000]),
)  # fmt: skip
def test_tables_keep_rows_or_leave_them_out(
    sql: str, orders: list[Any], t: list[Any], u: list[Any], whole: bool, budget: int
) -> None:
    """SEMI and ANTI joins, [NOT] EXISTS and IN, alone, with further predicates, before and after other lookups."""
    agree(sql, orders, t, u, whole, budget)


def agree(sql: str, orders: list[Any], t: list[Any], u: list[Any], whole: bool, budget: int) -> None:
    """Whatever keeps the tables, the rows are DuckDB's."""
    import duckdb

    stage = build(sql, INPUTS, JoinOptions(units=1))
    named = [pa.array(c, f.type) for c, f in zip(zip(*orders) if orders else [()] * 3, ORDERS)]
    batch = pa.record_batch(named, [f"o.{n}" for n in ORDERS.names])
    with TemporaryDirectory() as folder:
        made = Given(Path(folder), stage, {"t": t, "u": u}, whole, budget)
        found = zip(stage.lookups, made.finders(), strict=True)
        halves = [Tuples(Picked(batch.slice(0, 3))), Tuples(Picked(batch.slice(3)))]
        out = enriched(iter(halves), list(found), stage.reads)
        got = Counter(
            row
            for some_rows in out
            for row in zip(
                *(c.value.evaluate(some_rows.column, len(some_rows)).to_pylist() for c in stage.select)
            )
        )
    db = duckdb.connect()
    for name, data, schema in (("orders", orders, ORDERS), ("t", t, TABLE), ("u", u, TABLE)):
        columns = [pa.array(c, f.type) for c, f in zip(zip(*data) if data else [()] * 3, schema)]
        db.register(name, pa.table(columns, schema=schema))
    assert got == Counter(db.sql(sql).fetchall())


@pytest.mark.parametrize(("high", "inverted"), [("t.v", 2), ("t.k - 1", 4), ("t.k", 0)])
def test_ranges_that_hold_nothing_are_counted(
    high: str, inverted: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Those that end before they begin, some or all of them: one line that names the input. One with a NULL just is not there."""
    stage = build(
        f"SELECT o.id FROM orders o JOIN t ON o.k BETWEEN t.k AND {high}", INPUTS, JoinOptions(units=1)
    )
    data = [(1, "a", 0), (1, "a", 1), (2, "b", 7), (5, "b", -5), (None, "b", 1)]
    table = pa.record_batch([pa.array(c, f.type) for c, f in zip(zip(*data), TABLE)], schema=TABLE)
    kept = searchable(stage.lookups[0], prepare(stage.lookups[0].table, table, 0))
    said = [r.getMessage() for r in caplog.records]
    line = f"inputs.t: {inverted} rows have ranges that end before they begin; they match nothing"
    assert said == [line] * bool(inverted)
    assert kept.num_rows == 4


def test_joins_give_their_sides_in_any_order(tmp_path: Path) -> None:
    """What is asked for together is one batch all the same."""
    stage = build(
        "SELECT o.id, t.v FROM orders o JOIN t ON o.k = t.k AND t.s = o.s", INPUTS, JoinOptions(units=1)
    )
    (finder,) = Given(tmp_path, stage, {"t": [(1, "a", 10)]}, False, 20_000).finders()
    left = pa.record_batch([pa.array([1]), pa.array([1])], ["o.id", "o.k"])
    right = pa.record_batch([pa.array(["a"])], ["o.s"])
    both = [Tuples(Picked(left), Picked(right)), Tuples(Picked(right), Picked(left))]
    found = list(enriched(iter(both), [(stage.lookups[0], finder)], stage.reads))
    assert [v for some in found for v in some.column("t.v").to_pylist()] == [10, 10]


class Source:
    """A table that changes, fails or is empty."""

    def __init__(self) -> None:
        self.rows: list[int] | None = [1]

    def read_all(self) -> Iterator[pa.RecordBatch]:
        if self.rows is None:
            raise InputError("inputs.t: damaged")
        yield pa.record_batch(
            [pa.array(self.rows, pa.int32()), pa.nulls(len(self.rows), pa.string())], ["k", "s"]
        )


def test_versions_change_when_they_are_whole(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A refresh gives the next version; one that fails or is empty keeps the old and says so; old ones are deleted."""
    from dataclasses import replace

    from joinlib.model.joins import Caching

    stage = build("SELECT o.id, t.s FROM orders o JOIN t ON o.k = t.k", INPUTS, JoinOptions(units=1))
    lookup = replace(stage.lookups[0], caching=Caching("full", refresh_us=10_000_000))
    source, now = Source(), [0.0]
    task = TableTask(lookup, source, tmp_path / "t")  # type: ignore[arg-type]
    versions = Versions([task], clock=lambda: now[0])

    def after_refresh() -> dict[str, int]:
        now[0] += 11
        versions.current()
        versions._pool.submit(int).result()  # the load before it has ended
        return versions.current()

    def keys(number: int) -> list[int]:
        return Version(task.version(number), lookup.table.keys).rows.column("t.$key0").to_pylist()

    assert versions.current() == {"t": 1} == versions.current()
    source.rows = [1, 2]
    assert after_refresh() == {"t": 2}
    assert (keys(1), sorted(keys(2))) == ([1], [1, 2])
    with caplog.at_level(logging.WARNING):
        source.rows = []
        assert after_refresh() == {"t": 2}
        source.rows = None
        assert after_refresh() == {"t": 2}
    assert (versions.loads()["t"]["version"], versions.loads()["t"]["kept"]) == (2, 2)
    assert versions.loads()["t"]["seconds"] > 0
    assert "the table is empty; the previous version is kept" in caplog.text
    assert "inputs.t: damaged; the previous version is kept" in caplog.text
    source.rows = [3]
    assert after_refresh() == {"t": 3}
    versions.retire({"t": 3})
    assert [f.name for f in (tmp_path / "t").iterdir()] == ["00000003"]
    versions.ensure({"t": 2})
    assert keys(2) == [3], "a version that was lost is loaded anew"
