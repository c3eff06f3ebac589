"""Small batches become one folder before readers see them: what readers see at any moment, and after any death."""

import os
import subprocess
import sys
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from joinlib.errors import StateError
from joinlib.sink.config import staging
from joinlib.sink.gather import Gathering, merge, release
from joinlib.sink.publish import check_age, claim, waiting
from joinlib.spec.output import Compact

ROOT = Path(__file__).parents[3]
MARK = "0123456789abcdef"
BATCHES, ROWS = 30, 5
_READ = {"parquet": "parquet_scan", "csv": "read_csv", "jsonl": "read_json"}
# A driver: each batch is begun, has files of two tasks, and is done. What is done is a number in a file.
_DRIVER = """
import sys
from pathlib import Path
import pyarrow as pa
import pyarrow.csv, pyarrow.parquet
from joinlib.sink.gather import Gathering, release
from joinlib.sink.publish import check_age, claim
from joinlib.sink.config import staging
from joinlib.spec.output import Compact

folder, format, batches, rows, size = Path(sys.argv[1]), sys.argv[2], *map(int, sys.argv[3:])
done = folder.with_name("done")
start = int(done.read_text()) if done.exists() else 0
claim(folder, "id")
check_age(folder, start)
release(folder, False)

def write(file, values):
    if format == "jsonl":
        file.write_text("".join(f'{{"v": {v}}}\\n' for v in values))
    else:
        table = pa.table({"v": values})
        pa.csv.write_csv(table, file) if format == "csv" else pa.parquet.write_table(table, file)

gathering = Gathering(folder, Compact(every="1h", size=size), False)
for batch in range(start, batches):
    files = []
    for task in range(2 if batch % 5 else 0):
        values = [batch * rows + n for n in range(rows) if n % 2 == task]
        staging(folder, batch).mkdir(parents=True, exist_ok=True)
        files.append(f"{task}.{format}")
        write(staging(folder, batch) / files[-1], values)
    gathering.add(batch, files, f"{batch:016x}")
    aside = done.with_name("aside")
    aside.write_text(str(batch + 1))
    aside.rename(done)
gathering.end()
"""


@pytest.mark.slow
@pytest.mark.parametrize("format", _READ)
def test_readers_see_each_row_once_at_any_moment(tmp_path: Path, format: str) -> None:
    """Whole batches without a gap, never fewer than before, while the driver gathers, dies at every point and goes on."""
    out, faults = tmp_path / "out", tmp_path / "faults"
    out.mkdir()
    faults.mkdir()
    deaths = ["staged:6", "published:8", "released:29"]
    if format == "parquet":  # whichever batch it is that makes those that wait large enough
        deaths += [*(f"gathered:{n}" for n in range(9, 14)), *(f"released:{n}" for n in range(14, 19))]
    for fault in deaths:
        (faults / fault).touch()
    size = 3000 if format == "parquet" else 100  # a few batches
    command = [sys.executable, "-c", _DRIVER, str(out), format, str(BATCHES), str(ROWS), str(size)]
    environment = {**os.environ, "STREAMJOIN_FAULTS": str(faults), "PYTHONPATH": str(ROOT)}
    seen, died, code = [0], 0, -9
    while code == -9:
        driver = subprocess.Popen(command, env=environment)
        while driver.poll() is None:
            seen.append(look(out, format))
        code = driver.returncode
        died += code == -9
    assert code == 0 and died >= (5 if format == "parquet" else 3)
    assert seen == sorted(seen)
    assert look(out, format) == BATCHES and len(set(seen)) > 2
    assert not waiting(out).exists() and not list(out.glob(".swept-*"))
    assert len(list(out.glob("batch=*"))) < BATCHES * 0.6
    assert all(len(list(batch.iterdir())) == 1 for batch in out.glob("batch=*"))


def look(out: Path, format: str) -> int:
    """What a reader sees: so many batches, from the first on; those that have no rows count with the one before."""
    if not list(out.glob("batch=*")):
        return 0
    rows = duckdb.sql(f"SELECT v FROM {_READ[format]}('{out}/batch=*/*.{format}') ORDER BY v").fetchall()
    values = [v for (v,) in rows]
    batches = (
        BATCHES if values and values[-1] == BATCHES * ROWS - 1 else (values[-1] // ROWS + 1 if values else 0)
    )
    assert values == [v for v in range(batches * ROWS) if v // ROWS % 5]
    return batches


def test_other_readers_see_no_batch_that_waits(tmp_path: Path) -> None:
    """A dataset of hive partitions, like DuckDB, passes names with dots over."""
    gathering = Gathering(tmp_path, Compact(), False)
    claim(tmp_path, "id")
    gathering.add(1, stage(tmp_path, 1), MARK)
    assert ds.dataset(tmp_path, format="parquet", partitioning="hive").count_rows() == 0
    gathering.end()
    found = ds.dataset(tmp_path, format="parquet", partitioning="hive").to_table()
    assert found.column("batch").to_pylist() == [1] and found.num_rows == 1


def test_what_is_old_or_large_is_released(tmp_path: Path) -> None:
    """By the clock of the first that waits; or with the batch that makes it large. Nothing waits for nothing."""
    now = [100.0]
    gathering = Gathering(tmp_path, Compact(every_us="10s", size_bytes="1M"), False, lambda: now[0])  # type: ignore[arg-type]
    assert not gathering.due
    gathering.end()
    for batch, after in ((1, 0), (2, 6)):
        now[0] += after
        gathering.add(batch, stage(tmp_path, batch), MARK)
        assert not gathering.due and not list(tmp_path.glob("batch=*"))
    now[0] += 4
    assert gathering.due
    gathering.end()
    assert not gathering.due
    gathering.add(3, [], MARK)
    now[0] += 60
    assert not gathering.due, "a batch without rows waits for nothing"
    gathering.add(4, stage(tmp_path, 4), MARK)
    now[0] += 10
    gathering.add(7, stage(tmp_path, 7), MARK)
    small = Gathering(tmp_path, Compact(size_bytes="1"), False)  # type: ignore[arg-type]
    small.add(9, stage(tmp_path, 9), MARK)
    assert sorted(f.name for f in tmp_path.glob("batch=*")) == ["batch=2", "batch=7", "batch=9"]


def test_a_batch_that_runs_again_is_compared(tmp_path: Path) -> None:
    """Where it waits, and where readers see it; another one of the number is refused in both, and one ahead of the checkpoint."""
    gathering = Gathering(tmp_path, Compact(), False)
    for _ in range(2):
        gathering.add(3, stage(tmp_path, 3), MARK)
        with pytest.raises(StateError, match="another batch"):
            gathering.add(3, stage(tmp_path, 3), MARK[::-1])
        with pytest.raises(StateError, match="holds batch 3"):
            check_age(tmp_path, 2)
        gathering.end()
    assert pq.read_table(tmp_path / "batch=3", partitioning=None).num_rows == 1


def test_what_is_merged(tmp_path: Path) -> None:
    """Rows in order, in row groups of a useful size, under one header; large files stay, as links; formats are kept apart."""
    files = []
    for number in range(4):
        table = pa.table({'a "b"\nc': pa.array([f'{number}\n"', None]), "n": [number, 10 + number]})
        for format, write in (("parquet", pq.write_table), ("csv", pa.csv.write_csv)):
            files.append(tmp_path / f"{number}.{format}")
            write(table, files[-1])
    large = tmp_path / "large.parquet"
    pq.write_table(pa.table({"x": list(range(10_000))}), large)
    ready = tmp_path / "ready"
    ready.mkdir()
    merge([*files, large], ready, MARK, 10_000)
    assert sorted(f.name for f in ready.iterdir()) == [
        f"part-00000-{MARK}.parquet",
        f"part-00001-{MARK}.csv",
        f"part-00002-{MARK}.parquet",
    ]
    assert large.samefile(ready / f"part-00002-{MARK}.parquet")
    merged = pq.ParquetFile(ready / f"part-00000-{MARK}.parquet")
    assert merged.num_row_groups == 1
    expected = pa.concat_tables(pq.read_table(f) for f in files[::2])
    assert merged.read().equals(expected)
    parsed = pa.csv.read_csv(
        ready / f"part-00001-{MARK}.csv",
        parse_options=pa.csv.ParseOptions(newlines_in_values=True),
        convert_options=pa.csv.ConvertOptions(strings_can_be_null=True, quoted_strings_can_be_null=False),
    )
    assert parsed.equals(expected)


def test_what_waits_is_on_the_disk_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The merged file, its name, then the folder's; and nothing that waited goes before."""
    claim(tmp_path, "id")
    Gathering(tmp_path, Compact(), False).add(1, stage(tmp_path, 1), MARK)
    calls: list[tuple[str, bool, bool]] = []

    def said(handle: int) -> None:
        name = Path(f"/proc/self/fd/{handle}").readlink().name
        kind = next((k for k in ("part", "ready") if name.startswith(k)), "folder")
        calls.append((kind, (tmp_path / "batch=1").exists(), waiting(tmp_path).exists()))

    monkeypatch.setattr("joinlib.files.os.fsync", said)
    release(tmp_path, True)
    assert calls == [("part", False, True), ("ready", False, True), ("folder", True, True)]


def stage(folder: Path, batch: int) -> list[str]:
    """A staged file of one row."""
    staging(folder, batch).mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"v": [batch]}), staging(folder, batch) / "part-0.parquet")
    return ["part-0.parquet"]
