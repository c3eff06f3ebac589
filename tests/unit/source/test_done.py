"""Files that go once they were read: every row comes once, whoever dies when, and the log forgets what is gone."""

import random
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from joinlib.errors import InputError, SpecError, StateError
from joinlib.source import StreamInput, done, known_files, make
from joinlib.source.listing import ListedFile
from joinlib.source.log import Log
from joinlib.spec.inputs import Done
from tests import configs

SCHEMA = pa.schema([("v", pa.int64())])


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "in" / "batch=1").mkdir(parents=True)
    monkeypatch.setattr(known_files, "_FOLDED", 4)


def source(folder: Path, way: Done = "archive") -> StreamInput:
    archive = folder / "archive" if way == "archive" else None
    config = configs.folder(
        folder / "in", "parquet", order_by="name", on_bad_file="skip", done=way, archive=archive
    )
    return make("a", config, SCHEMA, folder / "log")


def write(folder: Path, name: str, *values: int) -> None:
    pq.write_table(pa.table({"v": pa.array(values, pa.int64())}), folder / "in" / name)


def read(given: StreamInput, start: int, stop: int) -> list[int]:
    return [
        v for b in given.reader.read_many(given.slices(start, stop), ["v"]) for v in b.column(0).to_pylist()
    ]


def there(folder: Path) -> list[str]:
    return sorted(str(f.relative_to(folder)) for f in folder.rglob("*.parquet"))


@pytest.mark.parametrize("way", ["archive", "delete", "keep"])
def test_a_file_goes_when_nobody_asks_for_it_again(tmp_path: Path, way: Done) -> None:
    """Not before; from sub-folders too, and without rows. One under the name of one that has gone is read."""
    for number, name in enumerate(("1.parquet", "2.parquet", "batch=1/3.parquet")):
        write(tmp_path, name, number)
    write(tmp_path, "4.parquet")
    given = source(tmp_path, way)
    assert given.discover() == 3
    given.forget(2)
    stays = ["1.parquet", "2.parquet", "4.parquet"] if way == "keep" else []
    assert there(tmp_path / "in") == [*stays, "batch=1/3.parquet"]
    given.forget(3)
    stays = ["1.parquet", "2.parquet", "4.parquet", "batch=1/3.parquet"]
    assert there(tmp_path / "in") == (stays if way == "keep" else [])
    assert there(tmp_path / "archive") == (stays if way == "archive" else [])
    write(tmp_path, "1.parquet", 7)
    found = given.discover()
    assert found == (3 if way == "keep" else 4)
    if way != "keep":
        assert read(given, 3, 4) == [7]
        given.forget(4)
        assert len(there(tmp_path / "archive")) == (5 if way == "archive" else 0), "no file is written over"


@pytest.mark.parametrize("seed", range(20))
def test_every_row_comes_once(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names that come again, restarts, and deaths between a file's going and the log's folding."""
    draw, made, got, at, safe = random.Random(seed), 0, [], 0, 0
    given = source(tmp_path)
    for _ in range(60):
        match draw.choice(["write", "write", "read", "forget", "die", "restart"]):
            case "write":
                name = f"{draw.randrange(6)}.parquet"
                if not (tmp_path / "in" / name).exists():
                    write(tmp_path, name, *range(made, made + 3))
                    made += 3
            case "read":
                stop = given.discover()
                got += read(given, at, stop)
                at = stop
            case "forget":
                safe = draw.randint(safe, at)
                given.discover()
                given.forget(safe)
            case "die":
                with monkeypatch.context() as patch, suppress(KeyboardInterrupt):
                    patch.setattr(Log, "replace", _dies)
                    given.forget(at)
                safe, given = at, source(tmp_path)
            case "restart":
                given = source(tmp_path)
    given = source(tmp_path)
    got += read(given, at, stop := given.discover())
    assert sorted(got) == list(range(made))
    assert given.lag(stop) == {"slices": 0, "rows": 0, "read": made, "files": made // 3, "skipped": 0}


def test_the_log_forgets(tmp_path: Path) -> None:
    """It stays short, whatever has gone; positions, rows and what was skipped are as they were."""
    (tmp_path / "in" / "bad").write_bytes(b"no parquet")
    given, longest = source(tmp_path), 0
    for number in range(30):
        write(tmp_path, f"{number}.parquet", number)
        assert given.discover() == number + 1
        given.forget(number)
        longest = max(longest, len((tmp_path / "log" / "a.jsonl").read_text().splitlines()))
    again = source(tmp_path)
    assert longest < 12
    for one in (given, again):
        assert one.lag(29) == {"slices": 1, "rows": 1, "read": 29, "files": 30, "skipped": 1}
        assert read(one, 29, 30) == [29]
    assert again.discover() == 30
    with pytest.raises(StateError, match=r"lists 30 slices, from \d\d on, but 0 to 1 were read"):
        again.slices(0, 1)
    assert (tmp_path / "in" / "bad").exists()


def test_names_are_gone_for_good_before_the_log_forgets_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a power cut would bring a file back that nobody knows: it would be read again."""
    calls: list[str] = []
    for number in range(6):
        write(tmp_path, f"{number}.parquet", number)
    given = source(tmp_path, "delete")
    given.discover()
    replace = Log.replace

    def folded(log: Log, entries: Any) -> None:
        calls.append("log")
        replace(log, entries)

    monkeypatch.setattr(Log, "replace", folded)
    monkeypatch.setattr(
        "joinlib.files.os.fsync", lambda h: calls.append(Path(f"/proc/self/fd/{h}").readlink().name)
    )
    given.forget(6)
    assert calls[: calls.index("log")] == ["in"]


def test_what_cannot_go_is_named(tmp_path: Path, other_disk: Path) -> None:
    """Before the job begins where it can be known; else when it is met."""
    done.check(tmp_path / "nowhere", None)
    done.check(tmp_path / "in", tmp_path / "archive")
    with pytest.raises(SpecError, match="is on another disk"):
        done.check(tmp_path / "in", other_disk)
    write(tmp_path, "1.parquet", 1)
    with pytest.raises(SpecError, match="is a single file"):
        done.check(tmp_path / "in" / "1.parquet", None)
    stat = (tmp_path / "in" / "1.parquet").stat()
    found = ListedFile("1.parquet", stat.st_size, stat.st_mtime_ns)
    with pytest.raises(InputError, match=r"1\.parquet: was read, but cannot be put away"):
        done.put_away(tmp_path / "in", found, other_disk)
    assert there(tmp_path / "in") == ["1.parquet"]


@pytest.fixture
def other_disk(tmp_path: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        if Path(folder).stat().st_dev == tmp_path.stat().st_dev:
            pytest.skip("/dev/shm is on the same disk")
        yield Path(folder)


def _dies(*_: object) -> None:
    raise KeyboardInterrupt
