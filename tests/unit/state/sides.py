"""One unit with one side, driven by hand."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa

from joinlib.model.side import SideConfig
from joinlib.model.tuning import Tuning
from joinlib.state.manifest import Manifest, SideManifest, decode, empty
from joinlib.state.side import Arrival, Side
from joinlib.state.unit import Unit, hold
from joinlib.worker import current

UTC = pa.timestamp("us", "UTC")
SCHEMA = pa.schema([("$hash", pa.uint64()), ("a.v", pa.int64()), ("a.t", UTC)])
MARKED = SideConfig(0, SCHEMA, ("a.v",), "a.t", 10, True)
FOREVER = SideConfig(0, SCHEMA, ("a.v",), None, None, True)
SMALL = Tuning(
    file_bytes=0,
    seal_rows=5,
    merge_segments=2,
    max_segments=8,
    max_runs=2,
    retain_batches=1,
    levelled=True,
    fanout=2,
    piece_bytes=60,
)


class Store:
    """The state of one unit as Spark keeps it: a manifest; and folders."""

    def __init__(self, folder: Path, config: SideConfig = MARKED, tuning: Tuning = SMALL) -> None:
        self.segments, self.indexes, self.config, self.tuning = (
            folder / "segments",
            folder / "indexes",
            config,
            tuning,
        )
        self.saved = empty(1, 1).encode()

    @property
    def manifest(self) -> Manifest:
        return decode(self.saved)

    @property
    def files(self) -> set[str]:
        return {p.name for p in self.segments.iterdir()}

    @contextmanager
    def open(self, new_process: bool = False, run: str = "", swept: bool = True) -> Iterator[Unit]:
        if new_process:
            current().close()
        folders, sides = (self.segments, self.indexes), [self.config]
        with hold(*folders, 0, sides, self.tuning, self.manifest, run, swept) as unit:
            yield unit

    def batch(
        self, n: int, times: Sequence[int], mark: Sequence[int] = (), horizon: int | None = None
    ) -> None:
        """Stores rows (value = time), marks stored rows by value, expires, commits."""
        before = self.manifest
        with hold(self.segments, self.indexes, 0, [self.config], self.tuning, before) as unit:
            self.saved = work(unit, before, n, times, mark, horizon).encode()

    def content(self) -> list[tuple[int, bool]]:
        """(value, marked) of every row, by value: a run that is sorted has them in another order."""
        with self.open() as unit:
            unit.sides[0].check()
            return content(unit.sides[0])


def work(
    unit: Unit,
    before: Manifest,
    n: int,
    times: Sequence[int],
    mark: Sequence[int] = (),
    horizon: int | None = None,
) -> Manifest:
    side = unit.sides[0]
    if times:
        side.insert(n, Arrival(rows(times)))
    for live in side.runs if mark else ():
        values = np.concatenate([b.column("a.v").to_numpy() for b in live.batches])
        side.mark(live, np.flatnonzero(np.isin(values, mark)).astype(np.int32))
    if horizon is not None:
        side.expire(horizon)
    return unit.commit(before, n)


def rows(times: Sequence[int]) -> pa.RecordBatch:
    hashes = pa.array([t * 0x9E3779B97F4A7C15 % 2**64 for t in times], pa.uint64())
    return pa.record_batch([hashes, pa.array(times, pa.int64()), pa.array(times, UTC)], SCHEMA)


def newest(side: SideManifest) -> int:
    """Segments of the head and of marks: those of sealed runs become as many as their rows need."""
    return sum(len(r.segments) for r in side.runs if not r.sealed) + len(side.marks)


def content(side: Side) -> list[tuple[int, bool]]:
    return sorted(
        (v, bool(m))
        for live in side.runs
        for v, m in zip(
            (v for b in live.batches for v in b.column("a.v").to_pylist()), live.index.marks, strict=True
        )
    )
