"""Equal keys have equal hashes, however the arrays that hold them lie in memory."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinlib.model.keys import hash_is_key
from joinlib.route.hash import key_hash, spread

DAY = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
VALUES = {
    pa.int8(): [-1, 0, 7],
    pa.int16(): [-1, 0, 7],
    pa.int32(): [-1, 0, 7],
    pa.int64(): [-(2**63), -1, 0, 7],
    pa.float32(): [0.0, 1.5, float("inf")],
    pa.float64(): [0.0, 1.5, 5e-324],
    pa.bool_(): [True, False],
    pa.date32(): [dt.date(1960, 1, 1), dt.date(2024, 2, 29)],
    pa.timestamp("us", "UTC"): [DAY, DAY - dt.timedelta(days=40_000)],
    pa.timestamp("us"): [DAY],
    pa.string(): ["", "a", "aaaaaaaa", "aaaaaaaab", "ä"],
    pa.binary(): [b"", b"\0", b"\0\0"],
    pa.decimal128(38, 2): [Decimal("0.00"), Decimal("-1.00"), Decimal(10) ** 30],
}


@given(st.data())
def test_a_hash_is_of_the_value_alone(data: st.DataObject) -> None:
    """Offsets, slices, NULL masks and neighbours change nothing; different values of these domains differ."""
    type = data.draw(st.sampled_from(list(VALUES)))
    known = dict(zip(map(str, VALUES[type]), key_hash([pa.array(VALUES[type], type)]).tolist()))
    values = data.draw(st.lists(st.sampled_from([*VALUES[type], None]), max_size=20))
    start = data.draw(st.integers(0, len(values)))
    array = pa.array(values, type).slice(start, data.draw(st.integers(0, len(values) - start)))
    hashes = key_hash([array]).tolist()

    assert len(set(known.values())) == len(known)
    assert [h for h, v in zip(hashes, array, strict=True) if v.is_valid] == [
        known[str(v)] for v in values[start : start + len(array)] if v is not None
    ]


@pytest.mark.parametrize("type", [pa.float32(), pa.float64()])
def test_floats_follow_sql(type: pa.DataType) -> None:
    """All NaN are one key, and so are -0.0 and 0.0."""
    width = type.bit_width
    strange = np.array([0x7FF8000000000001 if width == 64 else 0x7FC00001], f"u{width // 8}").view(
        f"f{width // 8}"
    )
    hashes = key_hash(
        [
            pa.concat_arrays(
                [pa.array([0.0, -0.0, float("nan"), -float("nan")], type), pa.array(strange, type)]
            )
        ]
    )

    assert hashes[0] == hashes[1] and hashes[2] == hashes[3] == hashes[4] and hashes[0] != hashes[2]


def test_order_and_boundaries_of_composite_keys_count() -> None:
    """("a", "bc") is not ("ab", "c"), nor (1, 2) (2, 1)."""
    texts = key_hash([pa.array(["a", "ab"]), pa.array(["bc", "c"])])
    numbers = key_hash([pa.array([1, 2]), pa.array([2, 1])])

    assert texts[0] != texts[1] and numbers[0] != numbers[1]


def test_one_narrow_column_is_exact() -> None:
    """Only there equal hash is equal key, and only if no bit of the hash is cut off."""
    assert hash_is_key([pa.int64()]) and hash_is_key([pa.float64()]) and hash_is_key([pa.bool_()])
    assert (
        not hash_is_key([pa.int64(), pa.int64()])
        and not hash_is_key([pa.string()])
        and not hash_is_key([pa.decimal128(5, 2)])
    )
    assert not hash_is_key([pa.int64()], 3)


def test_few_bits_force_collisions() -> None:
    """Only the top bits are left."""
    hashes = key_hash([pa.array(range(100))], 3)

    assert set((hashes >> np.uint64(61)).tolist()) == set(range(8)) and not (hashes << np.uint64(3)).any()


@pytest.mark.parametrize("type", list(VALUES))
def test_no_rows(type: pa.DataType) -> None:
    """An empty column and a column of NULLs have hashes, too."""
    assert len(key_hash([pa.array([], type)])) == 0
    assert len(key_hash([pa.nulls(3, type)])) == 3


def test_rows_without_a_key_are_spread() -> None:
    """Sixty-four rows without a key do not fall upon one unit, and two attempts put them in the same."""
    assert len(set((spread(64, 1) >> np.uint64(61)).tolist())) == 8
    assert spread(64, 1).tolist() == spread(64, 1).tolist() != spread(64, 2).tolist()
