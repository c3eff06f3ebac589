"""Files that processes share: told apart from those that took their place, measured when they change."""

import os
from pathlib import Path

import numpy as np
import pytest

from joinlib.files import whole
from joinlib.index.mapped import Mapped
from joinlib.index.marks import UNKNOWN, MarkFile


def write(path: Path, content: bytes) -> None:
    with whole(path) as aside:
        aside.write_bytes(content)


def test_a_map_is_of_the_file_that_was_opened(tmp_path: Path) -> None:
    """It is good for as long as that has its place, written to or not; its bytes stay readable."""
    path = tmp_path / "a"
    write(path, b"old")
    mapped = Mapped(path)
    Mapped(path).view[:] = b"odd"
    assert not mapped.stale and bytes(mapped.view) == b"odd"
    write(path, b"new")
    assert mapped.stale and bytes(mapped.view) == b"odd"
    path.unlink()
    assert mapped.stale


def test_the_room_of_a_file_is_asked_for_when_it_may_be_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once for each header: a file whose header is as it was takes what it took."""
    path, asked, stat = tmp_path / "a", [], os.stat
    write(path, bytes(1 << 16))
    mapped = Mapped(path)
    monkeypatch.setattr(os, "stat", lambda *given, **more: asked.append(given) or stat(*given, **more))
    sizes = [mapped.allocated(header) for header in (b"1", b"1", b"2", b"2", b"2")]
    assert len(asked) == 2 and sizes == [stat(path).st_blocks * 512] * 5


def test_marks_are_seen_by_all_until_the_file_is_another(tmp_path: Path) -> None:
    """One without a mark is made in the place of one that is gone, or of other rows."""
    path = tmp_path / "0-1.marks"
    one, other = MarkFile(path, 9), MarkFile(path, 9)
    one.begin()
    assert other.token == UNKNOWN
    assert one.mark(np.array([3, 5, 3], np.int32)).tolist() == [3, 5]
    one.finish(7)
    other.reopen()
    assert other.token == 7 and np.flatnonzero(other.values).tolist() == [3, 5]

    path.unlink()
    other.reopen()
    assert other.token == 0 and not other.values.any()
    assert len(MarkFile(path, 8).values) == 8
