"""Decides how far the next batch reads: whole slices, at most `max_rows` rows, a fair share for every input.

Fair: the next slice always goes to the input with the fewest rows so far, so what one input leaves unused
is shared by the others (max-min fairness). No input starves: one with a backlog gets at least one slice,
even beyond `max_rows` and however large. Pure, so planning a batch again gives the same batch. Cost:
O(slices admitted * log inputs).

Inputs are not kept in step by event time: the rows of one that is far ahead of the others wait
in the state for partners.
"""

import heapq
from collections.abc import Callable, Iterator, Mapping

from joinlib.source.slices import Slice

SlicesOf = Callable[[str, int, int], list[Slice]]  # (input, start, stop)

_AHEAD = 64  # slices fetched at once: a backlog may be long


def admit(
    known: Mapping[str, int],
    start: Mapping[str, int],
    slices_of: SlicesOf,
    max_rows: int,
    max_files: Mapping[str, int | None],
    max_bytes: Mapping[str, int | None] | None = None,
) -> dict[str, int]:
    """Return the offset after the next batch, for every input of `known`.

    Args:
        known: The number of slices known, by input.
        start: The offset of the batch before, by input.
        slices_of: Returns the slices [start, stop) of an input.
        max_rows: The most rows of the batch, over all inputs.
        max_files: The most files of the batch, by input; None means no limit.
        max_bytes: The most bytes of the batch, by input; None means no limit.
    """
    offsets = {name: start.get(name, 0) for name in known}
    sizes = max_bytes or {}
    waiting = {
        name: _within(
            _backlog(name, offsets[name], known[name], slices_of, max_files.get(name)), sizes.get(name)
        )
        for name in known
    }
    shares = [(0, i, name) for i, name in enumerate(known)]
    total = 0
    while shares:
        rows, i, name = heapq.heappop(shares)
        slice = next(waiting[name], None)
        if slice is None or (rows and total + slice.weight > max_rows):
            continue  # nothing more of this input: slices are not skipped
        offsets[name] = slice.index + 1
        total += slice.weight
        heapq.heappush(shares, (rows + slice.weight, i, name))
    return offsets


def _backlog(name: str, start: int, stop: int, slices_of: SlicesOf, max_files: int | None) -> Iterator[Slice]:
    """Yield the slices of an input that may come next, until its limit of files is reached."""
    files, path = 0, None
    for at in range(start, stop, _AHEAD):
        for slice in slices_of(name, at, min(at + _AHEAD, stop)):
            files += slice.path != path
            path = slice.path
            if max_files is not None and path and files > max(max_files, 1):
                return
            yield slice


def _within(slices: Iterator[Slice], max_bytes: int | None) -> Iterator[Slice]:
    """Yield slices up to the limit of bytes, and always the first."""
    size = 0
    for slice in slices:
        size += slice.size
        if max_bytes is not None and max_bytes < size != slice.size:
            return
        yield slice
