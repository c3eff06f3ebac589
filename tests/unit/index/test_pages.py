"""Pages are asked for before they are touched: those of the rows, all of them, and none that is there."""

import ctypes
import itertools
import mmap
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinlib.index import pages
from tests.patience import until

ROWS = 200_000
SCHEMA = pa.schema([("v", pa.int64()), ("b", pa.bool_()), ("s", pa.string()), ("d", pa.decimal128(22, 2))])


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 3)), min_size=1, max_size=20))
def test_spans(found: list[tuple[int, int]]) -> None:
    """The same pages, ascending, each once, and no two spans that touch."""
    low, high = pages._spans(np.array([a for a, _ in found]), np.array([a + n for a, n in found]))

    spans = list(zip(low.tolist(), high.tolist(), strict=True))
    covered = [page for a, b in spans for page in range(a, b + 1)]
    assert covered == sorted({page for a, n in found for page in range(a, a + n + 1)})
    assert all(b + 1 < a for (_, b), (a, _) in itertools.pairwise(spans))


@pytest.fixture
def cold(tmp_path: Path) -> pa.RecordBatch:
    """Rows in a file of which no page is in memory, mapped as sorted runs are."""
    numbers = pa.array(range(ROWS))
    columns = [
        numbers,
        pa.array([n % 3 == 0 for n in range(ROWS)]),
        pa.array([f"{n:050}" for n in range(ROWS)]),
    ]
    batch = pa.record_batch([*columns, numbers.cast(pa.decimal128(22, 2))], SCHEMA)
    with pa.OSFile(str(tmp_path / "rows"), "wb") as sink, pa.ipc.new_stream(sink, SCHEMA) as writer:
        writer.write_batch(batch)
    with open(tmp_path / "rows", "r+b") as file:
        os.fsync(file.fileno())
        content = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        content.madvise(mmap.MADV_RANDOM)
        rows = pa.ipc.open_stream(pa.py_buffer(content)).read_next_batch()
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    if there(rows.column("s").buffers()[2]) > 0.1:
        pytest.skip("this file system keeps its files in memory")
    return rows


def there(buffer: pa.Buffer, start: int = 0, size: int | None = None) -> float:
    """The share of a buffer's pages that is in memory."""
    first = (buffer.address + start) // mmap.PAGESIZE
    count = (
        (buffer.address + start + (buffer.size if size is None else size) - 1) // mmap.PAGESIZE - first + 1
    )
    found = (ctypes.c_ubyte * count)()
    assert not pages._libc.mincore(
        ctypes.c_void_p(first * mmap.PAGESIZE), ctypes.c_size_t(count * mmap.PAGESIZE), found
    )
    return sum(byte & 1 for byte in found) / count


@pytest.mark.parametrize("name", SCHEMA.names)
def test_the_pages_of_rows_are_read(name: str, cold: pa.RecordBatch) -> None:
    """And few others. The rows may be in any order, and the column a part of one."""
    column = cold.column(name).slice(7)
    rows = np.arange(ROWS - 100, 0, -ROWS // 10)
    pages.ahead([(column, rows.astype(np.int32))])

    *_, data = column.buffers()
    width = 50 * 8 if name == "s" else column.type.bit_width
    until(lambda: all(there(data, int(7 + row) * width // 8, -(-width // 8)) == 1 for row in rows))
    assert there(data) < 0.5 or data.size < 100_000
    assert column.take(pa.array(rows)).to_pylist() == [column[int(row)].as_py() for row in rows]


def test_a_whole_array_is_read(cold: pa.RecordBatch) -> None:
    """As the hashes of a run that many are looked for in."""
    values = cold.column("v").to_numpy()
    pages.ahead_of_all(values)

    until(lambda: there(cold.column("v").buffers()[1]) == 1)
    assert there(cold.column("s").buffers()[2]) < 0.1
    pages.ahead_of_all(values[:0])


def test_holes_are_found(cold: pa.RecordBatch) -> None:
    """An array of which both ends are in memory is asked for all the same, and so are rows of which the first are there."""
    values = cold.column("v").to_numpy()
    assert values[0] + values[-1] == ROWS - 1
    pages.ahead_of_all(values)
    until(lambda: there(cold.column("v").buffers()[1]) == 1)

    text = cold.column("s")
    rows = np.arange(0, ROWS, ROWS // 8)
    assert text.take(pa.array(rows[:3])).to_pylist() == [f"{row:050}" for row in rows[:3]]
    pages.ahead([(text, rows)])
    until(lambda: all(there(text.buffers()[2], int(row) * 50, 50) == 1 for row in rows))


def test_nothing_is_asked_for_that_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor of memory that no file stands behind."""

    class Libc:
        libc, asked, looked = pages._libc, 0, 0

        def mincore(self, *asked: object) -> int:
            self.looked += 1
            return int(self.libc.mincore(*asked))

        def madvise(self, *_: object) -> None:
            self.asked += 1

    libc = Libc()
    monkeypatch.setattr(pages, "_libc", libc)
    batch = pa.record_batch([pa.array(range(ROWS))], ["v"])
    pages.ahead([(batch.column("v"), np.arange(ROWS))])
    pages.ahead_of_all(batch.column("v").to_numpy())
    pages.ahead([(pa.nulls(3), np.arange(3))])
    pages.ahead([(batch.column("v"), np.arange(0))])

    assert libc.asked == 0
    libc.looked = 0
    pages.ahead([(batch.column("v"), np.arange(ROWS))] * 40)
    assert libc.asked == 0 and 4 <= libc.looked <= 16, "however many rows and parts there are"


def test_how_much_is_in_memory(cold: pa.RecordBatch) -> None:
    """Nothing of a cold array, all of it once it was read, and half where half of it was."""
    cold_one = cold.column("v").to_numpy()
    assert pages.in_memory(cold_one) < 0.2
    cold_one[: ROWS // 2].sum()
    assert 0.3 < pages.in_memory(cold_one) < 0.7
    assert pages.in_memory(np.zeros(0)) == pages.in_memory(np.ones(ROWS)) == 1.0
