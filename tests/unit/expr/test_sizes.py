"""A text that a function makes has a bound: no row and no constant of a query may fill the memory."""

import pyarrow as pa
import pytest

from joinlib.errors import StreamJoinError
from tests.unit.expr.evaluate import values

LARGE = 1 << 30
ROWS = pa.table({"s": ["ab"], "n": pa.array([LARGE], pa.int32())})


@pytest.mark.parametrize(
    "call", ["repeat(s, n)", "space(n)", "lpad(s, n, 'x')", "rpad(s, n)", "repeat('ab', 1000000000)"]
)
def test_texts_that_are_too_long(call: str) -> None:
    """The error says how long one may be; an empty text may be repeated."""
    with pytest.raises(StreamJoinError, match="longer than 134,217,728 characters"):
        values(call, ROWS)
    assert values("repeat('', n)", ROWS) == [""]
