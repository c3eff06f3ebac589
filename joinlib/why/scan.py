"""Reads inputs again, row by row with their places, and keeps the few rows that are wanted.

    log of the input ─► slices ─► rows ─► those for which `wanted` is true, with how far time was before them

Cost: a pass over the columns that are read; memory for the rows that are kept, at most `MOST`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from joinlib.arrays import I64
from joinlib.engine.sources import SourcePlan
from joinlib.engine.splitter import with_numbers
from joinlib.errors import InputError, SpecError
from joinlib.model.inputs import ORDINAL, UNCHANGED, WEIGHT
from joinlib.model.time import ALWAYS, NEVER
from joinlib.source import FilesConfig, KafkaConfig, PostgresLogConfig, Slice, make, reader
from joinlib.source.files import FileInput
from joinlib.source.generator import GeneratorInput
from joinlib.state.run import time_values
from joinlib.why.progress import Progress, ReadBy
from joinlib.why.verdict import SourceRow

MOST = 100_000  # rows that are kept of one input
Wanted = Callable[[pa.RecordBatch], npt.NDArray[np.bool_]]


class TooMany(SpecError):
    """More rows are asked for than are looked at."""


@dataclass(frozen=True)
class Hit:
    """A row that was kept."""

    row: SourceRow
    by: ReadBy
    top_us: int  # the highest event time of its input before its slice
    weight: int  # +1: it came; -1: it is a deletion


@dataclass(frozen=True)
class Scanned:
    """The rows that were kept of one pass, and their numbers among all hits."""

    rows: pa.Table
    ids: tuple[int, ...]
    count: int  # rows that were looked at
    notes: tuple[str, ...]


class Scans:
    """Reads the inputs of a job. `hits` are all rows that were ever kept: a row is numbered once."""

    def __init__(self, sources: Sequence[SourcePlan], logs: Path, progress: Progress) -> None:
        self._plans = {source.name: source for source in sources}
        self._logs, self._progress = logs, progress
        self._numbers: dict[tuple[str, SourceRow], int] = {}
        self.hits: list[Hit] = []

    def scan(
        self, name: str, columns: Sequence[str], time: str | None, wanted: Wanted, role: str, shown: str
    ) -> Scanned:
        """Read an input; `time` is its column with the event time, `role` its name in the plan: in each it has other hits.

        Raises:
            SpecError: Too many rows are wanted, or the input cannot be read again.
        """
        read = list(dict.fromkeys([*columns, *([time] if time else [])]))
        plan, notes = self._plans[name], dict[str, None]()
        kept, ids, count, top = [self._schema(plan, read).empty_table()], list[int](), 0, NEVER
        for slice, batches in self._slices(plan, read, notes):
            before = top
            for rows, weights, places in batches:
                count += rows.num_rows
                top = max(top, _highest(rows.column(time))) if time is not None else top
                found = np.flatnonzero(wanted(rows))
                if len(found):
                    kept.append(pa.Table.from_batches([rows.take(pa.array(found))]))
                    ids += self._noted(plan, (role, shown), slice, places[found], weights[found], before)
                if len(ids) > MOST:
                    raise TooMany(
                        f"input {name}: more than {MOST:,} rows are asked for; narrow the condition"
                    )
        return Scanned(pa.concat_tables(kept).combine_chunks(), tuple(ids), count, tuple(notes))

    def _schema(self, plan: SourcePlan, read: Sequence[str]) -> pa.Schema:
        fields = [plan.schema.field(column).with_nullable(True) for column in read]
        return pa.schema([*fields, pa.field(ORDINAL, pa.int64())])

    def _noted(
        self, plan: SourcePlan, called: tuple[str, str], slice: Slice, places: I64, weights: I64, before: int
    ) -> list[int]:
        """Number rows of a slice."""
        by = self._progress.read_by(plan.name, slice.index)
        partition = slice.group if isinstance(plan.config, KafkaConfig) else None
        batch = by.batch if by.done else None
        found = []
        for at, weight in zip(places.tolist(), weights.tolist(), strict=True):
            row = SourceRow(plan.name, called[1], slice.path, partition, at, batch, by.exact, by.done)
            number = self._numbers.setdefault((called[0], row), len(self.hits))
            if number == len(self.hits):
                self.hits.append(Hit(row, by, before, weight))
            found.append(number)
        return found

    def _slices(
        self, plan: SourcePlan, read: Sequence[str], notes: dict[str, None]
    ) -> Iterator[tuple[Slice, Iterator[tuple[pa.RecordBatch, I64, I64]]]]:
        """Yield the slices in the order of the log, each with its rows, their weights and places."""
        if isinstance(plan.config, PostgresLogConfig):
            raise SpecError(
                f"input {plan.name}: follows a database's log, which is not kept: it cannot be read again"
            )
        known = make(plan.name, plan.config, plan.schema, self._logs, mends=False)
        start, stop = known.kept  # type: ignore[attr-defined]
        if isinstance(known, GeneratorInput):
            stop = self._progress.end(plan.name)
        if start:
            notes[f"the first {start:,} slices were put away and are not looked at"] = None
        first = known.rows_before(start) if isinstance(known, FileInput | GeneratorInput) else 0
        if isinstance(known, FileInput):
            notes |= dict.fromkeys(f"{file} could not be read and was left out" for file in known.left_out)
        seen: dict[str, int] = {}
        ordinal = first
        for slice in known.slices(start, stop):
            found = []
            try:
                for rows, places in _placed(plan, slice, read, seen):
                    found.append((*_numbered(rows, read, ordinal), places))
                    ordinal += rows.num_rows
            except InputError as error:
                notes[f"not looked at: {str(error).partition(';')[0]}"] = None
            yield slice, iter(found)


def _placed(
    plan: SourcePlan, slice: Slice, read: Sequence[str], seen: dict[str, int]
) -> Iterator[tuple[pa.RecordBatch, I64]]:
    """Yield rows of a slice with their offsets, or with their numbers in the file, from 1."""
    own = reader(plan.config, plan.schema, [] if plan.keeps_errors else None)
    slice = _found(plan, slice)
    if plan.keeps_errors or not isinstance(plan.config, FilesConfig):
        yield from own.located(slice, read)
        return
    for rows in own.read(slice, read):  # where no row is left out, to count them is quicker
        first = seen.get(slice.path, 0)
        seen[slice.path] = first + rows.num_rows
        yield rows, np.arange(first + 1, first + rows.num_rows + 1)


def _found(plan: SourcePlan, slice: Slice) -> Slice:
    """Return a slice of a file that was moved to the archive as one of the file there."""
    config = plan.config
    if not isinstance(config, FilesConfig) or config.archive is None or Path(slice.path).exists():
        return slice
    there = config.archive / Path(slice.path).relative_to(config.path)
    named = (there, there.with_name(f"{slice.mtime_ns}-{there.name}"))
    fitting = (one for one in named if one.exists() and one.stat().st_mtime_ns == slice.mtime_ns)
    return replace(slice, path=str(next(fitting, slice.path)))


def _numbered(rows: pa.RecordBatch, read: Sequence[str], ordinal: int) -> tuple[pa.RecordBatch, I64]:
    """Return rows with their numbers in the input, and their weights apart."""
    names = rows.schema.names
    weights = rows.column(WEIGHT).to_numpy() if WEIGHT in names else np.ones(rows.num_rows, np.int64)
    assert UNCHANGED not in read
    return with_numbers(rows.select(list(read)), ordinal), weights


def _highest(times: pa.Array) -> int:
    values = time_values(times)
    values = values[values < ALWAYS]
    return int(values.max()) if len(values) else NEVER
