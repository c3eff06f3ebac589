"""ARRAYs, STRUCTs and MAPs are compared part by part, and equal ones have equal hashes."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinlib.expr.equality import key
from joinlib.route.content import content_hash, same

NUMBERS = st.sampled_from([None, 0.0, -0.0, float("nan"), 1.5])
LISTS = st.none() | st.lists(NUMBERS, max_size=3)
STRUCTS = st.none() | st.fixed_dictionaries({"f": NUMBERS, "g": LISTS})
MAPS = st.none() | st.lists(st.tuples(st.sampled_from("ab"), NUMBERS), max_size=2)
KINDS: dict[str, tuple[Any, pa.DataType]] = {
    "array": (LISTS, pa.list_(pa.float64())),
    "struct": (STRUCTS, pa.struct([("f", pa.float64()), ("g", pa.list_(pa.float64()))])),
    "map": (MAPS, pa.map_(pa.string(), pa.float64())),
    "arrays": (st.none() | st.lists(STRUCTS, max_size=2), pa.list_(pa.struct([("f", pa.float64()), ("g", pa.list_(pa.float64()))]))),
}  # fmt: skip


@pytest.mark.parametrize("name", KINDS)
def test_equal_values(name: str) -> None:
    """Also in columns that are cut out of others, with NULLs in them."""
    values, kind = KINDS[name]

    @given(st.lists(st.tuples(values, values), min_size=1, max_size=6), st.integers(0, 2))
    def check(pairs: list[tuple[Any, Any]], cut: int) -> None:
        left, right = (pa.array([pair[side] for pair in pairs], kind).slice(cut) for side in (0, 1))
        expected = [key(a) == key(b) for a, b in zip(left.to_pylist(), right.to_pylist())]

        assert same([left], [right], len(left)).tolist() == expected
        hashes = [content_hash([side], len(side)) for side in (left, right)]
        assert (hashes[0] == hashes[1])[np.array(expected, bool)].all()
        assert (hashes[0] != hashes[1])[~np.array(expected, bool)].all()

    check()
