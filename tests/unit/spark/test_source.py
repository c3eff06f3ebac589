"""What a batch says of itself in its offset."""

from pathlib import Path

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from joinlib.spark.compiled import compiled
from joinlib.spark.source import Offset, Reader
from joinlib.spec import parse

SPEC = {
    "apiVersion": "streamjoin.dev/v1alpha1",
    "kind": "StreamJoin",
    "metadata": {"name": "told"},
    "spec": {
        "sql": "SELECT a.k FROM a JOIN b ON a.k = b.k",
        "inputs": {
            name: {"schema": "k BIGINT", "files": {"path": name, "orderBy": "name", "maxFilesPerBatch": 1}}
            for name in "ab"
        },
        "output": {"noop": {}},
    },
}


def test_batches_that_read_other_files_differ(tmp_path: Path) -> None:
    """Two checkpoints of the same counts, to which files came in another order; the first is as it was when it is asked again."""
    one, other = (spec(tmp_path, name) for name in ("one", "other"))
    for name in "ab":
        (tmp_path / name).mkdir()
    write(tmp_path, "2")
    first = [offset(one), offset(one), offset(other)]
    write(tmp_path, "1")
    second = offset(other, first[0])
    write(tmp_path, "3")
    (tmp_path / "one" / "sources").rename(tmp_path / "kept")
    anew = offset(one, first[0])  # lists 1 before 2: slice 1 is the file 2

    assert first[0] == first[1] == first[2]
    assert second["inputs"] == anew["inputs"] == {"a": 2, "b": 2}
    assert len({first[0]["read"], second["read"], anew["read"]}) == 3


def spec(folder: Path, checkpoint: str) -> Reader:
    made = {**SPEC, "spec": {**SPEC["spec"], "checkpoint": {"path": checkpoint}}}  # type: ignore[dict-item]
    return Reader(compiled(parse(orjson.dumps(made).decode(), "spec.yaml", folder), 1).source)


def offset(reader: Reader, start: Offset | None = None) -> Offset:
    """Of the next batch, as a process that begins now plans it."""
    return Reader(reader.task).latestOffset(start or reader.initialOffset())


def write(folder: Path, file: str) -> None:
    for name in "ab":
        pq.write_table(pa.table({"k": [1]}), folder / name / file)
