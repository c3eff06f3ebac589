"""What map tasks have seen."""

import numpy as np

from joinlib.route.census import Census


def test_no_rows_are_seen_as_none() -> None:
    """All keys of a frame may be NULL, or its rows fail a filter: then none is left to be routed."""
    census = Census.begin(4, 0)
    census.see(np.zeros(0, np.uint64), np.array([]), np.array([]))
    assert census.counts.tolist() == census.plain.tolist() == [0, 0, 0, 0]
