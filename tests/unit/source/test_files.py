"""Every row of a growing folder comes exactly once, in one order, whatever is cut, restarted or named."""

import json
import os
import pickle
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joinlib.errors import InputError, StateError
from joinlib.source import CsvFormat, Slice, StreamInput, make, parquet, text
from tests import configs

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])
FORMATS = ("parquet", "csv", "jsonl")


def write(path: Path, first: int, rows: int, mtime: int | None = None) -> None:
    """Rows first .. first + rows - 1."""
    path.parent.mkdir(parents=True, exist_ok=True)
    ids = range(first, first + rows)
    table = pa.table({"name": [f"é{i}" if i % 3 else None for i in ids], "more": [0.5] * rows, "id": ids})
    match path.suffix:
        case ".parquet":
            pq.write_table(table, path, row_group_size=3)
        case ".csv":
            pcsv.write_csv(table, path)
        case ".jsonl":
            path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    if mtime is not None:
        os.utime(path, ns=(mtime, mtime))


def source(folder: Path, format: str, schema: pa.Schema = SCHEMA, **config: object) -> StreamInput:
    return make("orders", configs.folder(folder / "in", format, **config), schema, folder / "log")


def rows(
    input: StreamInput, start: int, stop: int, columns: tuple[str, ...] = ("id", "name")
) -> list[dict[str, object]]:
    batches = list(input.reader.read_many(input.slices(start, stop), columns))
    assert all(b.schema.names == list(columns) for b in batches)
    return [row for b in batches for row in b.to_pylist()]


def expected(*spans: tuple[int, int]) -> list[dict[str, object]]:
    return [
        {"id": i, "name": f"é{i}" if i % 3 else None}
        for first, count in spans
        for i in range(first, first + count)
    ]


@pytest.fixture
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slices of two rows, or a few lines."""
    for module in (parquet, text):
        monkeypatch.setattr(module, "BATCH_ROWS", 2)
    monkeypatch.setattr(parquet, "WHOLE_BYTES", parquet.WHOLE_BYTES)
    monkeypatch.setattr(text, "SLICE_BYTES", 40)


@pytest.mark.usefixtures("small_slices")
@pytest.mark.parametrize("order", ["modified", "name"])
@pytest.mark.parametrize(
    ("format", "whole_bytes"), [("parquet", 0), ("parquet", 1 << 20), ("csv", 0), ("jsonl", 0)]
)
@settings(max_examples=25, deadline=None)
@given(
    batches=st.lists(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 8)), max_size=3), max_size=4),
    restart=st.booleans(),
    step=st.sampled_from([1, 2, 7, 50]),
)
def test_every_row_once_in_one_order(
    tmp_path_factory: pytest.TempPathFactory,
    format: str,
    order: str,
    batches: list[list[tuple[str, int]]],
    whole_bytes: int,
    restart: bool,
    step: int,
) -> None:
    """Files come in the order of discovery; names that sort backwards, restarts and steps change nothing."""
    parquet.WHOLE_BYTES = whole_bytes  # put back by the fixture
    folder = tmp_path_factory.mktemp("f")
    (folder / "in").mkdir()
    input, offset, got, want, first = source(folder, format, order_by=order), 0, [], [], 0
    for i, batch in enumerate(batches):
        new = {}
        for name, count in batch:
            path = folder / "in" / f"{9 - i}{name}.{format}"  # each discovery sorts before the one before
            spans = (-ord(name) if order == "modified" else 0, path.name)
            write(path, first, count, mtime=10**18 + spans[0])
            new[path.name] = (spans, (first, count))
            first += count
        want += [span for _, span in sorted(new.values())]
        if restart:
            input = source(folder, format, order_by=order)
        stop = input.discover()
        while offset < stop:
            got += rows(input, offset, min(offset + step, stop))
            offset = min(offset + step, stop)
    assert got == expected(*want)
    assert source(folder, format, order_by=order).discover() == offset
    assert rows(source(folder, format, order_by=order), 0, offset) == got


@given(
    lines=st.lists(st.text("aé,\"'x ", max_size=6), max_size=12), slice_bytes=st.integers(1, 40), last=st.booleans(),
    eol=st.sampled_from(["\n", "\r\n"]), bom=st.booleans(), format=st.sampled_from(["csv", "jsonl"]),
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_text_slices_equal_the_whole_file(
    tmp_path_factory: pytest.TempPathFactory,
    lines: list[str],
    slice_bytes: int,
    last: bool,
    eol: str,
    bom: bool,
    format: str,
) -> None:
    """Cut at any size, lines of any length come out as they are in the file."""
    path = tmp_path_factory.mktemp("t") / "x"
    body = [json.dumps({"v": v}, ensure_ascii=False) for v in lines]
    if format == "csv":
        body = ["v", *('"' + v.replace('"', '""') + '"' for v in lines)]
    raw = eol.join(body) + (eol if last else "")
    path.write_bytes((b"\xef\xbb\xbf" if bom else b"") + raw.encode() or b"\n")
    schema, kind = pa.schema([("v", pa.string())]), configs.CSV if format == "csv" else None
    stat = path.stat()
    slices = [
        Slice(i, None, p.weight, str(path), stat.st_size, stat.st_mtime_ns, p.group, p.start, p.stop)
        for i, p in enumerate(text.cut(path, schema, kind, slice_bytes))
    ]
    got = [v for _, b in text.read_many(slices, ["v"], schema, kind) for v in b.column(0).to_pylist()]
    assert got == lines


@pytest.mark.parametrize("format", FORMATS)
def test_no_columns_still_count_rows(tmp_path: Path, format: str) -> None:
    """A query may need only the number of rows."""
    write(tmp_path / "in" / f"a.{format}", 0, 7)
    input = source(tmp_path, format)
    batches = list(input.reader.read_many(input.slices(0, input.discover()), ()))
    assert sum(b.num_rows for b in batches) == 7


def test_what_is_no_input_is_passed_over(tmp_path: Path) -> None:
    """Hidden and empty files and foreign folders are ignored; the output of another job is read."""
    folder = tmp_path / "in"
    for name in (".a.parquet", "_a.parquet", ".staging/a.parquet", "old/a.parquet"):
        write(folder / name, 50, 1)
    (folder / "empty.parquet").touch()
    write(folder / "batch=3/part.parquet", 0, 2)
    write(folder / "batch=3/.crc.parquet", 70, 2)
    input = source(tmp_path, "parquet")
    assert rows(input, 0, input.discover()) == expected((0, 2))
    shutil.move(folder / ".staging", folder / "batch=4")
    assert rows(input, 1, input.discover()) == expected((50, 1))


def test_missing_folder_is_named(tmp_path: Path) -> None:
    """The error says what to do."""
    with pytest.raises(InputError, match="in: there is no such folder; create it"):
        source(tmp_path, "csv").discover()


@pytest.mark.parametrize("format", FORMATS)
def test_one_file_is_an_input(tmp_path: Path, format: str) -> None:
    """The path may name a file."""
    write(tmp_path / f"x.{format}", 0, 5)
    input = make("x", configs.folder(Path(f"x.{format}"), format), SCHEMA, tmp_path / "log", base=tmp_path)
    stop = input.discover()
    assert input.discover() == stop
    assert rows(input, 0, stop) == expected((0, 5))


@pytest.mark.parametrize(
    ("format", "raw"),
    [("parquet", b"PAR1 half"), ("csv", b"\xff\xfe\x00"), ("jsonl", b"\x1f\x8b\x08\x00" * 9)],
)
def test_bad_file_fails_or_is_skipped(tmp_path: Path, format: str, raw: bytes) -> None:
    """It is named with the fix; or skipped, counted, and tried again only once it has changed."""
    bad = tmp_path / "in" / f"a.{format}"
    write(tmp_path / "in" / f"b.{format}", 0, 2)
    bad.write_bytes(raw)
    with pytest.raises(InputError, match=rf"a\.{format}: .*begins with a dot.*onBadFile: skip"):
        source(tmp_path, format).discover()
    for _ in range(2):
        input = source(tmp_path, format, on_bad_file="skip")
        assert rows(input, 0, input.discover()) == expected((0, 2))
        assert input.lag()["skipped"] == 1
    log = (tmp_path / "log" / "orders.jsonl").read_text()
    assert log.count("\n") == 2
    write(bad, 5, 1)
    assert rows(input, 1, input.discover()) == expected((5, 1))
    known = input.lag(1)
    assert known.pop("read") in (1, 2), "of text files they are estimated"
    assert known == {"slices": 1, "rows": 1, "files": 2, "skipped": 0}


@pytest.mark.parametrize("format", FORMATS)
def test_a_file_that_changed_before_it_was_read(tmp_path: Path, format: str) -> None:
    """Changed or gone, the file is named; a file that was read may go."""
    path = tmp_path / "in" / f"a.{format}"
    write(path, 0, 3, mtime=1)
    input = source(tmp_path, format)
    stop = input.discover()
    write(path, 0, 3, mtime=2)
    with pytest.raises(InputError, match=rf"a\.{format}: written again"):
        rows(input, 0, stop)
    write(path, 0, 100)
    with pytest.raises(InputError, match=rf"a\.{format}: changed from \d+ to \d+ bytes"):
        rows(input, 0, stop)
    path.unlink()
    with pytest.raises(InputError, match=rf"a\.{format}: gone before it was read"):
        rows(input, 0, stop)
    assert input.discover() == stop


def test_a_lost_log_is_noticed(tmp_path: Path) -> None:
    """Slices that were read but are not in the log are a StateError, not an empty answer."""
    write(tmp_path / "in" / "a.parquet", 0, 3)
    with pytest.raises(StateError, match=r"orders\.jsonl: lists 0 slices, but 1 were read"):
        source(tmp_path, "parquet").slices(0, 1)


@pytest.mark.parametrize(
    ("format", "body", "message"),
    [
        ("csv", "id,name\n1,a\n\nx,b\n3,c\n", r"a\.csv, line 4: the value of column 'id' does not fit int64"),
        ("csv", "id,name\n1,a\n2\n", r"a\.csv, line 3: not UTF-8, or not a row"),
        ("csv", 'id,name\n1,a\n2,"b\nc"\n', r"a\.csv, line 3: a quote is open"),
        ("csv", "ID,name\n1,a\n", r"a\.csv: no column 'id'; it has ID, name \(nearest: ID\)"),
        ("csv", "1,Ann\n2,Bob\n", r"a\.csv: no column 'id', nor any other of the schema; the first line of a CSV file must have their names$"),
        ("csv", "id1,Ann\nid2,Bob\n", r"a\.csv: no column 'id', nor any other of the schema; the first line of a CSV file must have their names$"),
        ("jsonl", '{"id": 1}\n{"id": 2}\n{"id": "x"}\n', r"a\.jsonl, line 3: the value of column 'id' does not fit"),
        ("jsonl", ' null\n{"id": 1}\n', r"a\.jsonl, line 1: not UTF-8, or not"),
        ("jsonl", '{"id": 1}\n{"id": \n', r"a\.jsonl, line 2: not UTF-8, or not"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("slice_bytes", [1, 1 << 20])
def test_text_that_does_not_parse_names_the_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: str, body: str, message: str, slice_bytes: int
) -> None:
    """Line numbers count in the file, wherever it was cut."""
    monkeypatch.setattr(text, "SLICE_BYTES", slice_bytes)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / f"a.{format}").write_text(body)
    input = source(tmp_path, format)
    with pytest.raises(InputError, match=message):
        rows(input, 0, input.discover())


@pytest.mark.parametrize("format", ["csv", "jsonl"])
def test_text_times_and_nulls(tmp_path: Path, format: str) -> None:
    """No zone means UTC, another zone is converted; a missing value is NULL, an empty one is not."""
    schema = pa.schema([("t", pa.timestamp("us", "UTC")), ("d", pa.date32()), ("s", pa.string())])
    (tmp_path / "in").mkdir()
    lines = ['2026-01-01 00:00:00.5,2026-01-02,""', "2026-01-01T02:00:00.5+02:00,,x", "2026-01-01,,", ",,y"]
    if format == "csv":
        body = "\n".join(["t,d,s", *lines])
    else:
        fields = [dict(zip("tds", line.split(","), strict=True)) for line in lines]
        body = "\n".join(json.dumps({k: v.strip('"') for k, v in f.items() if v}) for f in fields)
    (tmp_path / "in" / f"a.{format}").write_text(body)
    input = source(tmp_path, format, schema)
    (batch,) = input.reader.read_many(input.slices(0, input.discover()), schema.names)
    assert batch.column("t").cast(pa.int64()).to_pylist() == [1767225600500000] * 2 + [1767225600000000, None]
    assert batch.column("d").cast(pa.int32()).to_pylist() == [20455, None, None, None]
    assert batch.column("s").to_pylist() == ["", "x", None, "y"]


def test_csv_of_another_kind(tmp_path: Path) -> None:
    """No header: the schema's columns in order; other delimiters, quotes and words for NULL."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("1;'a;''b'\n2;NA\n3;'NA'\n")
    input = source(tmp_path, "csv", csv=CsvFormat(header=False, delimiter=";", quote="'", null="NA"))
    got = rows(input, 0, input.discover(), ("name", "id"))
    assert [tuple(r.values()) for r in got] == [("a;'b", 1), (None, 2), ("NA", 3)]


@given(cut=st.integers(0, 400), format=st.sampled_from(FORMATS))
@settings(max_examples=30, deadline=None)
def test_a_torn_log_loses_no_row(tmp_path_factory: pytest.TempPathFactory, cut: int, format: str) -> None:
    """What a crash left of the entries that were being written is listed again; what was read stays where it was."""
    folder = tmp_path_factory.mktemp("f")
    log = folder / "log" / "orders.jsonl"
    write(folder / "in" / f"m.{format}", 0, 2)
    input = source(folder, format)
    offset = input.discover()
    kept = len(log.read_bytes())
    write(folder / "in" / f"z.{format}", 2, 2, mtime=1)
    write(folder / "in" / f"a.{format}", 4, 2, mtime=2)
    input.discover()
    log.write_bytes(log.read_bytes()[: kept + cut])
    write(folder / "in" / f"b.{format}", 6, 2, mtime=3)
    again = source(folder, format)
    stop = again.discover()
    assert rows(again, 0, offset) == expected((0, 2))
    assert rows(again, offset, stop) == expected((2, 6))


def test_a_file_that_is_still_written_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that grows while it is being cut is skipped as it is, and taken once it stands still."""
    path = tmp_path / "in" / "a.csv"
    write(path, 0, 2)
    cut = text.cut

    def cut_while_growing(*args: object) -> object:
        pieces = cut(*args)
        write(path, 0, 3)
        return pieces

    input = source(tmp_path, "csv", on_bad_file="skip")
    with monkeypatch.context() as patch:
        patch.setattr(text, "cut", cut_while_growing)
        assert input.discover() == 0
    assert input.lag()["skipped"] == 1
    assert rows(input, 0, input.discover()) == expected((0, 3))


def test_a_schema_that_does_not_fit_is_never_skipped(tmp_path: Path) -> None:
    """Skipping is for unreadable files; a column that is not there is a mistake in the spec."""
    write(tmp_path / "in" / "a.parquet", 0, 1)
    other = pa.schema([("id", pa.int64()), ("nam", pa.string())])
    with pytest.raises(InputError, match=r"a\.parquet: no column 'nam'; .*nearest: name"):
        source(tmp_path, "parquet", other, on_bad_file="skip").discover()


@pytest.mark.parametrize("format", FORMATS)
def test_null_where_none_may_be(tmp_path: Path, format: str) -> None:
    """NOT NULL of the schema is checked, with the file named."""
    write(tmp_path / "in" / f"a.{format}", 0, 4)
    strict = pa.schema(
        [pa.field("id", pa.int64(), nullable=False), pa.field("name", pa.string(), nullable=False)]
    )
    input = source(tmp_path, format, strict)
    stop = input.discover()
    assert len(rows(input, 0, stop, ("id",))) == 4
    with pytest.raises(
        InputError, match=rf"a\.{format}, .*: column 'name' is declared NOT NULL, but is NULL"
    ):
        rows(input, 0, stop)


def test_damaged_pages_are_named(tmp_path: Path) -> None:
    """A Parquet file whose footer is whole and whose data is not."""
    path = tmp_path / "in" / "a.parquet"
    write(path, 0, 100)
    raw = bytearray(path.read_bytes())
    raw[4:400] = b"\xff" * 396
    path.write_bytes(raw)
    input = source(tmp_path, "parquet")
    stop = input.discover()
    with pytest.raises(InputError, match=r"a\.parquet, rows 0 to 3 of row group 0: damaged"):
        rows(input, 0, stop)


def test_adjacent_slices_decode_their_group_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read together, and read one after the other."""
    monkeypatch.setattr(parquet, "BATCH_ROWS", 2)
    (tmp_path / "in").mkdir()
    pq.write_table(pa.table({"id": range(9), "name": ["x"] * 9}), tmp_path / "in" / "a.parquet")
    input = source(tmp_path, "parquet")
    stop = input.discover()
    assert stop == 5
    decode, decoded = parquet._decoded, []
    monkeypatch.setattr(parquet, "_decoded", lambda which: decoded.append(which) or decode(which))
    assert [r["id"] for i in range(stop) for r in rows(input, i, i + 1)] == list(range(9))
    assert rows(input, 0, stop, ("id", "name"))
    assert len(decoded) == 1


def test_inputs_travel(tmp_path: Path) -> None:
    """Inputs, readers and slices are pickled to the processes that use them."""
    write(tmp_path / "in" / "a.parquet", 0, 3)
    input = pickle.loads(pickle.dumps(source(tmp_path, "parquet")))
    slices = pickle.loads(pickle.dumps(input.slices(0, input.discover())))
    read = pickle.loads(pickle.dumps(input.reader)).read(slices[0], ["id"])
    assert [b.to_pydict() for b in read] == [{"id": [0, 1, 2]}]


def test_columns_of_another_table(tmp_path: Path) -> None:
    """Unlike a line of text, a Parquet file's schema is never a row: it is told."""
    (tmp_path / "in").mkdir()
    pq.write_table(pa.table({"a": [1], "b": ["x"]}), tmp_path / "in" / "a.parquet")
    input = source(tmp_path, "parquet")
    with pytest.raises(InputError, match=r"a\.parquet: no column 'id'; it has a, b$"):
        rows(input, 0, input.discover())
