"""Counts what the probes of one batch do, while they run: of every 8th chunk of new rows, and of what it becomes.

This costs some additions per chunk and one write per pair found.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Self, TypeVar

import numpy as np
import pyarrow as pa

from joinlib.arrays import I32, I64
from joinlib.expr import Column
from joinlib.index.kernels import touch
from joinlib.join.rows import Positions, Rows, Tuples

EVERY = 8  # chunks, of which one is counted
LEAST = 8192  # rows of a counted piece that is cut out of a larger chunk: each piece searches all runs
T = TypeVar("T", int, float)
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


@dataclass
class ProbeCounts:
    """What was counted since a cycle began. The pair <l, r> is at l * (arrangements) + r.

    asked: tuples that probed (q of equation 9). hit: those that found something (m).
    found: the tuples that they found (s of equation 10).
    spent: seconds, by the input whose rows probe. rows: the number of these rows.
    asking: the part of all seconds that was spent in the index.
    """

    asked: list[int]
    hit: list[int]
    found: list[int]
    spent: list[float]
    rows: list[int]
    asking: float = 0.0

    @classmethod
    def none(cls, inputs: int, arrangements: int) -> Self:
        """Return the counts at the beginning of a cycle."""
        pairs = inputs * arrangements
        return cls([0] * pairs, [0] * pairs, [0] * pairs, [0.0] * inputs, [0] * inputs)

    @classmethod
    def read(cls, raw: list[Any]) -> Self:
        """Return the inverse of `plain`; counting on leaves `raw` as it is."""
        asked, hit, found, spent, rows, asking = raw
        return cls(list(asked), list(hit), list(found), list(spent), list(rows), asking)

    def and_later(self, others: Iterable["ProbeCounts"]) -> "ProbeCounts":
        """Return the counts with those of later levels, whose tuples come of the same new rows."""
        every = [self, *others]

        def total(figures: Callable[[ProbeCounts], list[T]]) -> list[T]:
            return [sum(line[1:], line[0]) for line in zip(*map(figures, every), strict=True)]

        return ProbeCounts(
            total(lambda c: c.asked),
            total(lambda c: c.hit),
            total(lambda c: c.found),
            total(lambda c: c.spent),
            self.rows,
            sum(c.asking for c in every),
        )

    def plain(self) -> list[Any]:
        """Return the counts in JSON's types; an empty list if there are none."""
        if not any(self.rows):
            return []
        seconds = [round(spent, 6) for spent in self.spent]
        return [self.asked, self.hit, self.found, seconds, self.rows, round(self.asking, 6)]


class Watch:
    """ProbeCounts on, in the chunks of one operator and batch.

    every: of so many chunks of an input one is counted. turns: the chunks of each input so far.
    """

    def __init__(self, counts: ProbeCounts, turns: list[int], every: int) -> None:
        self.counts, self.turns, self.every = counts, turns, every
        self.origin: int | None = None  # whose new rows are counted now

    @property
    def counting(self) -> bool:
        """Whether what runs now is counted."""
        return self.origin is not None

    def pieces(self, origin: int, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield a chunk of new rows of an input, whole or in pieces; while the caller is at some, all is counted.

        Of a chunk with many rows one part of `every` is counted, of those with few rows every such one.
        """
        turn, n = self.turns[origin], rows.num_rows
        self.turns[origin] += 1
        if n < LEAST * self.every:
            # In cycles of 1, 2, 4, ... batches with one chunk each, this is the last one of the cycle.
            cuts = [(0, n, (turn + 2) % self.every == 0)]
        else:
            at = turn % self.every
            first, last = n * at // self.every, n * (at + 1) // self.every
            cuts = [(0, first, False), (first, last, True), (last, n, False)]
        for begin, end, counted in cuts:
            if end > begin:
                self.origin = origin if counted else None
                self.counts.rows[origin] += (end - begin) * counted
                yield rows.slice(begin, end - begin)
        self.origin = None

    def searching(self, candidates: Candidates) -> Candidates:
        """Yield the same candidates and measure the time that each takes."""
        started = time.perf_counter()
        for candidate in candidates:
            self.counts.asking += time.perf_counter() - started
            yield candidate
            started = time.perf_counter()
        self.counts.asking += time.perf_counter() - started

    def probing(self, found: Iterator[Tuples], pair: tuple[int | None, int], asked: int) -> Iterator[Tuples]:
        """Count the tuples found and yield them without their `Asker`.

        pair: <l, r>; l None is the input whose rows are counted. asked: the number of tuples that probe. A probe
        that is not exhausted is not counted.
        """
        assert self.origin is not None
        me, pairs, seconds = self.origin, 0, 0.0
        asker, arrangement = pair
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
        counts, width = self.counts, len(self.counts.asked) // len(self.turns)
        at = (me if asker is None else asker) * width + arrangement
        counts.asked[at] += asked
        counts.hit[at] += int(np.count_nonzero(hit))
        counts.found[at] += pairs
        counts.spent[me] += seconds + time.perf_counter() - started
