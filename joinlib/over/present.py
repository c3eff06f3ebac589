"""Rows that come when the watermark reaches one time, and go when it reaches another (`ts > now() - INTERVAL 1 DAY`).

    waiting    rows that have not come yet, by when they will
    rows       rows that are there, by when they will go

Law: after each batch the sum of what has come out are the rows with from <= watermark < to.
"""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from joinlib.aggregate.groups import Groups, number
from joinlib.apart import KeepFailed, apart
from joinlib.errors import SpecError
from joinlib.model.inputs import WEIGHT
from joinlib.model.over import Over
from joinlib.over.kept import empty, rows_schema, summed
from joinlib.route.content import weighted, weights


def passed(
    over: Over,
    stored: Sequence[Groups],
    rows: pa.RecordBatch,
    watermark: int,
    failed: KeepFailed | None = None,
) -> pa.RecordBatch:
    """Take the changes of a batch; return those of the rows that are there, now that the watermark is this, µs.

    failed: takes rows for which the select list fails; None: they are an error.
    """
    assert over.present is not None
    begin, end = over.present
    there, waiting = stored
    schema = rows_schema(over)
    if begin is not None:
        later = _after(rows, begin, watermark)
        due = waiting.release(watermark + 1)
        _add(waiting, rows.filter(later), schema)
        known = rows.column(begin).is_valid()
        rows = summed([due, rows.filter(pc.and_(pc.invert(later), known))], schema)
    if end is None:
        return _result(over, rows, failed)
    rows = rows.filter(_after(rows, end, watermark))
    gone = there.release(watermark + 1)
    _add(there, rows, schema)
    less = weighted(gone.drop_columns([WEIGHT]), -weights(gone))
    return _result(over, summed([rows, less], schema), failed)


def _after(rows: pa.RecordBatch, column: str, watermark: int) -> pa.BooleanArray:
    return pc.greater(number(rows.column(column)), watermark).fill_null(False)


def _add(stored: Groups, rows: pa.RecordBatch, schema: pa.Schema) -> None:
    before = [stored.waiting] if stored.waiting is not None else []
    stored.add(summed([*before, rows], schema))


def _result(over: Over, rows: pa.RecordBatch, failed: KeepFailed | None) -> pa.RecordBatch:
    if failed is None:
        return _selected(over, rows)
    _, made, failing = apart(rows, lambda some: _selected(over, some), SpecError)
    if failing:
        failed(rows, failing)
    return empty(over.emitted) if made is None else made


def _selected(over: Over, rows: pa.RecordBatch) -> pa.RecordBatch:
    if not rows.num_rows:
        return empty(over.emitted)
    columns = [value.evaluate(rows.column, rows.num_rows) for _, value in over.select]
    return pa.record_batch([*columns, rows.column(WEIGHT)], over.emitted)
