"""Files are whole or not there."""

from pathlib import Path

import pytest

from joinlib import files
from joinlib.files import sync, whole


def write(path: Path, content: bytes, full: bool = False) -> None:
    with whole(path) as aside:
        aside.write_bytes(content)
        if full:
            raise OSError("full")


def test_a_file_is_there_once_it_is_whole(tmp_path: Path) -> None:
    """Until then there is the old one, and beside it a name that begins as its own: sweeps by that find it."""
    path = tmp_path / "0-1.index"
    write(path, b"old")
    with whole(path) as aside:
        aside.write_bytes(b"new")
        assert path.read_bytes() == b"old"
        assert sorted(tmp_path.glob("0-*")) == [path, aside] and not list(tmp_path.glob("*.index?"))
    assert path.read_bytes() == b"new" and list(tmp_path.iterdir()) == [path]


def test_who_lists_the_folder_does_not_see_half_a_file(tmp_path: Path) -> None:
    """Hidden, and under another name in every attempt: process ids are the same in two containers."""
    with whole(tmp_path / "a", hidden=True) as one, whole(tmp_path / "a", hidden=True) as other:
        assert one != other
        one.write_bytes(b"one")
        other.write_bytes(b"other")
        assert not list(tmp_path.glob("[!.]*"))
    assert (tmp_path / "a").read_bytes() == b"one" and len(list(tmp_path.iterdir())) == 1


def test_what_fails_leaves_what_was_there(tmp_path: Path) -> None:
    """A full disk, for one: the old file stays, and nothing else."""
    path = tmp_path / "0-1.index"
    write(path, b"old")
    with pytest.raises(OSError, match="full"):
        write(path, b"ne", full=True)
    assert path.read_bytes() == b"old" and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("path", [Path(), Path("/"), Path("nowhere/a")])
def test_an_error_names_the_file_itself(path: Path) -> None:
    """Not the one aside, of which people know nothing; also where a folder stands in its place."""
    with pytest.raises(OSError, match="directory") as error, whole(path) as aside:
        aside.write_bytes(b"")
    assert error.value.filename == str(path)


def test_what_is_synced_is_on_the_disk_before_its_name_and_its_folder_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The order in which a power cut at any moment leaves the old file or the new one; a file that is not to survive costs nothing."""
    calls: list[str] = []
    monkeypatch.setattr(
        files.os, "fsync", lambda handle: calls.append(Path(f"/proc/self/fd/{handle}").readlink().name)
    )
    with whole(tmp_path / "a") as aside:
        aside.write_bytes(b"a cache")
    assert calls == []
    with whole(tmp_path / "a", synced=True) as aside:
        aside.write_bytes(b"new")
    assert calls == [aside.name, tmp_path.name]
    calls.clear()
    sync([tmp_path / "a", tmp_path, tmp_path / "a"])
    assert sorted(calls) == ["a", tmp_path.name]
