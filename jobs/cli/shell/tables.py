"""Inputs from files: NAME=PATH, where the columns are those that the files have.

A folder stays one that may grow; of a single file, nothing else beside it is read.
"""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq

from joinlib.errors import InputError, SpecError
from joinlib.expr.types import name as type_name
from joinlib.spec import ddl
from joinlib.spec.nearest import hint

FORMATS = {".parquet": "parquet", ".csv": "csv", ".jsonl": "jsonl", ".json": "jsonl", ".ndjson": "jsonl"}
_HEAD_BYTES = 4 << 20  # of a JSON file, in which its columns are looked for
_WIDER = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.date64(): pa.date32(),
    pa.null(): pa.string(),
    pa.time32("s"): pa.string(),
    pa.time64("ns"): pa.string(),
}


def given(text: str, times: list[str]) -> tuple[str, dict[str, Any]]:
    """Return the name and the input that NAME=PATH describes, as a spec has it.

    Args:
        text: NAME=PATH, a folder or a file.
        times: NAME.COLUMN of each event time.

    Raises:
        SpecError: It is not written so, or there are no files.
        InputError: A file cannot be read.
    """
    name, equals, path = text.partition("=")
    if not equals or not name.isidentifier():
        raise SpecError(f"--input {text}: write NAME=PATH, such as orders=data/orders")
    files = _files(Path(path), text)
    kind = FORMATS[files[0].suffix]
    schema = columns(files[0], kind)
    whole = str(Path(path).absolute())
    found: dict[str, Any] = {"schema": ddl.to_ddl(schema), "files": {"path": whole, "format": kind}}
    for time in times:
        of, _, column = time.partition(".")
        if of == name:
            found["eventTime"] = {"column": _timed(time, column, schema)}
    return name, found


def _timed(time: str, column: str, schema: pa.Schema) -> str:
    """Return the column, which is a time."""
    if column not in schema.names:
        raise SpecError(f"--time {time}: there is no such column; {hint(column, schema.names, 'there is')}")
    if not pa.types.is_timestamp(kind := schema.field(column).type):
        raise SpecError(f"--time {time}: the column is {type_name(kind)} in the files, and no TIMESTAMP")
    return column


def _files(path: Path, text: str) -> list[Path]:
    if not path.exists():
        raise SpecError(f"--input {text}: there is no {path}")
    there = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file())
    found = [p for p in there if p.suffix in FORMATS and not p.name.startswith((".", "_"))]
    if not found:
        raise SpecError(f"--input {text}: no file ends in {', '.join(FORMATS)}, so nothing says its columns")
    return found


def columns(file: Path, kind: str) -> pa.Schema:
    """Return the columns of a file, of types that a spec can have.

    Raises:
        InputError: It cannot be read.
    """
    try:
        if kind == "parquet":
            found = pq.read_schema(file)
        elif kind == "csv":
            found = pa.csv.open_csv(file).schema
        else:
            with file.open("rb") as opened:
                head = opened.read(_HEAD_BYTES)
            whole = head[: head.rfind(b"\n") + 1] or head
            found = pa.json.read_json(pa.BufferReader(whole)).schema
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{file}: cannot be read as {kind}: {error}") from error
    return pa.schema([pa.field(f.name, _type(f.type)) for f in found])


def _type(kind: pa.DataType) -> pa.DataType:
    """Return the type that Spark has for it."""
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", "UTC")
    if pa.types.is_dictionary(kind):
        return _type(kind.value_type)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(pa.field("element", _type(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(f.name, _type(f.type)) for f in kind])
    return _WIDER.get(kind, kind)
