"""Every row that passes the filter is in exactly one block, that of its key's unit."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinlib.model.inputs import HASH, InputPlan
from joinlib.plan.build import build
from joinlib.plan.options import JoinOptions
from joinlib.plan.source import SourceInput
from joinlib.route.maps import columns_of
from joinlib.route.split import prepare, split

SCHEMA = pa.schema([("k", pa.int64()), ("j", pa.string()), ("v", pa.int64())])


def plans(sql: str) -> tuple[InputPlan, ...]:
    return build(sql, dict.fromkeys("ab", SourceInput(SCHEMA)), JoinOptions(units=4)).inputs


INNER = plans("SELECT a.v, b.v AS bv FROM a JOIN b ON a.k = b.k AND a.j = b.j WHERE a.v > 1")
OUTER = plans("SELECT a.v, b.v AS bv FROM a LEFT JOIN b ON a.k = b.k AND a.j = b.j")
rows = st.lists(
    st.tuples(
        st.sampled_from([0, 1, None]), st.sampled_from(["x", "", None]), st.sampled_from([0, 1, 2, 3, None])
    ),
    max_size=30,
)


def source(values: list[tuple[object, ...]]) -> pa.RecordBatch:
    return pa.record_batch([pa.array([r[i] for r in values], f.type) for i, f in enumerate(SCHEMA)], SCHEMA)


@pytest.mark.parametrize(
    ("alias", "asked", "names", "found"),
    [
        ("a", "a.k", ["k", "v"], "k"),
        ("a", "a.k", ["a.k", "k"], "k"),  # the other column is a.a.k
        ("a", "a.a.k", ["a.k", "k"], "a.k"),
        ("$0", "$0.k", ["k"], "k"),
        (
            "$0",
            "$0.$key0",
            ["$0.$key0", "a.k"],
            "$0.$key0",
        ),  # a hop that is called like its rows' first stage
        ("$0", "a.k", ["$0.$key0", "a.k"], "a.k"),
    ],
)
def test_columns_by_their_qualified_names(alias: str, asked: str, names: list[str], found: str) -> None:
    """Rows have them with the alias of the input, or as they have come."""
    of = columns_of(replace(INNER[0], alias=alias), pa.record_batch([[name] for name in names], names))
    assert of(asked).to_pylist() == [found]


@given(rows, st.integers(0, 5))
def test_inner_inputs_keep_what_can_match(values: list[tuple[object, ...]], start: int) -> None:
    """A filter that is NULL keeps nothing, nor does a key with a NULL in it; order stays."""
    block = prepare(INNER[0], source([(9, "z", 9)] * start + values).slice(start).select(INNER[0].read), 0)
    kept = [r for r in values if r[2] is not None and r[2] > 1 and None not in r[:2]]

    assert list(zip(*(block.column(f"a.{c}").to_pylist() for c in "kjv"))) == kept


@given(rows)
def test_outer_inputs_keep_rows_without_a_key(values: list[tuple[object, ...]]) -> None:
    """They come out unmatched; the other input's do not."""
    left, right = (prepare(p, source(values).select(p.read), 0) for p in OUTER)

    assert left.num_rows == len(values)
    assert right.num_rows == sum(None not in r[:2] for r in values)


@given(rows, st.sampled_from([1, 2, 8, 1 << 15]), st.sampled_from([64, 3]))
def test_every_row_is_in_its_unit(values: list[tuple[object, ...]], units: int, bits: int) -> None:
    """Each row once, in the unit of its hash's top bits, ordered by them, stable; equal keys in one unit."""
    block = prepare(OUTER[0], source(values), 7, bits)
    parts = list(split(block, units))
    hashes = block.column(HASH).to_numpy()
    shift = np.uint64(64 - (units.bit_length() - 1)) if units > 1 else None
    homes = [0] * len(hashes) if shift is None else (hashes >> shift).tolist()
    fine = max(14, units.bit_length() - 1)
    order = np.argsort(hashes >> np.uint64(64 - fine), kind="stable")

    assert [u for u, _ in parts] == sorted(set(homes))
    assert [(u, r) for u, p in parts for r in p.to_pylist()] == [
        (homes[i], block.slice(i, 1).to_pylist()[0]) for i in order.tolist()
    ]


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 3)), max_size=30))
def test_a_rule_sends_rows_where_it_says(rows: list[tuple[int, int]]) -> None:
    """(top bits of the hash, unit): each row once, in its unit, there ordered by hash, equal ones as they came."""
    hashes = np.array([h << 61 | n for n, (h, _) in enumerate(rows)], np.uint64)
    block, homes = pa.record_batch({HASH: hashes}), np.array([u for _, u in rows], np.int64)
    found = [(u, h) for u, part in split(block, 4, homes) for h in part.column(HASH).to_pylist()]

    assert found == sorted(((u, (h << 61) + n) for n, (h, u) in enumerate(rows)), key=lambda r: (r[0], r[1]))


@pytest.mark.parametrize("seed", [1, 2])
def test_rows_without_a_key_are_spread_again_alike(seed: int) -> None:
    """Two attempts send them to the same units."""
    values = source([(None, None, n) for n in range(64)])
    one, two = (prepare(OUTER[0], values, seed).column(HASH) for _ in range(2))

    assert one.equals(two) and len({u for u, _ in split(prepare(OUTER[0], values, seed), 8)}) == 8


NOT_IN = plans("SELECT a.v FROM a WHERE (a.k, a.j) NOT IN (SELECT b.k, b.j FROM b)")


@given(rows)
def test_rows_with_a_null_meet_those_that_decide_about_them(values: list[tuple[object, ...]]) -> None:
    """A NULL of NOT IN's left side brings a row to unit 0, and a copy of all on the right; theirs go to every unit."""
    left, _, copy, nulls = (dict(split(prepare(p, source(values).select(p.read), 0), 4)) for p in NOT_IN)
    holes = [r[2] for r in values if None in r[:2]]
    whole = [r[:2] for r in values if None not in r[:2]]

    first = left[0].to_pylist() if 0 in left else []
    assert [r["a.v"] for r in first if None in (r["a.k"], r["a.j"])] == holes
    assert {u: b.num_rows for u, b in copy.items()} == ({0: len(whole)} if whole else {})
    assert {u: b.num_rows for u, b in nulls.items()} == (dict.fromkeys(range(4), len(holes)) if holes else {})
