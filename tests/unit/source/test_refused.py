"""Rows that cannot be read are refused, each with its place and reason, and the rest is read: by format and kind of error."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from joinlib.errors import InputError
from joinlib.source import CsvFormat, Refused, RowChanges
from joinlib.source.files import FileReader, FilesConfig
from joinlib.source.slices import Slice

SCHEMA = pa.schema(
    [pa.field("id", pa.int64(), nullable=False), ("t", pa.timestamp("us", "UTC")), ("op", pa.string())]
)
CSV = CsvFormat(True, ",", '"', "")
DAY = "2026-01-01T00:00:00Z"
GOOD = {"csv": f"7,{DAY},insert", "jsonl": f'{{"id":7,"t":"{DAY}","op":"insert"}}'}
BAD = {
    "csv": {
        f"1,{DAY}": "as many values as the header",
        f"x,{DAY},insert": "column 'id' does not fit int64",
        "1,yesterday,insert": "column 't'",
        f'1,{DAY},"insert': "a quote is open",
        f",{DAY},insert": "is declared NOT NULL, but is NULL",
        f"1,{DAY},moved": "holds 'moved', which is no operation",
    },
    "jsonl": {
        '{"id":1': "not one object",
        "no": "not one object",
        '{"id":"x"}': "column 'id' does not fit int64",
        '{"id":1,"t":"yesterday"}': "column 't'",
        "[1]": "not one object",
        f'{{"t":"{DAY}","op":"insert"}}': "is declared NOT NULL, but is NULL",
        '{"id":1,"op":"moved"}': "holds 'moved', which is no operation",
    },
}
CASES = [(format, line, why) for format, lines in BAD.items() for line, why in lines.items()]


def config(folder: Path, format: Any, changes: RowChanges | None) -> FilesConfig:
    return FilesConfig(folder, format, "name", "fail", CSV, "keep", None, changes)


def slices(reader: FileReader, file: Path) -> list[Slice]:
    """All of the file."""
    stat = file.stat()
    return [
        Slice(n, None, 1, str(file), stat.st_size, stat.st_mtime_ns, cut.group, cut.start, cut.stop)
        for n, cut in enumerate(reader.cut(file))
    ]


@pytest.mark.parametrize(("format", "line", "why"), CASES, ids=range(len(CASES)))
def test_a_line_among_others(tmp_path: Path, format: str, line: str, why: str) -> None:
    """It is an error where none are kept; else it alone is refused, by the number of its row where it is a line."""
    file = tmp_path / f"1.{format}"
    head = ["id,t,op"] if format == "csv" else []
    lines = [*head, GOOD[format], GOOD[format], line, GOOD[format], line, ""]
    file.write_bytes("\n".join(lines).encode())
    settings = config(tmp_path, format, RowChanges("op"))
    strict = FileReader(settings, SCHEMA)
    with pytest.raises(InputError):
        list(strict.read_many(slices(strict, file), ["id", "t"]))
    refused: list[Refused] = []
    reader = FileReader(settings, SCHEMA, refused)
    rows = list(reader.read_many(slices(reader, file), ["id", "t"]))
    assert [v for batch in rows for v in batch.column("id").to_pylist()] == [7, 7, 7]
    assert all(why in one.reason for one in refused), refused
    assert [(one.file, one.partition) for one in refused] == [(str(file), None)] * 2
    if refused[0].row is None:
        assert [(one.at, one.text) for one in refused] == [(3, line.encode()), (5, line.encode())]
    else:
        assert refused[0].text is None
    (placed,) = list(FileReader(settings, SCHEMA, []).located(slices(reader, file)[0], ["id", "t"]))
    assert placed[1].tolist() == ([1, 2, 4] if refused[0].row is None else [-1, -1, -1])


def test_several_slices_and_blank_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers are those in the file."""
    monkeypatch.setattr("joinlib.source.text.SLICE_BYTES", 40)
    file = tmp_path / "1.csv"
    file.write_text("id,t,op\n1,,\n2,,\n" + "bad\n" * 3 + "".join(f"{n},,\n" for n in range(3, 30)))
    refused: list[Refused] = []
    reader = FileReader(config(tmp_path, "csv", None), SCHEMA, refused)
    some = slices(reader, file)
    assert len(some) > 1
    found = [(rows, places) for slice in some for rows, places in reader.located(slice, ["id"])]
    assert [one.at for one in refused] == [3, 4, 5]
    pairs = [
        pair
        for rows, places in found
        for pair in zip(rows.column("id").to_pylist(), places.tolist(), strict=True)
    ]
    assert pairs == [(1, 1), (2, 2), *((n, n + 3) for n in range(3, 30))]


def test_values_of_parquet_that_do_not_fit(tmp_path: Path) -> None:
    """The row is there, though not as declared."""
    file = tmp_path / "1.parquet"
    schema = pa.schema([("t", pa.timestamp("us", "UTC"))])
    times = pa.array([1_000, 1_500, 2_000, 2_001], pa.timestamp("ns", "UTC"))
    pq.write_table(pa.table({"t": times}), file, row_group_size=2)
    refused: list[Refused] = []
    reader = FileReader(config(tmp_path, "parquet", None), schema, refused)
    rows = list(reader.read_many(slices(reader, file), ["t"]))
    assert [v.value for batch in rows for v in batch.column("t")] == [1, 2]
    assert [one.row.column("t")[0].value for one in refused if one.row is not None] == [1_500, 2_001]
    assert {(one.file, one.reason) for one in refused} == {
        (str(file), "column 't' holds a value that is not exact as timestamp[us, tz=UTC]")
    }
