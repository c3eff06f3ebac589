"""The ends of bags: what is found through windows is what the whole bag has."""

from unittest.mock import patch

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from joinlib.aggregate import extremes
from joinlib.aggregate.bag import merged, schema
from joinlib.aggregate.keys import hashes
from joinlib.aggregate.members import computed, members
from joinlib.model.bags import bag_of
from joinlib.model.grouping import AggregateCall, Grouping, GroupKey
from joinlib.model.inputs import HASH

CALLS = {f: AggregateCall("$a0", f, "$x0", pa.int64(), pa.int64(), f) for f in ("min", "max")}  # type: ignore[arg-type]
GROUPS = Grouping((GroupKey("$g0", pa.int64(), "k"),), tuple(CALLS.values()), None, (), changes=True)
BAG = bag_of(CALLS["min"], True)
assert BAG is not None
rows = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9), st.sampled_from([-1, 1, 1])), max_size=12)


def part(some: list[tuple[int, int, int]], same: bool) -> pa.RecordBatch:
    """Rows of a segment. `same`: all groups have one hash."""
    assert BAG is not None
    key, value, weight = (pa.array([row[at] for row in some], pa.int64()) for at in range(3))
    hashed = pa.array([7] * len(some), pa.uint64()) if same else hashes([key], len(some))
    return merged([pa.record_batch([hashed, key, value, weight], schema(GROUPS, BAG))], GROUPS, BAG)


@given(st.lists(rows, min_size=1, max_size=4), st.integers(1, 3), st.booleans())
def test_windows_find_what_the_whole_bag_has(
    some: list[list[tuple[int, int, int]]], window: int, same: bool
) -> None:
    """Also where values are taken back in other segments than they came in, and groups have equal hashes."""
    assert BAG is not None
    parts = [part(each, same) for each in some]
    keys = part([(k, 0, 1) for k in range(3)], same).select([HASH, "$g0"])
    whole = members(merged(parts, GROUPS, BAG), keys, GROUPS, BAG)
    for name, last in (("min", False), ("max", True)):
        with patch.multiple(extremes, WINDOW=window, WIDER=2):
            found = members(extremes.ends(parts, keys, GROUPS, BAG, last), keys, GROUPS, BAG)
        assert computed(CALLS[name], found).equals(computed(CALLS[name], whole))
