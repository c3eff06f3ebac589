"""Makes dead letters of rows that are left out: those that fail in a map task, are late, or fail in a stage.

InputLetters   map task: rows that cannot be read, and rows for which an expression of the input fails
late           unit: rows behind the watermark
failed         unit: joined rows, and rows of groups and window functions, for which an expression fails
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from joinlib.apart import Failing, apart
from joinlib.arrays import I64
from joinlib.engine.edge import Way
from joinlib.engine.sources import SourcePlan
from joinlib.errors import InputError, SpecError
from joinlib.model.changelog import DELETE, INSERT
from joinlib.model.inputs import WEIGHT, InputPlan
from joinlib.model.letters import LETTER, Reason
from joinlib.route.content import weights
from joinlib.sink.texts import json_objects
from joinlib.source import KafkaConfig, Refused, Slice, SliceReader, reader


class InputLetters:
    """The dead letters of one source in one map task. `refused` takes the rows that cannot be read."""

    def __init__(
        self, source: SourcePlan, ways: Sequence[Way], slices: Sequence[Slice], columns: Sequence[str]
    ) -> None:
        self._source, self._ways, self._slices, self._columns = source, ways, slices, columns
        self._seen = 0  # rows so far
        self._failing: list[tuple[int, str]] = []  # each with its number among them, and the error
        self._rows: list[pa.RecordBatch] = []  # the same, as they were read
        self.refused: list[Refused] = []

    def prepared(
        self, sequence: int, rows: pa.RecordBatch
    ) -> tuple[pa.RecordBatch, Sequence[pa.RecordBatch]]:
        """Return the rows that no expression fails for, and what each way sends of them."""

        def each(some: pa.RecordBatch) -> list[pa.RecordBatch]:
            return [way.prepared(sequence, some) for way in self._ways]

        sound, blocks, failing = apart(rows, each, SpecError)
        if failing:
            self._failing += [(self._seen + one.at, str(one.error)) for one in failing]
            self._rows.append(rows.take(pa.array([one.at for one in failing])))
        self._seen += rows.num_rows
        return sound, blocks or []

    def blocks(self) -> Iterator[pa.RecordBatch]:
        """Yield the letters."""
        if self.refused:
            yield from _refused(self._source.name, self.refused)
        if self._failing:
            yield from self._located()

    def _located(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows for which an expression fails, with all their columns and their places if they can be
        read again.
        """
        again = reader(self._source.config, self._source.schema, [])
        rows, done, first = pa.concat_batches(self._rows), 0, 0
        try:
            for slice in again.in_order(self._slices):
                count, own, places = _read(again, slice, self._columns, self._source.schema)
                at = [n - first for n, _ in self._failing[done:] if n < first + count]
                if at:
                    errors = [error for _, error in self._failing[done : done + len(at)]]
                    yield self._failed(errors, own.take(pa.array(at)), slice, places[at])
                first, done = first + count, done + len(at)
                if done == len(self._failing):
                    return
        except InputError:  # it is gone meanwhile
            pass
        yield self._failed([error for _, error in self._failing[done:]], rows.slice(done))

    def _failed(
        self, errors: list[str], rows: pa.RecordBatch, slice: Slice | None = None, places: I64 | None = None
    ) -> pa.RecordBatch:
        partition = slice.group if slice and isinstance(self._source.config, KafkaConfig) else None
        at = None if places is None else [n if n >= 0 else None for n in places.tolist()]
        file = slice.path or None if slice else None
        return _letters(
            "expression", errors, rows, input=self._source.name, file=file, partition=partition, at=at
        )


def late(input: str, plan: InputPlan, rows: pa.RecordBatch, by_us: I64) -> pa.RecordBatch:
    """Return letters of rows that are late by so many µs; less than 0: they have no event time.

    Of the stored columns they have those that the input has itself, by its names for them.
    """
    from joinlib.model.bounds import signed  # slow to load, and only rows that are late need it

    words = [f"late by {signed(us)}" if us >= 0 else "has no event time" for us in by_us.tolist()]
    known = ((c.name, plan.below(c.name)) for c in plan.columns)
    own = {name: _plain(below) for name, below in known if below is not None}
    more = [name for name in rows.schema.names if name == WEIGHT]
    shown = rows.select([*own, *more]).rename_columns([*own.values(), *more])
    return _letters("late", words, shown, input=input)


def failed(
    failing: Sequence[Failing], rows: pa.RecordBatch, input: str | None, output: str | None
) -> pa.RecordBatch:
    """Return letters of rows of a stage for which an expression fails: of an input, or of the result of an output."""
    reason: Reason = "result" if input is None else "expression"
    some = rows.take(pa.array([one.at for one in failing]))
    if input is not None:
        some = some.rename_columns([_plain(name) for name in some.schema.names])
    return _letters(reason, [str(one.error) for one in failing], some, input=input, output=output)


def netted(letters: Sequence[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Return letters of rows that change without those that came and went in the batch."""
    if not any(DELETE in batch.column("change").unique().to_pylist() for batch in letters):
        return list(letters)
    at = LETTER.get_field_index("change")
    sums: dict[tuple[Any, ...], int] = {}
    for batch in letters:
        for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            own = (*row[:at], *row[at + 1 :])
            sums[own] = sums.get(own, 0) + (-1 if row[at] == DELETE else 1)
    left = [
        (*own[:at], DELETE if times < 0 else INSERT, *own[at:])
        for own, times in sums.items()
        for _ in range(abs(times))
    ]
    if not left:
        return []
    columns = zip(zip(*left, strict=True), LETTER, strict=True)
    return [pa.record_batch([pa.array(column, field.type) for column, field in columns], LETTER)]


def _read(
    again: SliceReader, slice: Slice, columns: Sequence[str], schema: pa.Schema
) -> tuple[int, pa.RecordBatch, I64]:
    """Return the number of rows of a slice, its rows with all columns if that gives the same rows, and their places."""
    found = list(again.located(slice, columns))
    count = sum(rows.num_rows for rows, _ in found)
    whole = list(again.located(slice, schema.names))
    chosen = whole if sum(rows.num_rows for rows, _ in whole) == count else found
    if not chosen:
        return 0, pa.record_batch([], pa.schema([])), np.zeros(0, np.int64)
    places = np.concatenate([places for _, places in chosen])
    return count, pa.concat_batches([rows for rows, _ in chosen]), places


def _refused(input: str, refused: Sequence[Refused]) -> Iterator[pa.RecordBatch]:
    for one in refused:
        if one.row is not None:
            place = {"file": one.file, "partition": one.partition, "at": one.at}
            yield _letters("unreadable", [one.reason], one.row, input=input, **place)
    raw = [one for one in refused if one.row is None]
    names = ("file", "partition", "at")
    places = {name: pa.array([getattr(one, name) for one in raw], LETTER.field(name).type) for name in names}
    texts = [one.text.decode(errors="backslashreplace") if one.text is not None else None for one in raw]
    none = pa.nulls(len(raw), pa.string())
    rows = pa.record_batch([none], ["row"])
    yield _letters(
        "unreadable", [one.reason for one in raw], rows, input=input, row=none, text=texts, **places
    )


def _letters(reason: Reason, errors: Sequence[str], rows: pa.RecordBatch, **others: Any) -> pa.RecordBatch:
    """Return a letter for each row, as often as its weight says. others: the other columns, each a list or one value."""
    count = rows.num_rows
    found: dict[str, Any] = {"reason": reason, "error": errors, "row": json_objects(_shown(rows)), **others}
    if WEIGHT in rows.schema.names:
        found["change"] = [DELETE if weight < 0 else INSERT for weight in weights(rows).tolist()]
    columns = []
    for field in LETTER:
        value = found.get(field.name)
        each = isinstance(value, list | pa.Array | pa.ChunkedArray)
        columns.append(pa.array(value, field.type) if each else pa.array([value] * count, field.type))
    letters, times = pa.record_batch(columns, LETTER), np.abs(weights(rows))
    return letters if (times == 1).all() else letters.take(pa.array(np.repeat(np.arange(count), times)))


def _plain(name: str) -> str:
    """Return the name of a column without that of its input."""
    return name.partition(".")[2] or name


def _shown(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return the columns that have names in the text: no hashes, weights and computed keys."""
    names = [name for name in rows.schema.names if not name.rpartition(".")[2].startswith("$")]
    return rows.select(names)
