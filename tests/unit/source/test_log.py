"""The log keeps every entry that `append` returned for, and says so when it cannot."""

import errno
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinlib.errors import StateError
from joinlib.source.log import Log


def entries(*numbers: int) -> list[dict[str, int]]:
    return [{"n": n} for n in numbers]


@given(cut=st.integers(0, 200), sizes=st.lists(st.integers(0, 3), max_size=4))
def test_torn_end_is_cut_off_and_done_again(
    tmp_path_factory: pytest.TempPathFactory, cut: int, sizes: list[int]
) -> None:
    """Cut anywhere, the log holds a prefix of what was written, and goes on from there."""
    path = tmp_path_factory.mktemp("log") / "a.jsonl"
    log, written = Log(path), []
    for size in sizes:
        more = entries(*range(len(written), len(written) + size))
        log.append(more)
        written += more
    raw = path.read_bytes() if path.exists() else b""
    path.write_bytes(raw[:cut])
    kept = Log(path)
    assert kept.entries == written[: raw[:cut].count(b"\n")]
    kept.append(entries(99))
    assert Log(path).entries == [*written[: raw[:cut].count(b"\n")], *entries(99)]


@pytest.mark.parametrize("change", ["flip", "drop", "double", "swap"])
def test_damaged_line_is_named(tmp_path: Path, change: str) -> None:
    """A line that was altered, lost, doubled or moved is a StateError with its number."""
    path = tmp_path / "a.jsonl"
    Log(path).append(entries(10, 20, 30, 40))
    lines = path.read_bytes().splitlines(keepends=True)
    match change:
        case "flip":
            lines[1] = lines[1].replace(b"20", b"21")
        case "drop":
            del lines[1]
        case "double":
            lines.insert(1, lines[0])
        case "swap":
            lines[1], lines[2] = lines[2], lines[1]
    path.write_bytes(b"".join(lines))
    with pytest.raises(StateError, match=r"a\.jsonl, line 2: damaged"):
        _ = Log(path).entries


def test_a_full_disk_leaves_no_half_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An append that fails has not happened; a later one goes on."""
    log = Log(tmp_path / "a.jsonl")
    log.append(entries(1))
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(errno.ENOSPC, "full")))
        with pytest.raises(OSError, match="full"):
            log.append(entries(2))
    assert log.entries == entries(1)
    log.append(entries(3))
    assert Log(tmp_path / "a.jsonl").entries == entries(1, 3)


def test_two_writers_are_noticed(tmp_path: Path) -> None:
    """A second process that appends to the same log is not written over."""
    one, two = Log(tmp_path / "a.jsonl"), Log(tmp_path / "a.jsonl")
    one.append(entries(1))
    two.append(entries(2))
    with pytest.raises(StateError, match="changed by somebody else"):
        one.append(entries(3))
    assert Log(tmp_path / "a.jsonl").entries == entries(1, 2)


def test_a_shorter_log_in_place_of_a_longer_one(tmp_path: Path) -> None:
    """It goes on from there, also when loaded anew; whoever still holds the old one cannot write to it."""
    path = tmp_path / "a.jsonl"
    log = Log(path)
    log.append(entries(1, 2, 3))
    other = Log(path)
    assert other.entries == entries(1, 2, 3)

    log.replace(entries(7))
    log.append(entries(8))

    assert log.entries == Log(path).entries == entries(7, 8)
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(StateError, match="changed by somebody else"):
        other.append(entries(4))
