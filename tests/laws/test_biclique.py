"""The law of joins on any predicate: the same multiset as a nested loop, by every route, index and number of units."""

import datetime as dt
from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joinlib.arrays import I32
from joinlib.join import inner, theta
from joinlib.join.probe import Prober
from joinlib.join.settled import Settle
from joinlib.model.tuning import Tuning
from joinlib.plan import JoinOptions, SourceInput, build
from joinlib.route.biclique import Rules
from joinlib.route.hash import key_hash
from joinlib.state.side import Arrival
from tests.laws.cases import DAY, KEYS, UTC, Case, bounds, cases, holds
from tests.laws.harness import Flow, Trouble, counted, cut
from tests.laws.oracle import Condition, Query, band_end, compared, near, odd, same

INF = float("inf")
VALUES = KEYS | {
    pa.int64(): [0, 1, 2**63 - 1, -(2**63), None],
    pa.float64(): [0.0, -0.0, 1.5, float("nan"), INF, -INF, None],
    pa.string(): ["", "a", "aaaaaaaab", "aaaaaaaac", None],
    pa.decimal128(5, 2): [Decimal("0.00"), Decimal("0.01"), Decimal("-1.50"), None],
    pa.date32(): [dt.date(2024, 1, 1), dt.date(1969, 12, 31), None],
    UTC: [DAY, DAY - dt.timedelta(days=40_000), None],
}
SIGNS = st.sampled_from(["<", "<=", ">", ">=", "<>"])
ENDS = st.sampled_from(["<", "<=", ">", ">=", "="])
SELECTED = ("a.k", "a.v", "a.t", "b.k", "b.v", "b.t")
SEALS = Tuning(merge_segments=2, max_segments=8, max_runs=2, retain_batches=1, probe_pairs=3)


@st.composite
def clauses(draw: st.DrawFn) -> Condition:
    column, sign = draw(st.sampled_from("kvj")), draw(SIGNS)
    kind = draw(st.sampled_from(["compare", "compare", "compare", "near", "odd"]))
    if kind == "near":
        by = draw(st.sampled_from([0, 1, -1]))
        return draw(st.sampled_from([near("a.v", "b.v", by), band_end("b.v", draw(ENDS), "a.v", by)]))
    if kind == "odd":
        return odd("a.v", "b.v")
    return compared(f"a.{column}", sign, f"b.{column}")


@st.composite
def predicates(draw: st.DrawFn) -> Query:
    """One to three conditions, and a bound on time or none."""
    on = draw(st.lists(clauses(), min_size=1, max_size=3))
    if draw(st.booleans()):
        on.append(draw(bounds("a", "b")))
    return Query(SELECTED, ("inner", "a", "b", tuple(on)))


@st.composite
def runs(draw: st.DrawFn) -> Case:
    """A join on any predicate."""
    case = draw(cases(predicates(), units=(1, 2, 4, 16)))
    rows = {n: [(draw(st.sampled_from(VALUES[case.key])), *r[1:]) for r in rs] for n, rs in case.rows.items()}
    seal = draw(st.sampled_from([None, 1, 2, 7, 50]))
    tuning = case.tuning if seal is None else replace(SEALS, seal_rows=seal)
    return replace(case, rows=rows, tuning=tuning, strategy=draw(st.sampled_from(["auto", "biclique"])))


@pytest.mark.slow
@settings(max_examples=40)
@given(runs())
def test_any_predicate(case: Case) -> None:
    """Comparisons, bands, sums over both sides and time bounds agree with a nested loop and with DuckDB."""
    holds(case)


@st.composite
def skewed(draw: st.DrawFn) -> Case:
    """An equality routed by ContRand, under rules that change as they like; hot keys have any number of subgroups."""
    on = [same("a.k", "b.k"), *draw(st.lists(clauses(), max_size=1))]
    if draw(st.booleans()):
        on.append(draw(bounds("a", "b")))
    case = draw(cases(st.just(Query(SELECTED, ("inner", "a", "b", tuple(on)))), units=(1, 2, 8, 16)))
    hashes = [int(h) for h in key_hash([pa.array(KEYS[case.key], case.key)], case.tuning.hash_bits)]
    rules, known = [], Rules()
    for _ in range(draw(st.integers(1, 4))):
        hot = st.dictionaries(st.sampled_from(hashes), st.sampled_from([1, 2, 4]), max_size=3)
        known = known.then((draw(hot), draw(hot)))
        rules.append(known)
    subgroups = draw(st.sampled_from([None, 1, 2, 4]))
    return replace(case, strategy="biclique", subgroups=subgroups, rules=tuple(rules))


@pytest.mark.slow
@settings(max_examples=30)
@given(skewed())
def test_contrand_under_any_sequence_of_rules(case: Case) -> None:
    """However often the rules change, a row finds what is stored under each of them."""
    holds(case)


@st.composite
def keyed(draw: st.DrawFn) -> Case:
    """An equality and comparisons, sorted within each key."""
    compares = clauses().filter(lambda c: c.compared and "<>" not in c.sql)  # no index finds other strings
    on = [same("a.k", "b.k"), draw(compares), *draw(st.lists(clauses(), max_size=1))]
    if draw(st.booleans()):
        on.append(draw(bounds("a", "b")))
    query = Query(SELECTED, ("inner", "a", "b", tuple(on)), sorts=True)
    return replace(draw(cases(st.just(query), units=(1, 4))), strategy="inequality")


@pytest.mark.slow
@settings(max_examples=40)
@given(keyed())
def test_comparisons_within_a_key(case: Case) -> None:
    """Sorted by (hash of the key, value): the same rows as by hash chains, also where hashes collide."""
    holds(case)


@settings(max_examples=5)
@given(cases(predicates(), cuts=(50,), units=(2,)))
def test_many_small_batches(case: Case) -> None:
    """Fifty batches of less than a row each say the same as one."""
    holds(case)


@pytest.mark.parametrize("kind", list(VALUES), ids=str)
@pytest.mark.parametrize("sign", ["<", "<=", ">", ">=", "<>"])
def test_every_value_against_every_value(kind: pa.DataType, sign: str) -> None:
    """Values are ordered as SQL has it, ties and all: NaN, infinities, -0.0, extremes, strings with a common beginning."""
    from tests.laws.harness import CALM

    rows = [(k, "x", v, 0) for v, k in enumerate(VALUES[kind] * 2)]
    query = Query(("a.v", "b.v"), ("inner", "a", "b", (compared("a.k", sign, "b.k"),)))
    cuts = {name: [len(rows) // 2, len(rows)] for name in "ab"}
    holds(Case(query, kind, UTC, dict.fromkeys("ab", rows), 0, cuts, 2, Tuning(), CALM, 1000))


@pytest.mark.parametrize("by", ["0.1", "0.3", "0", "0.30000000000000004"])
def test_bands_of_doubles_are_rounded_outwards(by: str, tmp_path: Path) -> None:
    """A difference that rounds to the limit is within it, also where value and limit round to something else."""
    values = [n / 10 for n in range(-9, 10)] + [1e16, 1e16 + 2, float("nan"), INF, -INF]
    table = pa.record_batch([pa.array(values)], pa.schema([("x", pa.float64())]))
    sql = f"SELECT a.x AS ax, b.x AS bx FROM a JOIN b ON ABS(a.x - b.x) <= CAST('{by}' AS DOUBLE)"
    source = SourceInput(table.schema)
    expected = counted([(x, y) for x in values for y in values if abs(x - y) <= float(by)])

    for strategy in ("inequality", "biclique"):
        stage = build(sql, {"a": source, "b": source}, JoinOptions(units=4, strategy=strategy))
        assert Flow(stage, tmp_path / strategy).run([{"a": table, "b": table}]) == expected


DIFFERENCES = (
    "{d} < {by}", "{d} >= {by}", "{by} < {d}", "{d} = {by}", "{d} BETWEEN {by} - 1 AND {by}", "{d} > {by} AND {d} <= 2",
    "{d} > -1 AND {by} > {d} AND a.x < b.x", "{d} > {by} AND a.x <= b.x", "{d} >= {by} AND ABS(b.x - a.x) < 0.35",
    "{d} > {by} AND {turned} > -1",
)  # fmt: skip


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()], ids=str)
@pytest.mark.parametrize("on", DIFFERENCES)
def test_differences_of_doubles(on: str, kind: pa.DataType, tmp_path: Path) -> None:
    """They are rounded outwards as bands are; and NaN, which is more than every number, is every difference from NaN."""
    numbers = [n / 10 for n in range(-9, 10)] + [1e16, 1e16 + 2, float("nan"), INF, -INF]
    table = pa.table([pa.array(numbers, kind)], pa.schema([("x", kind)]))
    source, (batch,) = SourceInput(table.schema), table.to_batches()
    for number, (by, turned) in enumerate((("0.7", False), ("0", True), ("-0.3", False), ("0.1", True))):
        pair = ("a.x - b.x", "b.x - a.x")[:: -1 if turned else 1]
        text = on.format(d=pair[0], turned=pair[1], by=f"CAST('{by}' AS DOUBLE)")
        sql = f"SELECT a.x AS ax, b.x AS bx FROM a JOIN b ON {text}"
        with duckdb.connect() as base:
            expected = counted(base.register("a", table).register("b", table).sql(sql).fetchall())
        stage = build(sql, {"a": source, "b": source}, JoinOptions(units=2))
        assert Flow(stage, tmp_path / str(number)).run([{"a": batch, "b": batch}]) == expected, text


@pytest.mark.parametrize("sign", ["<", "<=", ">", ">=", "<>"])
@pytest.mark.parametrize("by", [-2, 2])
def test_shifted_columns_miss_nothing_at_the_ends_of_64_bits(sign: str, by: int, tmp_path: Path) -> None:
    """What is added to a column shifts the range that is searched; SQL's overflow is no pair's, as only sums that fit are asked."""
    low, high = -(2**63), 2**63 - 1
    sums = [v for v in (low, low + 1, low + 3, 0, 1, 2, 3, high - 3, high - 1, high) if low <= v + by <= high]
    values = [low, low + 1, low + 2, 0, 1, 2, 3, 4, high - 2, high - 1, high]
    tables = {n: pa.record_batch([pa.array(v, pa.int64())], ["k"]) for n, v in (("a", values), ("b", sums))}
    sources = {n: SourceInput(table.schema) for n, table in tables.items()}
    sql = f"SELECT a.k AS ak, b.k AS bk FROM a JOIN b ON a.k {sign} b.k {'+' if by > 0 else '-'} {abs(by)}"
    test = {"<": int.__lt__, "<=": int.__le__, ">": int.__gt__, ">=": int.__ge__, "<>": int.__ne__}[sign]
    expected = counted([(x, y) for x in values for y in sums if test(x, y + by)])

    for first in ({"a": tables["a"]}, {"b": tables["b"]}):
        folder = tmp_path / "-".join(first)
        rest = {n: table for n, table in tables.items() if n not in first}
        assert Flow(build(sql, sources, JoinOptions(units=1)), folder).run([first, rest]) == expected


def test_a_self_join_reads_its_input_twice(tmp_path: Path) -> None:
    """Every row meets every other, and itself, as the condition says."""
    rows = pa.record_batch([pa.array([1, 2, 2, 3, None])], pa.schema([("v", pa.int64())]))
    sql = "SELECT l.v AS lv, r.v AS rv FROM a AS l JOIN a AS r ON l.v <= r.v"
    stage = build(sql, {"a": SourceInput(rows.schema)}, JoinOptions(units=4))
    expected = counted([(x, y) for x in (1, 2, 2, 3) for y in (1, 2, 2, 3) if x <= y])

    assert Flow(stage, tmp_path).run([{"a": rows.slice(0, 2)}, {"a": rows.slice(2)}]) == expected


def test_each_row_is_stored_once(tmp_path: Path) -> None:
    """Join-biclique makes no replica: all units together hold each row once (equation 1), half of them no row of an input."""
    rows = pa.record_batch([pa.array(range(100))], pa.schema([("v", pa.int64())]))
    source = SourceInput(rows.schema)
    stage = build(
        "SELECT a.v AS av FROM a JOIN b ON a.v < b.v", {"a": source, "b": source}, JoinOptions(units=8)
    )
    flow = Flow(stage, tmp_path)
    flow.run([{"a": rows, "b": rows}])
    held = [[side.rows for side in m.sides] for m in flow.manifests]

    assert [sum(side) for side in zip(*held)] == [100, 100]
    assert all(b == 0 for _, b in held[:4]) and all(a == 0 for a, _ in held[4:])
    assert all(sum(h) > 0 for h in held)


@pytest.mark.parametrize("strategy", ["inequality", "biclique"])
def test_without_a_key_no_hash_chains_are_filled(strategy: str, tmp_path: Path) -> None:
    """Nobody looks for such rows by their hashes: the executor holds sorted arrays at most, and none for a scan."""
    rows = pa.record_batch([pa.array(range(100))], pa.schema([("v", pa.int64())]))
    source = SourceInput(rows.schema)
    sql = "SELECT a.v AS av FROM a JOIN b ON a.v < b.v"
    stage = build(sql, {"a": source, "b": source}, JoinOptions(units=2, strategy=strategy))
    flow = Flow(stage, tmp_path)
    found = flow.run([{"a": rows, "b": rows}, {"b": rows}])

    assert found.total() == 2 * 99 * 100 // 2
    names = {p.name for p in (tmp_path / "indexes").rglob("*") if p.is_file() and p.stat().st_size}
    assert {n for n in names if n.endswith(".index")} == set()
    assert bool(names) == (strategy == "inequality")


def test_a_large_result_comes_in_bounded_frames(tmp_path: Path) -> None:
    """A condition that every pair meets gives frames no larger than asked for, by either index."""
    rows = pa.record_batch([pa.array([0] * 200)], pa.schema([("v", pa.int64())]))
    source = SourceInput(rows.schema)
    for sql in ("a.v <= b.v", "a.v + b.v = 0"):
        stage = build(
            f"SELECT a.v AS av FROM a JOIN b ON {sql}", {"a": source, "b": source}, JoinOptions(units=2)
        )
        flow = Flow(stage, tmp_path / sql.replace(" ", ""), replace(SEALS, probe_pairs=64))
        found = flow.run([{"a": rows, "b": rows}])

        assert found.total() == 200 * 200
        assert flow.largest <= 64


def test_a_reader_that_waits_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Back-pressure: of a result as large as the cross product no more is made than is taken."""
    taken: list[int] = []
    whole = theta.chunked

    def counting(
        found: theta.Pairs, size: Callable[[tuple[I32, I32]], int], limit: int
    ) -> Iterator[list[tuple[I32, I32]]]:
        taken.append(0)
        for frame in whole(found, size, limit):
            taken[-1] += 1
            yield frame

    monkeypatch.setattr(theta, "chunked", counting)
    rows = pa.record_batch([pa.array([0] * 200)], pa.schema([("v", pa.int64())]))
    source = SourceInput(rows.schema)
    for strategy in ("inequality", "biclique"):
        stage = build(
            "SELECT a.v AS av FROM a JOIN b ON a.v <= b.v",
            {"a": source, "b": source},
            JoinOptions(units=1, strategy=strategy),
        )
        taken.clear()
        flow = Flow(stage, tmp_path / strategy, replace(SEALS, probe_pairs=64), Trouble(dies={0: 1}))

        assert flow.run([{"a": rows, "b": rows}]).total() == 200 * 200
        assert taken[0] == 2, "the attempt that ends after a frame has seen that there is another"
        assert sum(taken) >= 200 * 200 / 64


ANOMALIES = {"missed": "looks", "duplicated": "stored"}


@pytest.mark.parametrize("broken", [None, *ANOMALIES])
def test_the_order_of_inputs_is_one_for_all_units(
    broken: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Figure 4: rows of one batch meet once; were the order another in each unit, pairs would be missed, or made twice."""
    row = pa.record_batch([pa.array([1])], pa.schema([("v", pa.int64())]))
    source = SourceInput(row.schema)
    stage = build(
        "SELECT a.v AS av FROM a JOIN b ON a.v <= b.v", {"a": source, "b": source}, JoinOptions(units=2)
    )
    if broken is not None:
        first = ANOMALIES[broken]

        def disordered(
            prober: Prober, batch: int, arrived: list[list[Arrival]], settle: Settle, orders: None
        ) -> object:
            """The input that is stored here comes first in the one anomaly, the one that looks for partners in the other."""
            stored = 0 if any(part.stored for part in arrived[0]) else 1
            for me in (stored, 1 - stored) if first == "stored" else (1 - stored, stored):
                one = [arrived[i] if i == me else [] for i in (0, 1)]
                yield from inner.inner(prober, batch, one, settle)

        monkeypatch.setattr("joinlib.join.unit.inner", disordered)

    found = Flow(stage, tmp_path).run([{"a": row, "b": row}])

    assert found.total() == {None: 1, "missed": 0, "duplicated": 2}[broken]


@pytest.mark.slow
@settings(max_examples=30)
@given(data=st.data())
def test_windows_of_rows(data: st.DataObject) -> None:
    """Rows match only if their numbers are less than the window apart, however the inputs are cut; what has left it is dropped."""
    window = data.draw(st.sampled_from([1, 2, 5, 40]))
    on = data.draw(
        st.sampled_from(["a.v <= b.v", "a.v + b.v = 3", "a.v = b.v", "a.v <> b.v AND ABS(a.v - b.v) <= 2"])
    )
    lengths = [data.draw(st.integers(0, 30)) for _ in "ab"]
    values = [[data.draw(st.integers(0, 4)) for _ in range(n)] for n in lengths]
    batches = data.draw(st.sampled_from([1, 3, 12]))
    cuts = [[*sorted(data.draw(st.integers(0, n)) for _ in range(batches - 1)), n] for n in lengths]
    seal = data.draw(st.sampled_from([1, 2, 7, 50]))
    source = SourceInput(pa.schema([("v", pa.int64())]), numbered=True)
    sql = f"SELECT a.v AS av, b.v AS bv FROM a JOIN b ON {on}"
    stage = build(
        sql,
        {"a": source, "b": source},
        JoinOptions(units=data.draw(st.sampled_from([1, 4])), window_rows=window),
    )
    tables = [pa.record_batch([pa.array(v, pa.int64())], source.schema) for v in values]
    parts = [cut(t, c) for t, c in zip(tables, cuts)]
    test = {"<=": lambda x, y: x <= y, "+": lambda x, y: x + y == 3, "=": lambda x, y: x == y}.get(
        on.split()[1], lambda x, y: x != y and abs(x - y) <= 2
    )
    expected = counted(
        [
            (x, y)
            for i, x in enumerate(values[0])
            for j, y in enumerate(values[1])
            if abs(i - j) < window and test(x, y)
        ]
    )

    with TemporaryDirectory() as folder:
        flow = Flow(stage, Path(folder), replace(SEALS, seal_rows=seal))
        assert flow.run([{"a": x, "b": y} for x, y in zip(*parts)], close=False) == expected
        assert set(flow.late.values()) == {0}


def test_rows_that_have_left_the_window_are_dropped(tmp_path: Path) -> None:
    """However much has flowed, no more is stored than the window and what is not yet sealed."""
    source = SourceInput(pa.schema([("v", pa.int64())]), numbered=True)
    stage = build(
        "SELECT a.v AS av FROM a JOIN b ON a.v < b.v",
        {"a": source, "b": source},
        JoinOptions(units=2, window_rows=20),
    )
    flow = Flow(stage, tmp_path, replace(SEALS, seal_rows=7))
    rows = pa.record_batch([pa.array(range(10))], source.schema)
    for _ in range(30):
        flow.batch({"a": rows, "b": rows})

    assert sum(side.rows for m in flow.manifests for side in m.sides) < 200
