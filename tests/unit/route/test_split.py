"""Every row that passes the filter is in exactly one block, that of its key's unit."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinlib.plan.build import build
from joinlib.plan.source import SourceInput
from joinlib.route.config import HASH, InputPlan
from joinlib.route.split import prepare, split

SCHEMA = pa.schema([("k", pa.int64()), ("j", pa.string()), ("v", pa.int64())])


def plans(sql: str) -> tuple[InputPlan, ...]:
    return build(sql, dict.fromkeys("ab", SourceInput(SCHEMA)), units=4).inputs


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


@pytest.mark.parametrize("seed", [1, 2])
def test_rows_without_a_key_are_spread_again_alike(seed: int) -> None:
    """Two attempts send them to the same units."""
    values = source([(None, None, n) for n in range(64)])
    one, two = (prepare(OUTER[0], values, seed).column(HASH) for _ in range(2))

    assert one.equals(two) and len({u for u, _ in split(prepare(OUTER[0], values, seed), 8)}) == 8
