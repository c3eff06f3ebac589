"""The job of a case: the query of the spec, over files that hold the rows of the case.

    inputs of any kind ─► folders of Parquet files, a file for each batch      output of any kind ─► rows in this process

What the query means stays: event times, keys, modes. Where an input changes by what its messages or a database's log
say, a row of a case says it in `_change_type`, as a changelog does: insert if it does not say, or delete.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from jobs.cli.cases.rows import table
from joinlib.model.changelog import CHANGE_TYPE, INSERT
from joinlib.spec.cases import CaseFile, SpecCase
from joinlib.spec.changes import Changes
from joinlib.spec.document import Place
from joinlib.spec.inputs import Files, Input
from joinlib.spec.model import LetterFolder, StreamJoin
from joinlib.spec.nearest import hint
from joinlib.spec.output import Console

_ALL = 10**9  # rows to show: all of them
_UNITS = 4  # enough for few rows; the result is the same with any number


def job(document: StreamJoin, folder: Path) -> StreamJoin:
    """Return the job that reads and keeps everything below `folder`."""
    spec = document.spec
    nowhere = {"files": None, "kafka": None, "postgres": None, "noop": None, "console": Console(rows=_ALL)}
    checkpoint = {"path": folder / "checkpoint", "reset": None, "sync": False}
    update = {
        "inputs": {name: _input(given, folder / "inputs" / name) for name, given in spec.inputs.items()},
        "output": spec.output.model_copy(update=nowhere),
        "outputs": {name: output.model_copy(update=nowhere) for name, output in spec.outputs.items()},
        "checkpoint": spec.checkpoint.model_copy(update=checkpoint),
        "join": spec.join.model_copy(update={"units": min(spec.join.units, _UNITS)}),
        "dead_letters": spec.dead_letters and LetterFolder(path=folder / "letters"),
        "executors": None,
    }
    return document.model_copy(update={"spec": spec.model_copy(update=update)})


def _input(given: Input, folder: Path) -> Input:
    update: dict[str, Any] = {"generator": None, "kafka": None, "postgres": None}
    update["files"] = Files(path=folder, format="parquet", order_by="name")
    update["role"] = "stream" if given.is_stream else "table"
    update["arrow_schema"] = columns(given)
    if _says_itself(given):
        update["changes"] = Changes(op=CHANGE_TYPE)
    return given.model_copy(update=update)


def _says_itself(given: Input) -> bool:
    """Return whether rows change by something that is not in a column."""
    return given.is_stream and given.changes is None and bool(given.upsert or given.postgres)


def columns(given: Input) -> pa.Schema:
    """Return the columns that rows of a case may have."""
    schema = given.arrow_schema
    return schema.append(pa.field(CHANGE_TYPE, pa.string())) if _says_itself(given) else schema


def write(document: StreamJoin, case: SpecCase, number: int, file: CaseFile, at: Place) -> None:
    """Write the rows of a batch where the job of `document` reads them, and the tables before the first batch.

    Raises:
        SpecError: They do not fit the inputs.
    """
    for name, found in rows(document, case, number, file, at).items():
        _write(document.spec.inputs[name], found, number)


def rows(
    document: StreamJoin, case: SpecCase, number: int, file: CaseFile, at: Place
) -> Mapping[str, pa.Table]:
    """Return the rows of a batch by input; of tables, those of the first batch.

    Raises:
        SpecError: They do not fit the inputs.
    """
    inputs, told = document.spec.inputs, case.batches[number].rows
    for name in told:
        if name not in inputs:
            raise file.mistake((*at, "rows", name), f"there is no such input; {hint(name, inputs, 'inputs')}")
        if number and not inputs[name].is_stream:
            said = "is a table, which is there from the beginning; move its rows to the first batch"
            raise file.mistake((*at, "rows", name), said)
    return {
        name: table(_told(given, told.get(name, ())), _readable(given), file, (*at, "rows", name))
        for name, given in inputs.items()
        if name in told or not number
    }


def _told(given: Input, rows: tuple[Mapping[str, Any], ...]) -> Any:
    if given.changes is None or given.changes.op != CHANGE_TYPE:
        return rows
    return tuple({CHANGE_TYPE: INSERT, **row} for row in rows)


def _readable(given: Input) -> pa.Schema:
    """Return the columns as rows may have them: of an upsert, a row that goes may have its key alone."""
    free = given.upsert is not None
    return pa.schema([f.with_nullable(True) if free else f for f in given.arrow_schema])


def _write(given: Input, rows: pa.Table, number: int) -> None:
    assert given.files is not None
    folder = Path(given.files.path)
    folder.mkdir(parents=True, exist_ok=True)
    if rows.num_rows or not given.is_stream:
        pq.write_table(rows, folder / f"{number:06d}.parquet")
