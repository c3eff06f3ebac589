"""One run of two, without sorting. Law: the very arrays of a run that is built of the rows of both. O(n)."""

import numba as nb
import numpy as np
import numpy.typing as npt

from joinlib.index.permuted import Run, frozen

I64 = npt.NDArray[np.int64]
I32 = npt.NDArray[np.int32]


def merge(older: Run, newer: Run) -> Run:
    """The rows of `newer` are numbered behind those of `older`."""
    if older.shape != newer.shape:
        raise ValueError(f"{older.shape} and {newer.shape} are not runs of one join")
    groups, starts, old_starts, new_starts = _groups(older, newer)
    rows, dimensions = older.rows + newer.rows, len(older.values)
    values = np.empty((dimensions, rows), np.int64)
    order = np.empty(rows, np.int32)
    perms, places = np.empty((2, dimensions - 1, rows), np.int32)
    for d in range(dimensions):
        old, new = interleave(older.values[d], old_starts, newer.values[d], new_starts)
        values[d, old], values[d, new] = older.values[d], newer.values[d]
        if d == 0:
            first_old, first_new = old, new
            order[old], order[new] = older.order, newer.order + older.rows
        else:
            perms[d - 1, old], perms[d - 1, new] = (
                first_old[older.perms[d - 1]],
                first_new[newer.perms[d - 1]],
            )
            places[d - 1, first_old], places[d - 1, first_new] = (
                old[older.places[d - 1]],
                new[newer.places[d - 1]],
            )
    return frozen(Run(older.shape, values, order, perms, places, groups, starts))


def _groups(older: Run, newer: Run) -> tuple[I64 | None, I32, I32, I32]:
    """Groups of both, where they start in the merged run, and where in each."""
    if older.groups is None or newer.groups is None:
        return None, np.array([0, older.rows + newer.rows], np.int32), older.starts, newer.starts
    groups = np.union1d(older.groups, newer.groups)
    old, new = (
        np.append(run.starts[np.searchsorted(run.groups, groups)], run.rows).astype(np.int32)
        for run in (older, newer)
        if run.groups is not None
    )
    return groups, old + new, old, new


@nb.njit(cache=True, nogil=True)
def interleave(older: I64, old_starts: I32, newer: I64, new_starts: I32) -> tuple[I32, I32]:
    """Where each value of both goes; of equal ones the older first."""
    to_old, to_new = np.empty(older.shape[0], np.int32), np.empty(newer.shape[0], np.int32)
    at = 0
    for g in range(old_starts.shape[0] - 1):
        i, j = old_starts[g], new_starts[g]
        i_end, j_end = old_starts[g + 1], new_starts[g + 1]
        while i < i_end or j < j_end:
            if j == j_end or (i < i_end and older[i] <= newer[j]):
                to_old[i] = at
                i += 1
            else:
                to_new[j] = at
                j += 1
            at += 1
    return to_old, to_new
