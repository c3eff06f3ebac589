"""What footers say of rows and of whole numbers."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from joinlib.errors import InputError
from joinlib.source.footers import footers


def write(file: Path, **columns: list[object]) -> None:
    file.parent.mkdir(exist_ok=True)
    pq.write_table(pa.table(columns), file)


def test_rows_and_spans(tmp_path: Path) -> None:
    """Of all files and row groups; a column of other values has no span, nor one with a file of NULLs."""
    write(tmp_path / "1.parquet", k=[3, 7, None], name=["a", "b", "c"], n=[1, 2, 3])
    write(tmp_path / "2.parquet", k=[5, 9], name=["a", "b"], n=pa.array([None, None], pa.int64()))
    found = footers(tmp_path, ["k", "name", "n"])

    assert found is not None
    assert (found.rows, found.spans) == (5, {"k": 7.0})
    assert footers(tmp_path, ["name"]) is not None


def test_of_many_files_some_are_read(tmp_path: Path) -> None:
    """The others count by their sizes, and may have other values."""
    for number in range(100):
        write(tmp_path / f"{number}.parquet", k=[1, 2, 3])
    found = footers(tmp_path, ["k"])

    assert found is not None
    assert found.rows == pytest.approx(300)
    assert found.spans == {}


def test_nothing_that_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "half.parquet").write_bytes(b"PAR1")
    assert footers(tmp_path, ["k"]) is None
    with pytest.raises(InputError, match="no such folder"):
        footers(tmp_path / "none", ["k"])
