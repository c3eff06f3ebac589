"""Rows for the page are kept on their way into a sink, which gets the same."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from joinlib.model.inputs import WEIGHT
from joinlib.model.tuning import Tuning
from joinlib.sink.config import SinkConfig, staging
from joinlib.sink.sampled import SampledSink
from joinlib.sink.sink import open_sink


class Taken:
    """A sink that remembers."""

    def __init__(self) -> None:
        self.batches = list[pa.RecordBatch]()
        self.closed = False

    def write(self, batch: pa.RecordBatch) -> None:
        self.batches.append(batch)

    def next_unit(self) -> tuple[tuple[str, ...], bytes | None]:
        return ("file",), None

    def close(self) -> None:
        self.closed = True


def rows(**columns: list[object]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(columns)


def read(block: bytes | None) -> list[dict[str, object]]:
    return pa.ipc.open_stream(block).read_all().to_pylist() if block else []


def test_the_first_rows_of_a_task_are_kept() -> None:
    """Over its units; the sink gets all of them, and its files are told."""
    inner, given = Taken(), [rows(k=[1, 2]), rows(k=[3, 4, 5]), rows(k=[6])]
    sink = SampledSink(inner, 4)
    sink.write(given[0])
    files, first = sink.next_unit()
    sink.write(given[1])
    _, second = sink.next_unit()
    sink.write(given[2])
    _, third = sink.next_unit()
    sink.close()
    assert (files, inner.batches, inner.closed) == (("file",), given, True)
    assert [read(block) for block in (first, second, third)] == [
        [{"k": 1}, {"k": 2}],
        [{"k": 3}, {"k": 4}],
        [],
    ]


def test_they_are_bounded_in_bytes() -> None:
    """A row that is too large is left out, and those behind it are not."""
    sink = SampledSink(Taken(), 9)
    sink.write(rows(k=["x" * 70_000]))
    sink.write(rows(k=["x" * 20_000] * 8))
    sink.write(rows(k=["y"]))
    kept = read(sink.next_unit()[1])
    assert [len(str(row["k"])) for row in kept] == [20_000, 20_000, 1]


def test_rows_that_went_are_not_kept() -> None:
    """A sink that replaces the row of a key gets weights: the page shows rows that are there."""
    inner = Taken()
    sink = SampledSink(inner, 2)
    sink.write(given := rows(**{"k": [1, 2, 3, 4], WEIGHT: [-1, 1, -1, 1]}))
    assert read(sink.next_unit()[1]) == [{"k": 2}, {"k": 4}]
    assert inner.batches == [given]


@pytest.mark.parametrize("show", [0, 2])
def test_files_are_the_same(tmp_path: Path, show: int) -> None:
    """Of a changelog, rows are kept as they are written; without a number of rows, none are."""
    config = SinkConfig("files", mode="changelog", folder=tmp_path, format="parquet")
    schema = pa.schema([("k", pa.int64())])
    sink = open_sink(replace(config, show=show), schema, Tuning(), partition=0, batch=7, attempt=0)
    sink.write(rows(**{"k": [1, 2, 3], WEIGHT: [1, -1, 1]}))
    _, block = sink.next_unit()
    sink.close()
    (file,) = staging(tmp_path, 7).iterdir()
    written = pq.read_table(file).to_pylist()
    assert len(written) == 3
    assert read(block) == written[:show]
