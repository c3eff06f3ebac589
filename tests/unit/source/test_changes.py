"""Rows that change get their weights, from files of every format; what cannot have one is named."""

import csv
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinlib.errors import InputError
from joinlib.model.inputs import UNCHANGED, WEIGHT
from joinlib.source import RowChanges, make, parquet, text
from joinlib.source.changes import BEFORE, CAME, WENT
from tests import configs

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string()), ("op", pa.string())])
Row = tuple[Any, ...]


def written(folder: Path, format: str, rows: list[Row], schema: pa.Schema = SCHEMA) -> None:
    """One file of rows."""
    (folder / "in").mkdir()
    path = folder / "in" / f"a.{format}"
    objects = [dict(zip(schema.names, row, strict=True)) for row in rows]
    match format:
        case "parquet":
            loose = pa.schema([f.with_nullable(True) for f in schema])
            pq.write_table(pa.Table.from_pylist(objects, loose), path, row_group_size=3)
        case "csv":
            with path.open("w") as file:
                csv.writer(file, quoting=csv.QUOTE_MINIMAL).writerows([schema.names, *rows])
        case "jsonl":
            path.write_text("".join(json.dumps(one) + "\n" for one in objects))


def read(
    folder: Path, format: str, how: RowChanges | None, *columns: str, schema: pa.Schema = SCHEMA
) -> list[Row]:
    input = make("orders", configs.folder(folder / "in", format, changes=how), schema, folder / "log")
    batches = list(input.reader.read_many(input.slices(0, input.discover()), columns))
    assert all(b.schema.names == [*columns, *([WEIGHT] if how else [])] for b in batches)
    assert all(b.num_rows for b in batches)
    return [tuple(row.values()) for b in batches for row in b.to_pylist()]


HISTORY = [
    (1, "a", "insert"), (2, "b", "I"), (1, "a", "update_preimage"), (1, "c", "update_postimage"),
    (2, "b", "U-"), (2, "d", "U+"), (2, "d", "-U"), (2, "e", "+U"), (3, "f", "+I"), (3, "f", "-D"),
    (1, "c", "delete"), (2, "e", "D"), (4, "g", "+1"), (4, "g", "-1"),
]  # fmt: skip


@pytest.mark.parametrize("format", ["parquet", "csv", "jsonl"])
def test_every_word_has_its_weight(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: str) -> None:
    """In every format, in order, whatever columns are asked for and however the file is cut."""
    for module in (parquet, text):
        monkeypatch.setattr(module, "BATCH_ROWS", 4)
    monkeypatch.setattr(text, "SLICE_BYTES", 50)
    written(tmp_path, format, HISTORY)
    weights = [1, 1, -1, 1, -1, 1, -1, 1, 1, -1, -1, -1, 1, -1]
    names = [row[1] for row in HISTORY]
    how = RowChanges("op")
    assert read(tmp_path, format, how, "name") == list(zip(names, weights, strict=True))
    assert read(tmp_path, format, how) == [(w,) for w in weights]
    ids = [row[0] for row in HISTORY]
    assert read(tmp_path, format, how, "op", "id")[0] == ("insert", 1, 1)
    assert read(tmp_path, format, None, "id") == [(i,) for i in ids]


@pytest.mark.parametrize("format", ["parquet", "csv", "jsonl"])
def test_an_upsert_needs_no_row_from_before(tmp_path: Path, format: str) -> None:
    """It is left out; a deletion is one of the key, and without operations every row comes."""
    written(tmp_path, format, HISTORY)
    how = RowChanges("op", ("id",))
    weights = [1, 1, 1, 1, 1, 1, -1, -1, -1, 1, -1]
    kept = [row for row in HISTORY if row[2] not in BEFORE]
    assert read(tmp_path, format, how, "name") == [(r[1], w) for r, w in zip(kept, weights, strict=True)]
    assert read(tmp_path, format, RowChanges(None, ("id",)), "id") == [(row[0], 1) for row in HISTORY]


@pytest.mark.parametrize("kind", [pa.int8(), pa.int32(), pa.int64()])
def test_whole_numbers(tmp_path: Path, kind: pa.DataType) -> None:
    """1 and -1, and no other."""
    schema = pa.schema([("id", pa.int64()), ("op", kind)])
    written(tmp_path, "parquet", [(7, 1), (7, -1)], schema)
    assert read(tmp_path, "parquet", RowChanges("op"), "id", schema=schema) == [(7, 1), (7, -1)]
    (tmp_path / "2").mkdir()
    written(tmp_path / "2", "parquet", [(7, 1), (7, 2)], schema)
    with pytest.raises(
        InputError, match=r"column 'op' holds '2', which is no operation \(row 1.*one of 1, -1"
    ):
        read(tmp_path / "2", "parquet", RowChanges("op"), "id", schema=schema)


@pytest.mark.parametrize(
    ("op", "said"),
    [
        (
            "Insert",
            "column 'op' holds 'Insert', which is no operation (row 1 of those); write one of insert, ",
        ),
        (None, "column 'op' is NULL, which is no operation"),
        ("a card's number, 4111 1111", "column 'op' holds a text, which is no operation"),
        ("naïve", "column 'op' holds a text, which is no operation"),
        ("a\nb", "column 'op' holds a text, which is no operation"),
    ],
)
def test_an_unknown_operation_is_named(tmp_path: Path, op: str | None, said: str) -> None:
    """With the file and the words that are known; itself only where it can be no more than a word."""
    written(tmp_path, "parquet", [(1, "a", "insert"), (1, "a", op)])
    with pytest.raises(InputError) as error:
        read(tmp_path, "parquet", RowChanges("op"), "id")
    assert said in str(error.value)
    assert f"{tmp_path / 'in' / 'a.parquet'}, rows 0 to 2" in str(error.value)
    assert "4111" not in str(error.value)


@pytest.mark.parametrize("format", ["parquet", "csv", "jsonl"])
def test_null_in_a_key(tmp_path: Path, format: str) -> None:
    """No row can have it; a row that is left out may."""
    empty = "" if format == "csv" else None
    written(tmp_path, format, [(empty, "a", "update_preimage"), (1, "a", "insert"), (empty, "a", "delete")])
    with pytest.raises(InputError, match=r"in/a\..*column 'id' is NULL, but belongs to upsert.key \(row 1"):
        read(tmp_path, format, RowChanges("op", ("id",)), "name")


def test_not_null_is_meant_of_rows_that_came(tmp_path: Path) -> None:
    """A deletion of a key has no other values; without a key it is a whole row."""
    strict = pa.schema([SCHEMA.field(0), SCHEMA.field(1).with_nullable(False), SCHEMA.field(2)])
    written(tmp_path, "parquet", [(1, "a", "insert"), (1, None, "delete")], strict)
    rows = read(tmp_path, "parquet", RowChanges("op", ("id",)), "id", "name", schema=strict)
    assert rows == [(1, "a", 1), (1, None, -1)]
    with pytest.raises(InputError, match="'name' is declared NOT NULL"):
        read(tmp_path, "parquet", RowChanges("op"), "id", "name", schema=strict)
    (tmp_path / "2").mkdir()
    written(tmp_path / "2", "parquet", [(1, None, "insert")], strict)
    with pytest.raises(InputError, match="'name' is declared NOT NULL"):
        read(tmp_path / "2", "parquet", RowChanges("op", ("id",)), "id", "name", schema=strict)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from([*CAME, *WENT, *BEFORE])), max_size=30),
    st.booleans(),
)
def test_weights_are_those_of_the_words(rows: list[tuple[int, str]], upsert: bool) -> None:
    """A row for each word that counts, in order, with the mask that came with it."""
    batch = pa.record_batch(
        {"id": pa.array([r[0] for r in rows], pa.int64()), "op": pa.array([r[1] for r in rows], pa.string())}
    )
    how = RowChanges("op", ("id",) if upsert else ())
    weights = how.weights("here", batch)
    want = pa.schema([("id", pa.int64())])
    settled = how.settled("here", batch, weights, want, masks=weights * 2)
    expected = [(i, 1 if op in CAME else -1) for i, op in rows if not (upsert and op in BEFORE)]
    assert settled.schema.names == ["id", UNCHANGED, WEIGHT]
    assert list(zip(*(settled.column(n).to_pylist() for n in ("id", WEIGHT)), strict=True)) == expected
    assert settled.column(UNCHANGED).to_pylist() == [2 * w for _, w in expected]
    assert settled.schema.field(WEIGHT).type == pa.int64()
