"""The nested loop: compares every probe with every stored row.

Law: its result is by definition what any index must find. O(probes * rows) time, and the memory of one frame.
"""

from collections.abc import Iterator, Sequence

import numba as nb
import numpy as np
import numpy.typing as npt

from joinlib.arrays import I32, I64

_KEPT = {
    "<": (1, 0, 0),
    "<=": (1, 1, 0),
    ">": (0, 0, 1),
    ">=": (0, 1, 1),
    "<>": (1, 0, 1),
}  # less, same, more


def pairs(
    probes: Sequence[I64], stored: Sequence[I64], signs: Sequence[str], count: int, rows: int, limit: int
) -> Iterator[tuple[I32, I32]]:
    """Yield pairs (probe, row) for which every comparison holds, ordered by probe.

    probes, stored: words, one array for each comparison; without comparisons, all pairs are yielded.
    count: number of probes. rows: number of stored rows. limit: maximum number of pairs per frame.
    """
    kept = np.array([_KEPT[s] for s in signs], np.bool_).reshape(-1, 3)
    one, two = _table(probes, count), _table(stored, rows)
    probe, row, room = 0, 0, min(limit, count * rows)
    while probe < count and room:
        positions, found = np.empty(room, np.int32), np.empty(room, np.int32)
        filled, probe, row = _fill(one, two, kept, probe, row, positions, found)
        if filled:
            yield positions[:filled], found[:filled]


def _table(columns: Sequence[I64], rows: int) -> I64:
    return np.stack(columns) if columns else np.empty((0, rows), np.int64)


@nb.njit(cache=True, inline="always")
def _holds(probes: I64, stored: I64, kept: npt.NDArray[np.bool_], probe: int, row: int) -> bool:
    for i in range(kept.shape[0]):
        a, b = probes[i, probe], stored[i, row]
        if not (kept[i, 0] if a < b else kept[i, 1] if a == b else kept[i, 2]):
            return False
    return True


@nb.njit(cache=True, nogil=True)
def _fill(
    probes: I64,
    stored: I64,
    kept: npt.NDArray[np.bool_],
    probe: int,
    row: int,
    out_probes: I32,
    out_rows: I32,
) -> tuple[int, int, int]:
    """Fill the arrays from (probe, row) on; return the number of pairs and where to resume."""
    filled, room = 0, out_rows.shape[0]
    while probe < probes.shape[1]:
        while row < stored.shape[1]:
            if _holds(probes, stored, kept, probe, row):
                if filled == room:
                    return filled, probe, row
                out_probes[filled] = probe
                out_rows[filled] = row
                filled += 1
            row += 1
        row = 0
        probe += 1
    return filled, probe, row
