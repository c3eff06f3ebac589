"""Manifests as files. Law: whatever the number of partitions was and is, a task finds those of its units, whole or not at all."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    for file in (tmp_path / "manifests" / "00000005").glob("0-0-of-2"):
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
    file = tmp_path / "manifests" / "00000004" / "0-0-of-1"
    whole = bytearray(file.read_bytes())
    file.write_bytes(whole[:-3])
    with pytest.raises(StateError, match="0-0-of-1: damaged"):
        read(tmp_path, 4, 1)
    whole[at] ^= 4
    file.write_bytes(whole)
    with pytest.raises(StateError, match="0-0-of-1: damaged"):
        read(tmp_path, 4, 2)


def test_only_what_may_be_needed_is_kept(tmp_path: Path) -> None:
    """One task sweeps: that batch and the one before stay, of all stages."""
    for batch in range(5):
        for stage in (0, 1):
            task = Manifests(tmp_path, stage, 0, 1)
            task.write(batch, {})
            task.sweep(batch)
    assert sorted(f.name for f in (tmp_path / "manifests").iterdir()) == ["00000003", "00000004"]
    assert len(list((tmp_path / "manifests" / "00000003").iterdir())) == 2
