"""Sorted indexes of segments: a cache on disk that never outlives, or stands for, another segment."""

from pathlib import Path

import numpy as np
import pytest

from joinlib.index.inequality import Op, PermutedRun, build
from joinlib.state.sorted import SortedIndexes

NUMBERS = np.array([3, 1, 2])


def made() -> PermutedRun:
    return build([NUMBERS, NUMBERS], [Op.LT, Op.GE])


def found(run: PermutedRun) -> list[tuple[int, int]]:
    probes = [np.array([2]), np.array([2])]
    return sorted((int(p), int(r)) for some in run.probe(probes) for p, r in zip(*some))


def never() -> PermutedRun:
    raise AssertionError("it is there already")


def test_an_index_is_made_once_for_all_processes(tmp_path: Path) -> None:
    """A second process maps what the first has written, and finds the same."""
    one, two = SortedIndexes(tmp_path, 0, "x"), SortedIndexes(tmp_path, 0, "x")

    assert found(one.of(["seg"], made)) == found(made())
    assert found(two.of(["seg"], never)) == found(made())
    assert one.bytes == two.bytes > 0


def test_another_comparison_has_another_index(tmp_path: Path) -> None:
    """Segments are named by their content, so the same rows may be sorted by something else: that is told apart."""
    SortedIndexes(tmp_path, 0, "x").of(["seg"], made)

    with pytest.raises(AssertionError, match="there already"):
        SortedIndexes(tmp_path, 0, "y").of(["seg"], never)


def test_a_file_that_was_cut_off_is_made_anew(tmp_path: Path) -> None:
    """It is only a cache."""
    SortedIndexes(tmp_path, 0, "x").of(["seg"], made)
    path = next(tmp_path.iterdir())
    path.write_bytes(path.read_bytes()[:40])

    assert found(SortedIndexes(tmp_path, 0, "x").of(["seg"], made)) == found(made())


def test_indexes_go_with_their_segments(tmp_path: Path) -> None:
    """Also those that another process has made, of this side only, those of another comparison, and any cut off."""
    for number, compared in ((0, "x"), (0, "y"), (1, "x")):
        for name in ("kept", "gone"):
            SortedIndexes(tmp_path, number, compared).of([name], made)
    for path in list(tmp_path.glob("s0-*")):
        path.with_name(f"{path.name}.12.34").touch()
    SortedIndexes(tmp_path, 0, "x").keep({"kept"})

    assert sorted((p.name[:2], p.name.split("-", 2)[2]) for p in tmp_path.iterdir()) == [
        ("s0", "kept"), ("s1", "gone"), ("s1", "kept"),
    ]  # fmt: skip
