"""What fits is read exactly; what does not is refused with the file and the column."""

from decimal import Decimal

import pyarrow as pa
import pytest

from joinlib.errors import InputError
from joinlib.source.fit import check_types, fits, fitted

UTC = pa.timestamp("us", "UTC")
VALUES = {
    pa.int8(): -128, pa.int32(): 2**31 - 1, pa.int64(): 2**63 - 1, pa.uint8(): 255, pa.uint32(): 2**32 - 1,
    pa.uint64(): 2**64 - 1, pa.float32(): 1.5, pa.float64(): 0.1, pa.bool_(): True, pa.string(): "ä",
    pa.large_string(): "ä", pa.string_view(): "ä", pa.binary(): b"\xff", pa.binary(1): b"x", pa.date32(): 1,
    pa.date64(): 86_400_000, pa.timestamp("s"): 1, pa.timestamp("ns"): 1_000, pa.timestamp("ms", "Europe/Paris"): 5,
    UTC: 7, pa.timestamp("us"): 7, pa.decimal128(5, 2): Decimal("999.99"), pa.decimal128(38, 0): Decimal(10) ** 37,
    pa.null(): None, pa.dictionary(pa.int8(), pa.string()): "ä", pa.dictionary(pa.int8(), pa.int8()): 3,
    pa.list_(pa.field("item", pa.int32())): [1, None], pa.large_list(pa.int64()): [5],
    pa.struct([("a", pa.int8())]): {"a": 1}, pa.map_(pa.string(), pa.int8()): [("k", 1)],
}  # fmt: skip
DECLARED = [
    pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.bool_(), pa.string(), pa.binary(),
    pa.date32(), UTC, pa.timestamp("us"), pa.decimal128(10, 0), pa.decimal128(22, 2), pa.decimal128(38, 2),
    pa.list_(pa.field("element", pa.int64())), pa.struct([("a", pa.int64())]), pa.map_(pa.string(), pa.int64()),
]  # fmt: skip


@pytest.mark.parametrize("want", DECLARED, ids=str)
@pytest.mark.parametrize("have", VALUES, ids=str)
def test_what_fits_keeps_its_value(have: pa.DataType, want: pa.DataType) -> None:
    """Cast there and back, the largest value of a type that fits is the same."""
    if not fits(have, want):
        return
    values = pa.array([VALUES[have], None], have)
    batch = fitted("f", pa.record_batch({"x": values}), pa.schema([("x", want)]))
    assert batch.schema.field("x").type == want
    plain = have.value_type if pa.types.is_dictionary(have) else have
    back = batch.column(0) if pa.types.is_null(have) else batch.column(0).cast(plain)
    assert back.to_pylist() == values.to_pylist()


def test_a_file_without_the_column_names_the_nearest() -> None:
    """The error holds the file, the column, what is there and what may be meant."""
    with pytest.raises(
        InputError, match=r"f\.parquet: no column 'order_id'; it has orderid, x \(nearest: orderid\)"
    ):
        check_types(
            "f.parquet",
            pa.schema([("orderid", pa.int64()), ("x", pa.int8())]),
            pa.schema([("order_id", pa.int64())]),
        )


def test_a_type_that_could_lose_values_is_refused() -> None:
    """int64 is not an INT, whatever the values are."""
    with pytest.raises(InputError, match="f: column 'x' is int64, declared as int32"):
        check_types("f", pa.schema([("x", pa.int64())]), pa.schema([("x", pa.int32())]))


def test_nanoseconds_must_be_whole_microseconds() -> None:
    """A value that would be rounded is refused, and not shown."""
    batch = pa.record_batch({"x": pa.array([1_234_567_891], pa.timestamp("ns"))})
    with pytest.raises(InputError, match="f: column 'x' holds a value that is not exact") as error:
        fitted("f", batch, pa.schema([("x", UTC)]))
    assert "1234567891" not in str(error.value)


def test_null_in_a_not_null_column() -> None:
    """NOT NULL is checked, and the row counted."""
    batch = pa.record_batch({"x": pa.array([1, None])})
    with pytest.raises(InputError, match=r"f: column 'x' is declared NOT NULL, but is NULL \(row 1"):
        fitted("f", batch, pa.schema([pa.field("x", pa.int64(), nullable=False)]))
