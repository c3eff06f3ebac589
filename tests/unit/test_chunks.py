"""Small pieces become few large ones, in order, and none is larger than it may be."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from joinlib.chunks import chunked


@given(st.lists(st.integers(0, 9)), st.integers(0, 20))
def test_neighbours_are_grouped(sizes: list[int], limit: int) -> None:
    """Only an item that is too large by itself makes a larger group; two neighbouring groups would not fit into one."""
    groups = list(chunked(sizes, int, limit))

    assert [size for group in groups for size in group] == sizes
    assert all(sum(group) <= limit or len(group) == 1 for group in groups)
    assert all(sum(one) + two[0] > limit or sum(one) >= limit for one, two in pairwise(groups))


def test_a_full_group_does_not_wait_for_the_next_item() -> None:
    """What is asked for next may cost much."""
    asked = []
    groups = chunked((asked.append(i) or 1 for i in range(9)), int, 2)  # type: ignore[func-returns-value]
    assert (next(groups), asked) == ([1, 1], [0, 1])
