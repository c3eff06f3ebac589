"""What do the probes of one batch do? Counted while they run: some additions a chunk, one write for each pair found."""

import time
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from joinlib.expr import Column
from joinlib.index.kernels import touch
from joinlib.join.rows import Positions, Rows, Tuples
from joinlib.state.run import I32, I64

Candidates = Iterator[tuple[I32, I32, I64]]


class Asker:
    """Of each tuple, which of those that asked it came from; without columns, so that nobody else sees it."""

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
    """Counters of one operator and batch. The pair <i, j> of n inputs, rows of i that ask j, is counted at i n + j.

    asked: tuples that asked (q of equation 9); hit: those that found something (m); found: what they found (s of equation 10).
    spent: seconds, by the input whose rows ask; rows: how many those were. asking: of all seconds those in the index.
    """

    def __init__(self, inputs: int) -> None:
        self.inputs = inputs
        self.asked, self.hit, self.found = ([0] * inputs**2 for _ in range(3))
        self.spent, self.rows = [0.0] * inputs, [0] * inputs
        self.asking = 0.0
        self.origin = 0

    def begin(self, origin: int, rows: int) -> None:
        """Rows of input `origin` begin to ask."""
        self.origin = origin
        self.rows[origin] += rows

    def searching(self, candidates: Candidates) -> Candidates:
        """The same, with the time that each takes."""
        started = time.perf_counter()
        for candidate in candidates:
            self.asking += time.perf_counter() - started
            yield candidate
            started = time.perf_counter()
        self.asking += time.perf_counter() - started

    def probing(self, found: Iterator[Tuples], side: int, asked: int) -> Iterator[Tuples]:
        """The same, without the askers behind each; counts them. Nothing is counted of a probe that was cut off."""
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
