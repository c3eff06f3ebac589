"""Manifests as files. Law: whatever the number of partitions was and is, a task finds those of its units, whole or not at all."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinlib import files
from joinlib.errors import StateError
from joinlib.state.manifests import Manifests

UNITS = 8
COUNTS = st.sampled_from([1, 2, 4, 8])


def write(states: Path, batch: int, partitions: int, of: dict[int, bytes]) -> None:
    for p in range(partitions):
        own = {unit: m for unit, m in of.items() if unit % partitions == p}
        Manifests(states, 0, p, partitions).write(batch, own)


def read(states: Path, batch: int, partitions: int) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    for p in range(partitions):
        own = Manifests(states, 0, p, partitions).after(batch)
        assert {unit % partitions for unit in own} <= {p}
        found |= own
    return found


@given(before=COUNTS, now=COUNTS, of=st.dictionaries(st.integers(0, UNITS - 1), st.binary(max_size=9)))
def test_any_number_of_partitions(
    tmp_path_factory: pytest.TempPathFactory, before: int, now: int, of: dict[int, bytes]
) -> None:
    """Also of units that have not been seen, and of none at all."""
    states = tmp_path_factory.mktemp("states")
    write(states, 3, before, of)
    assert read(states, 3, now) == of


def test_nothing_was_before_the_first(tmp_path: Path) -> None:
    """A batch that should have been is another matter."""
    assert Manifests(tmp_path, 0, 0, 2).after(-1) == {}
    with pytest.raises(StateError, match="00000007: manifests of stage 0 are missing"):
        Manifests(tmp_path, 0, 0, 2).after(7)


def test_a_batch_that_was_cut_off_with_other_partitions(tmp_path: Path) -> None:
    """What it left is the same, as far as it goes; a part of it is not taken for the whole."""
    write(tmp_path, 5, 2, {u: b"%d" % u for u in range(UNITS)})
    Manifests(tmp_path, 0, 1, 8).write(5, {1: b"1"})
    assert read(tmp_path, 5, 4) == read(tmp_path, 5, 8) == {u: b"%d" % u for u in range(UNITS)}
    for file in (tmp_path / "manifests" / "00000005").glob("0-0-of-2-*"):
        file.unlink()
    with pytest.raises(StateError, match="missing"):
        read(tmp_path, 5, 4)


def test_an_attempt_that_died_and_one_that_came_later(tmp_path: Path) -> None:
    """Half a file has another name; whoever is last has written the same."""
    write(tmp_path, 0, 1, {0: b"a"})
    (tmp_path / "manifests" / "00000000" / ".0-0-of-2.4711").write_bytes(b"half")
    write(tmp_path, 0, 1, {0: b"a"})
    assert read(tmp_path, 0, 2) == {0: b"a"}


@pytest.mark.parametrize("at", [0, 9, -1])
def test_damage_is_named(tmp_path: Path, at: int) -> None:
    """A bit that has flipped, and an end that is missing."""
    write(tmp_path, 4, 1, {0: b"manifest"})
    file = tmp_path / "manifests" / "00000004" / "0-0-of-1-by-0"
    whole = bytearray(file.read_bytes())
    file.write_bytes(whole[:-3])
    with pytest.raises(StateError, match="0-0-of-1-by-0: damaged"):
        read(tmp_path, 4, 1)
    whole[at] ^= 4
    file.write_bytes(whole)
    with pytest.raises(StateError, match="0-0-of-1-by-0: damaged"):
        read(tmp_path, 4, 2)


def test_as_many_are_kept_as_segments_are(tmp_path: Path) -> None:
    """One task sweeps: that batch and those stay to which one may go back, of all stages."""
    for batch in range(5):
        for stage in (0, 1):
            task = Manifests(tmp_path, stage, 0, 1)
            task.write(batch, {})
            task.sweep(batch, retained=2)
    assert sorted(f.name for f in (tmp_path / "manifests").iterdir()) == ["00000002", "00000003", "00000004"]
    assert len(list((tmp_path / "manifests" / "00000003").iterdir())) == 2


def test_a_task_of_an_older_run_comes_late(tmp_path: Path) -> None:
    """What the latest run has found counts, with whatever partitions; runs that share an epoch write the same."""
    for epoch, partitions in ((3, 2), (4, 2)):
        for p in range(partitions):
            Manifests(tmp_path, 0, p, partitions, epoch).write(6, {p: b"%d" % epoch})
    Manifests(tmp_path, 0, 1, 2, epoch=3).write(6, {1: b"late"})
    assert read(tmp_path, 6, 2) == read(tmp_path, 6, 1) == {0: b"4", 1: b"4"}
    Manifests(tmp_path, 0, 0, 1, epoch=2).write(6, {0: b"late", 1: b"late"})
    assert read(tmp_path, 6, 2) == read(tmp_path, 6, 1) == {0: b"4", 1: b"4"}


def test_a_checkpoint_of_before_goes_on(tmp_path: Path) -> None:
    """Its manifests know no epoch."""
    write(tmp_path, 2, 2, {0: b"a", 1: b"b"})
    for file in (tmp_path / "manifests" / "00000002").iterdir():
        file.rename(file.with_name(file.name.removesuffix("-by-0")))
    assert read(tmp_path, 2, 2) == {0: b"a", 1: b"b"}
    Manifests(tmp_path, 0, 0, 2, epoch=1).write(2, {0: b"c"})
    assert read(tmp_path, 2, 2) == {0: b"c", 1: b"b"}


def test_what_a_manifest_names_is_on_the_disk_before_its_own_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Segments, the names of segments, the manifest; then its name. Each once; nothing where nothing must survive."""
    done: list[str] = []
    fsync, rename = files.os.fsync, files.os.replace

    def synced(handle: int) -> None:
        done.append(str(Path(f"/proc/self/fd/{handle}").readlink().relative_to(tmp_path)))
        fsync(handle)

    def renamed(old: Path, new: Path) -> None:
        done.append("rename")
        rename(old, new)

    monkeypatch.setattr(files.os, "fsync", synced)
    monkeypatch.setattr(files.os, "replace", renamed)
    fresh = [tmp_path / "0" / unit / name for unit in ("00000", "00002") for name in ("a.arrow", "b.arrow")]
    for file in fresh:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    Manifests(tmp_path, 0, 0, 2).write(7, {0: b"0"}, fresh)
    assert done == ["rename"]
    done.clear()
    Manifests(tmp_path, 0, 0, 2, synced=True).write(7, {0: b"0"}, fresh)
    before, after = done[: done.index("rename")], done[done.index("rename") + 1 :]
    aside = next(name for name in before if name.startswith("manifests/00000007/."))
    named = [str(file.relative_to(tmp_path)) for file in fresh]
    assert sorted(before) == sorted([aside, *named, "0/00000", "0/00002", "0"])
    assert sorted(after) == [".", "manifests", "manifests/00000007"]
