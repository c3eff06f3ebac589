"""Generated rows as an input.

Law: row i is the same whenever, wherever and with whichever other rows it is read.

Every value is a function of the row's number (and the seed), so a slice is a range of numbers
and only the time of row 0 is stored. The first integer column is the key, drawn with Zipf
popularity; event time rises evenly.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from joinlib.arrays import I64
from joinlib.errors import SpecError, StateError
from joinlib.source.generated import GeneratedRows, check_makeable
from joinlib.source.log import Log
from joinlib.source.slices import SLICE_ROWS, Slice, SliceReader

BASE_NS = 1_767_225_600 * 10**9  # 2026-01-01: row 0 of a generator that does not follow the clock
_ROWS_PER_SECOND = 1_000  # rows per second of event time, if no rate is given
_ENDLESS_ROWS = 2**50  # available if neither a rate nor a number of rows is given


@dataclass(frozen=True)
class GeneratorConfig:
    """Configuration of a generator.

    Without `rows` and `rows_per_second`, rows are endless and as fast as they are read.
    """

    rows: int | None  # after so many rows the input ends
    rows_per_second: int | None  # by the clock, from the first discovery on
    keys: int
    skew: float  # Zipf exponent; 0 makes all keys equally likely
    seed: int
    time_column: str | None

    @property
    def slice_rows(self) -> int:
        """Rows per slice: few enough that a slow generator completes four slices a second."""
        return min(SLICE_ROWS, max(1, (self.rows_per_second or 4 * SLICE_ROWS) // 4))


@dataclass(frozen=True)
class GeneratorReader(SliceReader):
    """Makes the rows of slices."""

    config: GeneratorConfig
    schema: pa.Schema

    def __post_init__(self) -> None:
        check_makeable(self.schema, self.config.time_column)

    def read_many(self, slices: Sequence[Slice], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        rate = self.config.rows_per_second or _ROWS_PER_SECOND
        for slice in slices:
            made = GeneratedRows(slice.start, slice.stop, slice.mtime_ns // 1_000, rate, self.config)
            yield made.batch(self.schema, columns)

    def located(self, slice: Slice, columns: Sequence[str]) -> Iterator[tuple[pa.RecordBatch, I64]]:
        for rows in self.read(slice, columns):
            yield rows, np.arange(slice.start + 1, slice.start + 1 + rows.num_rows)


class GeneratorInput:
    """The input of one generator; `now` returns nanoseconds since 1970."""

    def __init__(self, config: GeneratorConfig, schema: pa.Schema, log: Log, now: Callable[[], int]) -> None:
        self.reader: GeneratorReader = GeneratorReader(config, schema)
        self._config = config
        self._log = log
        self._now = now
        self._known = 0

    def discover(self) -> int:
        if not self._log.entries:
            start = BASE_NS if self._config.rows_per_second is None else self._now()
            self._log.append([{"start_ns": start, "config": asdict(self._config)}])
        self._known = max(self._known, self._due())
        return self._known

    def slices(self, start: int, stop: int) -> list[Slice]:
        if stop > start and not self._log.entries:
            raise StateError(
                f"{self._log.path}: empty, but {stop} slices were read; start with a new checkpoint"
            )
        return [self._slice(i) for i in range(start, stop)]

    @property
    def kept(self) -> tuple[int, int]:
        return 0, max(self._known, self._due()) if self._log.entries else 0

    def forget(self, before: int) -> None:
        """Do nothing: the log is a single line."""

    def lag(self, start: int = 0) -> dict[str, int]:
        known = self._known if self._config.rows or self._config.rows_per_second else start  # no end, no lag
        read = self.rows_before(start)
        return {"slices": known - start, "rows": self.rows_before(known) - read, "read": read}

    @cached_property
    def _start_ns(self) -> int:
        """The time of row 0 (ns).

        The log holds the configuration too: positions mean nothing to another generator.
        """
        first = self._log.entries[0]
        config = asdict(self._config)
        changed = [k for k, v in config.items() if first["config"].get(k) != v]
        if changed:
            raise SpecError(
                f"generator: {', '.join(changed)} changed since the checkpoint was begun; set it back, or"
                " start with a new checkpoint"
            )
        return int(first["start_ns"])

    def _due(self) -> int:
        rows, rate, start_ns = self._config.rows, self._config.rows_per_second, self._start_ns
        due = _ENDLESS_ROWS if rate is None else max(self._now() - start_ns, 0) * rate // 10**9
        if rows is not None and due >= rows:
            return -(-rows // self._config.slice_rows)
        return due // self._config.slice_rows

    def _slice(self, index: int) -> Slice:
        start, stop = self.rows_before(index), self.rows_before(index + 1)
        return Slice(index, stop - start, stop - start, mtime_ns=self._start_ns, start=start, stop=stop)

    def rows_before(self, slices: int) -> int:
        """Return the number of rows in the first `slices` slices."""
        rows = slices * self._config.slice_rows
        return rows if self._config.rows is None else min(rows, self._config.rows)
