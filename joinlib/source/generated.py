"""Values of a generated row, as functions of its number. Vectorised: a range of numbers at a time.

key                   Zipf(mix(number))        event time, other timestamps    start + number / rate
other integers        number (modulo)          string, binary                  "row-<number>"
float                 mix(number) in [0, 100)  decimal                         number (modulo)
boolean               number is even           date                            day of the event time
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from joinlib.errors import SpecError
from joinlib.source.zipf import Floats, Longs, zipf

_DAY_US = 86_400 * 10**6


class Popularity(Protocol):
    """The part of the generator's configuration that values depend on."""

    @property
    def keys(self) -> int: ...
    @property
    def skew(self) -> float: ...
    @property
    def seed(self) -> int: ...
    @property
    def time_column(self) -> str | None: ...


def check_makeable(schema: pa.Schema, time_column: str | None) -> None:
    """Check that every column is of a type that can be generated; raise SpecError otherwise."""
    if time_column is not None and time_column not in schema.names:
        raise SpecError(
            f"generator: no column '{time_column}' for event time; there are {', '.join(schema.names)}"
        )
    for field in schema:
        if not _makeable(field.type):
            raise SpecError(f"generator: column '{field.name}' is {field.type}, which cannot be generated")
    if time_column is not None and not pt.is_timestamp(schema.field(time_column).type):
        raise SpecError(f"generator: event time '{time_column}' must be a TIMESTAMP")


@dataclass(frozen=True)
class GeneratedRows:
    """Generated rows [start, stop)."""

    start: int
    stop: int
    start_us: int  # event time of row 0
    rate: int  # rows per second of event time
    config: Popularity

    def batch(self, schema: pa.Schema, columns: Sequence[str]) -> pa.RecordBatch:
        """Return the rows, with these columns."""
        names = list(columns) or schema.names[:1]
        arrays = [self._column(schema, schema.field(name)) for name in names]
        fields = pa.schema([schema.field(name) for name in names])
        return pa.RecordBatch.from_arrays(arrays, schema=fields).select(list(columns))

    def _column(self, schema: pa.Schema, field: pa.Field) -> pa.Array:
        number = np.arange(self.start, self.stop, dtype=np.int64)
        type = field.type
        stream = schema.get_field_index(field.name)
        if field.name == _key(schema):
            return _integers(
                zipf(_uniform(number, self.config.seed, stream), self.config.keys, self.config.skew), type
            )
        if pt.is_integer(type):
            return _integers(number, type)
        if pt.is_floating(type):
            cents = np.floor(_uniform(number, self.config.seed, stream) * 10_000)
            return pa.array(cents / 100).cast(type, safe=False)
        if pt.is_decimal(type):
            return _decimals(number, type)
        if pt.is_boolean(type):
            return pa.array(number % 2 == 0)
        if pt.is_timestamp(type):
            return pa.array(self._times_us(number)).cast(pa.timestamp("us")).cast(type)
        if pt.is_date(type):
            return pa.array((self._times_us(number) // _DAY_US).astype(np.int32)).cast(type)
        texts = pc.binary_join_element_wise("row", pa.array(number).cast(pa.string()), "-")
        return texts.cast(type)

    def _times_us(self, number: Longs) -> Longs:
        """Return event times.

        Exact: whole seconds come first, so that nothing overflows or is rounded twice.
        """
        seconds, rest = np.divmod(number, self.rate)
        times: Longs = self.start_us + seconds * 10**6 + rest * 10**6 // self.rate
        return times


def _makeable(type: pa.DataType) -> bool:
    checks = (
        pt.is_integer, pt.is_floating, pt.is_decimal128, pt.is_boolean, pt.is_timestamp, pt.is_date32,
        pt.is_string, pt.is_binary,
    )  # fmt: skip
    return any(check(type) for check in checks)


def _key(schema: pa.Schema) -> str | None:
    """Return the name of the first INT or BIGINT column, or else of the first integer one."""
    wide = [f.name for f in schema if pt.is_int64(f.type) or pt.is_int32(f.type)]
    return wide[0] if wide else next((f.name for f in schema if pt.is_integer(f.type)), None)


def _integers(values: Longs, type: pa.DataType) -> pa.Array:
    return pa.array(values & (2 ** (type.bit_width - 1) - 1)).cast(type)


def _decimals(number: Longs, type: pa.DataType) -> pa.Array:
    """Return the number modulo what fits: as a whole decimal if it has room, otherwise in its last places."""
    whole = min(type.precision - type.scale, 18 - min(type.scale, 18))
    unscaled = (
        number % 10**whole * 10 ** min(type.scale, 18) if whole else number % 10 ** min(type.precision, 18)
    )
    words = np.zeros((len(number), 2), np.int64)
    words[:, 0] = unscaled
    return pa.Array.from_buffers(type, len(number), [None, pa.py_buffer(words)])


def _uniform(number: Longs, seed: int, stream: int) -> Floats:
    """Return a number in [0, 1) for each row: splitmix64 of row, seed and column."""
    salt = (seed * 0x9E3779B97F4A7C15 + stream * 0xD1B54A32D192ED03) % 2**64
    mixed = number.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(salt)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    floats: Floats = (mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return floats
