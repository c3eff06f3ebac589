"""Fits a file's content to the declared schema. Law: a value is read exactly, or an error names its column.

Only casts that cannot change a value are made: to wider numbers, from dictionaries to plain text, from
seconds to microseconds. Timestamps without a zone are taken as UTC. Nanoseconds are accepted as long as each
value is a whole microsecond.
"""

import difflib
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from joinlib.errors import InputError

Fit = Callable[[str, pa.RecordBatch, pa.Schema], pa.RecordBatch]  # place, rows, columns as declared
_DIGITS = {8: 3, 16: 5, 32: 10, 64: 19}  # the most decimal digits of a signed integer
_DIGITS_UNSIGNED = {8: 3, 16: 5, 32: 10, 64: 20}
_FRACTION = {16: 11, 32: 24, 64: 53}  # bits of a float that are exact


def fits(have: pa.DataType, want: pa.DataType) -> bool:
    """Return whether every value of type `have` is a value of type `want` (of nanoseconds, most values)."""
    if have == want or pt.is_null(have):
        return True
    if pt.is_dictionary(have):
        return fits(have.value_type, want)
    if pt.is_integer(have):
        return _integer_fits(have, want)
    if pt.is_decimal(have) and pt.is_decimal(want):
        return bool(have.scale <= want.scale and have.precision - have.scale <= want.precision - want.scale)
    if pt.is_floating(have) and pt.is_floating(want):
        return bool(have.bit_width <= want.bit_width)
    return _nested_fits(have, want) if pt.is_nested(want) else _other_fits(have, want)


def check_names(place: str, names: list[str], schema: pa.Schema) -> None:
    """Check that every declared column exists once; raise InputError otherwise."""
    for field in schema:
        if names.count(field.name) > 1:
            raise InputError(f"{place}: column '{field.name}' appears more than once")
        if field.name not in names:
            folded = {name.casefold(): name for name in names}
            near = difflib.get_close_matches(field.name.casefold(), folded, 1, 0.5)
            hint = f" (nearest: {folded[near[0]]})" if near else ""
            raise InputError(f"{place}: no column '{field.name}'; it has {', '.join(names)}{hint}")


def check_types(place: str, have: pa.Schema, want: pa.Schema) -> None:
    """Check that a file's columns fit the declared ones; raise InputError otherwise.

    Further columns are fine.
    """
    check_names(place, have.names, want)
    for field in want:
        type = have.field(field.name).type
        if not fits(type, field.type):
            raise InputError(
                f"{place}: column '{field.name}' is {type}, declared as {field.type}; declare a type that"
                " holds all its values and convert it in the SQL"
            )


def fitted(place: str, batch: pa.RecordBatch, want: pa.Schema) -> pa.RecordBatch:
    """Return the batch with exactly the columns of `want`, in its order and of its types.

    Raises:
        InputError: A value is not exact in its declared type, or NULL in a NOT NULL column.
    """
    if len(want) == 0:
        return batch.select([])  # keeps the number of rows
    return pa.RecordBatch.from_arrays([_column(place, batch, field) for field in want], schema=want)


def _column(place: str, batch: pa.RecordBatch, field: pa.Field) -> pa.Array:
    column = batch.column(field.name)
    if not field.nullable and column.null_count:
        row = pc.index(pc.is_null(column), True).as_py()
        raise InputError(
            f"{place}: column '{field.name}' is declared NOT NULL, but is NULL (row {row} of those)"
        )
    if column.type == field.type:
        return column
    try:
        plain = column.dictionary_decode() if isinstance(column, pa.DictionaryArray) else column
        return pc.cast(plain, field.type)
    except pa.ArrowInvalid:
        # the cause would hold a value of a row
        raise InputError(
            f"{place}: column '{field.name}' holds a value that is not exact as {field.type}"
        ) from None


def _other_fits(have: pa.DataType, want: pa.DataType) -> bool:
    if pt.is_timestamp(want):
        return pt.is_date(have) or (pt.is_timestamp(have) and (want.tz is not None or have.tz is None))
    if pt.is_date32(want):
        return pt.is_date64(have)
    if pt.is_string(want):
        return pt.is_large_string(have) or pt.is_string_view(have)
    if pt.is_binary(want):
        return pt.is_large_binary(have) or pt.is_binary_view(have) or pt.is_fixed_size_binary(have)
    return False


def _nested_fits(have: pa.DataType, want: pa.DataType) -> bool:
    """Compare nested types.

    Names inside lists and maps do not matter; those of structs, and their order, do.
    """
    if pt.is_list(want):
        return (pt.is_list(have) or pt.is_large_list(have)) and fits(have.value_type, want.value_type)
    if pt.is_map(want):
        return pt.is_map(have) and fits(have.key_type, want.key_type) and fits(have.item_type, want.item_type)
    if not (pt.is_struct(want) and pt.is_struct(have) and have.num_fields == want.num_fields):
        return False
    return all(h.name == w.name and fits(h.type, w.type) for h, w in zip(have, want))


def _integer_fits(have: pa.DataType, want: pa.DataType) -> bool:
    signed = pt.is_signed_integer(have)
    width = have.bit_width
    if pt.is_signed_integer(want):
        return bool(width < want.bit_width or (signed and width == want.bit_width))
    if pt.is_unsigned_integer(want):
        return not signed and bool(width <= want.bit_width)
    if pt.is_floating(want):
        return width <= _FRACTION[want.bit_width]
    if pt.is_decimal(want):
        return bool((_DIGITS if signed else _DIGITS_UNSIGNED)[width] <= want.precision - want.scale)
    return False
