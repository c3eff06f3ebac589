"""Admission is fair, bounded, and starves nobody."""

from hypothesis import given
from hypothesis import strategies as st

from joinlib.source import Slice, admit

Weights = dict[str, list[int]]
WEIGHTS = st.dictionaries(st.sampled_from("abc"), st.lists(st.integers(1, 9), max_size=8))


def slices_of(weights: Weights, files: int = 10**9) -> object:
    """Every `files` slices are one file."""
    return lambda name, start, stop: [
        Slice(i, None, weights[name][i], path=f"f{i // files}") for i in range(start, stop)
    ]


def step(
    weights: Weights, start: dict[str, int], max_rows: int, max_files: int | None = None, per_file: int = 1
) -> dict[str, int]:
    known = {name: len(w) for name, w in weights.items()}
    return admit(known, start, slices_of(weights, per_file), max_rows, dict.fromkeys(weights, max_files))


@given(WEIGHTS, st.integers(1, 40))
def test_bounded_and_nobody_starves(weights: Weights, max_rows: int) -> None:
    """All that have a slice get one; beyond those first ones the batch stays within its rows; it ends up at the end."""
    start = dict.fromkeys(weights, 0)
    for _ in range(30):
        stop = step(weights, start, max_rows)
        taken = {n: weights[n][start[n] : stop[n]] for n in weights}
        assert all(taken[n] for n in weights if start[n] < len(weights[n]))
        assert sum(map(sum, taken.values())) <= max(max_rows, sum(t[0] for t in taken.values() if t))
        start = stop
    assert start == {n: len(w) for n, w in weights.items()}


@given(WEIGHTS, st.integers(1, 40))
def test_fair(weights: Weights, max_rows: int) -> None:
    """An input with more to give has no less than another, but for the last two slices."""
    stop = step(weights, {}, max_rows)
    rows = {n: sum(weights[n][: stop[n]]) for n in weights}
    for left in weights:
        if stop[left] < len(weights[left]):
            assert all(rows[left] + 2 * 9 >= rows[right] for right in weights)


def test_an_unused_share_goes_to_the_others() -> None:
    """A short input leaves its rows to a long one."""
    assert step({"a": [1] * 2, "b": [1] * 100}, {}, 50) == {"a": 2, "b": 48}


def test_files_per_batch() -> None:
    """`max_files` counts files, not slices, and lets the first one through whole."""
    assert step({"a": [1] * 9}, {"a": 1}, 100, max_files=2, per_file=3) == {"a": 6}


def test_bytes_per_batch() -> None:
    """`max_bytes` bounds an input's slices, but lets a first one through whatever it has; others go on."""
    slices = {"a": [5, 5, 5], "b": [50, 1]}

    def slices_of(name: str, start: int, stop: int) -> list[Slice]:
        return [Slice(i, None, 1, size=slices[name][i]) for i in range(start, stop)]

    found = admit({"a": 3, "b": 2}, {}, slices_of, 100, {}, {"a": 10, "b": 10})
    assert found == {"a": 2, "b": 1}
