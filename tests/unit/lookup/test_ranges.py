"""Range lookups are nested loops; codes keep the order of every type; both skip lists find what a binary search finds."""

from collections import Counter
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bench.lookup.skiplist import Ideal, Random, level
from joinlib.expr import types as t
from joinlib.index.order import codes
from joinlib.join.rows import Picked, Tuples
from joinlib.lookup import ranges
from joinlib.lookup.enrich import VersionLookup, enriched
from joinlib.lookup.load import searchable
from joinlib.lookup.ranges import RangeIndex, order
from joinlib.lookup.version import Version, write_parts
from joinlib.plan import JoinOptions, SourceInput, build
from joinlib.route.split import prepare, split

_DAY = datetime(2026, 1, 1)  # noqa: DTZ001
ORDERED: list[tuple[pa.DataType, list[Any]]] = [
    (pa.int8(), [-128, -1, 0, 127]),
    (pa.int64(), [-(2**63), -1, 0, 1, 2**63 - 1]),
    (pa.float64(), [-float("inf"), -1.5, -5e-324, 0.0, 5e-324, 2.0, float("inf"), float("nan")]),
    (pa.float32(), [-1.5, 0.0, 2.5]),
    (
        pa.decimal128(38, 2),
        [Decimal("-1e30"), Decimal("-0.01"), Decimal("0.00"), Decimal("0.01"), Decimal("1e30")],
    ),
    (pa.bool_(), [False, True]),
    (pa.string(), ["", "a", "a\0", "ab", "abcdefgh", "b", "ä", "€", "😀"]),
    (pa.binary(), [b"", b"\0", b"\x7f", b"\xff"]),
    (pa.date32(), [_DAY.date().replace(year=1900), _DAY.date()]),
    (pa.timestamp("us"), [_DAY.replace(year=1900), _DAY]),
    (pa.timestamp("us", "UTC"), [_DAY.replace(year=1900), _DAY]),
]


@pytest.mark.parametrize(("kind", "values"), ORDERED)
def test_codes_keep_the_order(kind: pa.DataType, values: list[Any]) -> None:
    """A greater value has a greater code, NULLs disturb nobody, and neither does a slice."""
    found = codes(pa.array([None, *values], kind).slice(1))
    shared = kind in (pa.string(), pa.binary())  # a text and the same with zeros behind it
    assert all(a < b or (shared and a <= b) for a, b in pairwise(found.tolist())), found


def test_values_beyond_64_bits_may_share_a_code() -> None:
    """Never in the wrong order, and -0.0 is 0.0."""
    texts = ["abcdefgh", "abcdefghi", "abcdefghz"]
    assert len(set(codes(pa.array(texts)).tolist())) == 1
    assert len(set(codes(pa.array([0.0, -0.0])).tolist())) == 1


row = st.tuples(st.integers(0, 2), st.integers(0, 6), st.integers(0, 6))


@example([(0, 2, 0)], [(0, 1, 0), (1, 0, 0)], 1)  # one key in the table, two that are asked for
@given(st.lists(row, max_size=15), st.lists(row, max_size=8), st.sampled_from([1, 3, 1000]))
def test_ranges_are_nested_loops(
    table: list[tuple[int, ...]], probes: list[tuple[int, ...]], limit: int
) -> None:
    """Ties, overlaps, ranges within ranges, inverted ranges, keys with and without rows, in chunks of any size."""
    hashes, lows, highs = (
        (np.array(c, np.uint64) for c in zip(*table)) if table else [np.zeros(0, np.uint64)] * 3
    )
    wanted, x, y = (np.array(c, np.uint64) for c in zip(*probes)) if probes else [np.zeros(0, np.uint64)] * 3
    hashes, wanted = hashes << np.uint64(62), wanted << np.uint64(62)
    by = order(hashes, lows, highs)
    ranges = RangeIndex.of(hashes[by], lows[by], highs[by])
    got = [(p, by[r]) for ps, rs in ranges.probe(wanted, x, y, limit) for p, r in zip(ps, rs)]
    expected = [
        (i, j)
        for i, (k, at, end) in enumerate(probes)
        for j, (key, low, high) in enumerate(table)
        if k == key and low <= at and end <= high
    ]
    assert sorted(got) == expected


@given(st.lists(st.integers(0, 30), max_size=40), st.lists(st.integers(0, 31), max_size=8), st.integers(0, 9))
def test_skip_lists_are_binary_search(keys: list[int], wanted: list[int], seed: int) -> None:
    """With equal keys, no key, and keys beyond both ends."""
    ordered, asked = np.sort(np.array(keys, np.uint64)), np.array(wanted, np.uint64)
    expected = np.searchsorted(ordered, asked, side="right").tolist()
    for index in (Ideal(ordered), Random.of(ordered, seed)):
        found, compared = index.positions(asked)
        assert found.tolist() == expected
        assert (compared >= (len(keys) > 0)).all()


def test_levels_of_the_paper() -> None:
    """Figure 8a, and equation 4 is the number of twos in i + 1, plus one."""
    assert [level(i) for i in range(12)] == [1, 2, 1, 3, 1, 2, 1, 4, 1, 2, 1, 3]
    assert all(level(i) == ((i + 1) & -(i + 1)).bit_length() for i in range(1000))


def test_the_ideal_list_compares_less() -> None:
    """Figure 13: about a quarter fewer comparisons than a random one, and the same for each list that is built."""
    keys, draw = np.arange(1 << 16, dtype=np.uint64), np.random.default_rng(0)
    asked = draw.integers(0, 1 << 16, 20_000).astype(np.uint64)
    ideal = Ideal(keys).positions(asked)[1].mean()
    random = [Random.of(keys, seed).positions(asked)[1].mean() for seed in range(8)]
    assert ideal < 0.85 * np.mean(random)
    assert np.std(random) > 0


TYPED: dict[pa.DataType, list[Any]] = {
    t.INT: [1, 2, 3, 4],
    t.DOUBLE: [-0.0, 0.0, 1.5, float("inf"), float("nan")],
    pa.decimal128(38, 2): [
        Decimal("0.01"),
        Decimal("1e30"),
        Decimal("1e30") + Decimal("0.01"),
        Decimal("-5.00"),
    ],
    t.TIMESTAMP_NTZ: [_DAY + timedelta(hours=h) for h in range(5)],
    t.STRING: ["", "abcdefgh", "abcdefgh1", "abcdefgh2", "b"],
}
BETWEEN = [
    "o.k = t.k AND o.x BETWEEN t.low AND t.high",
    "o.x BETWEEN t.low AND t.high",
    "o.x > t.low AND o.x < t.high AND o.k <> t.k",
    "o.x >= t.low",
    "t.high > o.x AND t.k <= o.k",
    "o.k = t.k AND o.x BETWEEN t.low - INTERVAL 1 HOUR AND t.low + INTERVAL 2 HOURS",
]


@pytest.mark.slow
@given(
    st.data(),
    st.sampled_from(list(TYPED)),
    st.sampled_from(BETWEEN),
    st.sampled_from(["", "LEFT"]),
    st.sampled_from([2, 64]),
    st.sampled_from([1, 4]),
    st.booleans(),
)
def test_a_range_join_is_a_nested_loop(
    data: st.DataObject, kind: pa.DataType, on: str, side: str, bits: int, parts: int, joined: bool
) -> None:
    """Ints, floats, decimals, timestamps, texts; ties, overlaps, NULLs, with a key and without: as DuckDB has it."""
    if "INTERVAL" in on:
        kind = t.TIMESTAMP_NTZ
    key, value = st.one_of(st.none(), st.integers(0, 1)), st.one_of(st.none(), st.sampled_from(TYPED[kind]))
    orders = data.draw(st.lists(st.tuples(st.integers(0, 9), key, value), max_size=8))
    table = data.draw(st.lists(st.tuples(st.integers(0, 9), key, value, value), max_size=8))
    schemas = {
        "orders": pa.schema([("id", t.BIGINT), ("k", t.BIGINT), ("x", kind)]),
        "t": pa.schema([("v", t.BIGINT), ("k", t.BIGINT), ("low", kind), ("high", kind)]),
    }
    columns = {
        name: [pa.array(c, f.type) for c, f in zip(zip(*rows) if rows else [()] * 4, schemas[name])]
        for name, rows in (("orders", orders), ("t", table))
    }
    sql = f"SELECT o.id, t.v FROM orders o {side} JOIN t ON {on}"
    stage = build(
        sql,
        {n: SourceInput(s, role="stream" if n == "orders" else "table") for n, s in schemas.items()},
        JoinOptions(units=1),
    )
    (lookup,) = stage.lookups
    assert lookup.range is not None
    with TemporaryDirectory() as folder:
        path = Path(folder) / "1"
        block = prepare(lookup.table, pa.record_batch(columns["t"], schemas["t"]), 0, bits)
        if lookup.table.keys:
            shares = dict(split(block, parts))
            each = [shares.get(n, block.slice(0, 0)) for n in range(parts)]
        else:
            each, joined = [block.slice(n * 8 // parts, 8 // parts) for n in range(parts)], False
        write_parts(path, [partial(searchable, lookup, one) for one in each], lookup.range, whole=joined)
        found = VersionLookup(Version(path, lookup.table.keys, bits, ranged=True))
        probes = Tuples(Picked(pa.record_batch(columns["orders"], ["o.id", "o.k", "o.x"])))
        got = Counter(
            row
            for some in enriched(iter([probes]), [(lookup, found)], frozenset())
            for row in zip(*(c.value.evaluate(some.column, len(some)).to_pylist() for c in stage.select))
        )
    db = duckdb.connect()
    for name, schema in schemas.items():
        db.register(name, pa.table(columns[name], schema=schema))
    assert got == Counter(db.sql(sql.replace("HOURS", "HOUR")).fetchall())


@given(
    st.lists(st.tuples(st.sampled_from([0, 1, 2**63, 2**64 - 1]), st.integers(0, 3)), min_size=1, max_size=9),
    st.data(),
)
def test_a_search_may_begin_anywhere(rows: list[tuple[int, int]], data: st.DataObject) -> None:
    """Probes are in order only nearly: from wherever the one before ended, forwards or backwards, the row is the same."""
    rows.sort()
    hashes, lows = (np.array(c, np.uint64) for c in zip(*rows, strict=True))
    sought, x = data.draw(st.sampled_from([0, 1, 7, 2**63, 2**64 - 1])), data.draw(st.integers(0, 4))
    near = data.draw(st.integers(0, len(rows)))
    found = ranges._behind(hashes, lows, near, np.uint64(sought), np.uint64(x))
    assert found == sum(row <= (sought, x) for row in rows)


@given(
    st.lists(st.tuples(st.sampled_from([0, 3, 2**63]), st.sampled_from([0, 5, 2**63, 2**64 - 1])), max_size=8)
)
def test_every_probe_has_its_turn(probes: list[tuple[int, int]]) -> None:
    """Once, whatever the words that are sorted have room for; those of one key, and of few rows, by their points."""
    wanted, x = (np.array([p[i] for p in probes], np.uint64) for i in (0, 1))
    by = ranges._by(wanted, x, rows=1000)
    assert sorted(by.tolist()) == list(range(len(probes)))
    tops = [probes[i][0] >> 50 for i in by]  # for a thousand rows fourteen bits tell most hashes apart
    assert tops == sorted(tops)
    if len(set(wanted.tolist())) == 1:
        rough = [probes[i][1] >> 4 for i in by]  # 64 bits less those of the number
        assert rough == sorted(rough)
