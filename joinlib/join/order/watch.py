"""Counts what the probes of one batch do, while they run.

This costs some additions per chunk and one write per pair found.
"""

import time
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from joinlib.arrays import I32, I64
from joinlib.expr import Column
from joinlib.index.kernels import touch
from joinlib.join.rows import Positions, Rows, Tuples

Candidates = Iterator[tuple[I32, I32, I64]]


class Asker:
    """For each tuple, the position of the tuple that it was extended from.

    It has no columns, so other readers of the tuples are not affected.
    """

    schema = pa.schema([])

    def __init__(self, positions: Positions) -> None:
        self.positions = positions

    def __len__(self) -> int:
        return len(self.positions)

    def column(self, name: str) -> Column:
        raise KeyError(name)

    def take(self, positions: Positions) -> Rows:
        return Asker(self.positions[positions])


class Watch:
    """Counters of one operator and batch. The pair <i, j> of n inputs, rows of i probing j, is counted at i
    n + j.

    asked: tuples that probed (q of equation 9). hit: those that found something (m).
    found: the tuples that they found (s of equation 10).
    spent: seconds, by the input whose rows probe. rows: the number of these rows.
    asking: the part of all seconds that was spent in the index.
    """

    def __init__(self, inputs: int) -> None:
        self.inputs = inputs
        self.asked, self.hit, self.found = ([0] * inputs**2 for _ in range(3))
        self.spent, self.rows = [0.0] * inputs, [0] * inputs
        self.asking = 0.0
        self.origin = 0

    def begin(self, origin: int, rows: int) -> None:
        """Start counting for `rows` rows of input `origin`, which probe next."""
        self.origin = origin
        self.rows[origin] += rows

    def searching(self, candidates: Candidates) -> Candidates:
        """Yield the same candidates and measure the time that each takes."""
        started = time.perf_counter()
        for candidate in candidates:
            self.asking += time.perf_counter() - started
            yield candidate
            started = time.perf_counter()
        self.asking += time.perf_counter() - started

    def probing(self, found: Iterator[Tuples], side: int, asked: int) -> Iterator[Tuples]:
        """Count the tuples found and yield them without their `Asker`.

        A probe that is not exhausted is not counted.
        """
        me, pairs, seconds = self.origin, 0, 0.0
        hit = np.zeros(asked, np.bool_)
        started = time.perf_counter()
        for tuples in found:
            *parts, askers = tuples.parts
            assert isinstance(askers, Asker)
            tuples.parts = tuple(parts)
            touch(hit, askers.positions)
            pairs += len(askers)
            seconds += time.perf_counter() - started
            yield tuples
            started = time.perf_counter()
        pair = me * self.inputs + side
        self.asked[pair] += asked
        self.hit[pair] += int(np.count_nonzero(hit))
        self.found[pair] += pairs
        self.spent[me] += seconds + time.perf_counter() - started
