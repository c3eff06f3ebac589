"""A constant over no rows is a column without values, of the constant's type."""

import pyarrow as pa
import pytest

from joinlib.expr import repeated

TYPES = (
    pa.int64(),
    pa.string(),
    pa.list_(pa.int32()),
    pa.struct([("a", pa.int8())]),
    pa.map_(pa.string(), pa.int8()),
)


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_no_rows(kind: pa.DataType) -> None:
    value = pa.scalar(None, kind) if not pa.types.is_list(kind) else pa.scalar([0, 1], kind)
    assert repeated(value, 0) == pa.array([], kind)
    assert len(repeated(value, 2)) == 2
