"""Looks joined rows up in tables: the last step of a stage.

Lookups run one after the other, a batch at a time.

    tuples ─► keys ─► version, or cache and database ─► longer tuples ─► if ─► (LEFT: unmatched rows) ─► where
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from joinlib.apart import KeepFailed
from joinlib.chunks import chunked
from joinlib.errors import SpecError
from joinlib.expr import Expr
from joinlib.join.match import passing, satisfying, sound
from joinlib.join.rows import Nulls, Picked, Rows, Tuples, flat
from joinlib.lookup.incremental import FOR_EVER, LookupCache
from joinlib.lookup.task import TableTask
from joinlib.lookup.used import Used
from joinlib.lookup.version import Points, Version
from joinlib.model.joins import Lookup
from joinlib.route.split import block_schema, prepare
from joinlib.worker import Keep, current

Positions = npt.NDArray[np.signedinteger]
_Wanted = tuple[list[pa.Array], Points | None, npt.NDArray[np.bool_]]  # see `_wanted`
_ROWS = 1 << 20  # rows that are looked up together, by one query


class Finder(Protocol):
    """A table that can be searched by key and range."""

    asks: bool  # each call may cost a round trip

    def find(self, keys: list[pa.Array], points: Points | None) -> Iterator[tuple[Positions, Rows]]:
        """Yield pairs (positions of keys, aligned rows of the table) that have
        equal keys and may hold the points.

        Neither keys nor points contain NULLs.
        """
        ...

    def used(self) -> Used:
        """Return how much it was used so far, and what it keeps."""
        ...


class VersionLookup:
    """Searches a version of a table."""

    asks = False

    def __init__(self, version: Version, number: int = 0, budget: int = 0) -> None:
        self.version, self.number, self.budget, self._hits = version, number, budget, 0

    def find(self, keys: list[pa.Array], points: Points | None) -> Iterator[tuple[Positions, Rows]]:
        self._hits += len(next(c for c in (*keys, *(points or ())) if c is not None))
        yield from self.version.find(keys, points)

    def used(self) -> Used:
        kept = self.version
        return Used(self._hits, rows=kept.count, bytes=kept.bytes, budget=self.budget, version=self.number)


class DatabaseLookup:
    """Searches the answers that a database has given so far, and queries the database for the rest."""

    asks = True

    def __init__(
        self,
        task: TableTask,
        cache: LookupCache,
        hash_bits: int,
        now: Callable[[], int] = lambda: time.time_ns() // 1000,
    ) -> None:
        self.task, self.cache, self.hash_bits, self.now = task, cache, hash_bits, now
        self._before = cache.figures

    def find(self, keys: list[pa.Array], points: Points | None) -> Iterator[tuple[Positions, Rows]]:
        now, refresh = self.now(), self.task.lookup.caching.refresh_us
        answer = self.cache.lookup(keys, self._fetch, now, FOR_EVER if refresh is None else now + refresh)
        if len(answer.positions):
            yield answer.positions, Picked(answer.rows)

    def used(self) -> Used:
        kept, before, now = self.cache, self._before, self.cache.figures
        hits = now.hits - before.hits
        return Used(
            hits,
            now.probes - before.probes - hits,
            now.expired - before.expired,
            now.queries - before.queries,
            kept.rows,
            kept.held,
            kept.budget,
        )

    def _fetch(self, keys: list[pa.Array]) -> pa.RecordBatch:
        from joinlib.lookup.postgres import PostgresTable  # loads a driver that other lookups do not need

        lookup, reader = self.task.lookup, self.task.reader
        assert isinstance(reader, PostgresTable)
        columns = [c for c in lookup.key_columns if c is not None]
        return prepare(lookup.table, reader.fetch(columns, keys), 0, self.hash_bits)


def finder(task: TableTask, versions: Mapping[int, int], folder: Path, units: int, hash_bits: int) -> Finder:
    """Return the table as a unit searches it in one batch. `folder`: the unit's folder on this machine."""
    table = task.lookup.table
    if task.full:
        number, ranged = versions.get(table.number, 0), task.lookup.range is not None
        version = _opened((task.version(number), table.keys, hash_bits, ranged))
        return VersionLookup(version, number, task.lookup.caching.budget)
    budget = task.lookup.caching.budget // units
    own = folder / f"table-{table.number}"
    kept: Keep[tuple[Path, int], LookupCache] = current().tables
    cache = kept.made(
        (own, budget), lambda: LookupCache(own, block_schema(table), table.keys, budget, hash_bits)
    )
    return DatabaseLookup(task, cache, hash_bits)


def _opened(which: tuple[Path, tuple[str, ...], int, bool]) -> Version:
    kept: Keep[tuple[Path, tuple[str, ...], int, bool], Version] = current().versions
    return kept.made(which, partial(Version, *which))


def enriched(
    tuples: Iterator[Tuples],
    lookups: Sequence[tuple[Lookup, Finder]],
    reads: frozenset[str],
    failed: KeepFailed | None = None,
) -> Iterator[Tuples]:
    """Return the tuples after all lookups. `reads`: the columns that anything later reads. failed: see `look_up`."""
    for lookup, found in lookups:
        tuples = _each(_together(tuples, reads) if found.asks else tuples, lookup, found, failed)
    return tuples


def _each(
    tuples: Iterator[Tuples], lookup: Lookup, found: Finder, failed: KeepFailed | None
) -> Iterator[Tuples]:
    for some in tuples:
        yield from look_up(some, lookup, found, failed)


def look_up(
    tuples: Tuples, lookup: Lookup, found: Finder, failed: KeepFailed | None = None
) -> Iterator[Tuples]:
    """Do one lookup.

    INNER emits matches, LEFT also unmatched rows with NULLs; SEMI and ANTI filter the tuples.

    failed: takes rows for which what is looked for, or a condition of an INNER one or above it, fails; None: they are an
    error.
    """
    tuples, (keys, points, whole) = _askable(tuples, lookup, failed)
    pairs_failed = failed if lookup.kind == "inner" else None
    places = np.flatnonzero(whole)
    matched, widens = np.zeros(len(tuples), np.bool_), lookup.kind in ("inner", "left")
    for positions, rows in found.find(keys, points):
        at = places[positions]
        if lookup.predicate is None and not widens:
            matched[at] = True
            continue
        longer = Tuples(*tuples.take(at).parts, rows)
        if lookup.predicate is not None:
            mask = passing(longer, lookup.predicate, pairs_failed)
            longer, at = longer.filter(mask), at[mask]
        matched[at] = True
        if widens:
            yield from _out(longer, lookup, failed)
    if not widens:
        kept = np.flatnonzero(matched == (lookup.kind == "semi"))
        yield from _out(tuples.take(kept), lookup, failed)
    if lookup.kind == "left":
        alone = np.flatnonzero(~matched)
        nulls = Nulls(lookup.table.schema, len(alone))
        yield from _out(Tuples(*tuples.take(alone).parts, nulls), lookup, failed)


def _out(tuples: Tuples, lookup: Lookup, failed: KeepFailed | None) -> Iterator[Tuples]:
    kept = satisfying(tuples, lookup.where, failed)
    if len(kept):
        yield kept


def _askable(tuples: Tuples, lookup: Lookup, failed: KeepFailed | None) -> tuple[Tuples, _Wanted]:
    """Return the tuples of which it is known what to look for, and that."""
    try:
        return tuples, _wanted(tuples, lookup)
    except SpecError:
        if failed is None:
            raise
    for value in lookup.asked:
        tuples = tuples.filter(sound(tuples, value, failed, value))
    return tuples, _wanted(tuples, lookup)


def _evaluated(value: Expr, tuples: Tuples) -> pa.Array:
    return flat(value.evaluate(tuples.column, len(tuples)))


def _wanted(tuples: Tuples, lookup: Lookup) -> _Wanted:
    """Return the keys and points to look up, for the rows where none is NULL, and a mask of these rows."""

    def value(expr: Expr | None) -> pa.Array | None:
        return None if expr is None else _evaluated(expr, tuples)

    keys = [_evaluated(e, tuples) for e in lookup.probe]
    x, y = (value(lookup.range.x), value(lookup.range.y)) if lookup.range else (None, None)
    whole = _valid([c for c in (*keys, x, y) if c is not None])
    if not whole.all():
        mask = pa.array(whole)
        keys = [k.filter(mask) for k in keys]
        x, y = _kept(x, mask), _kept(y, mask)
    return keys, ((x, y) if lookup.range else None), whole


def _kept(column: pa.Array | None, mask: pa.Array) -> pa.Array | None:
    return None if column is None else column.filter(mask)


def _valid(keys: list[pa.Array]) -> npt.NDArray[np.bool_]:
    valid = keys[0].is_valid()
    for key in keys[1:]:
        valid = pc.and_(valid, key.is_valid())
    return valid.to_numpy(zero_copy_only=False)


def _together(tuples: Iterator[Tuples], reads: frozenset[str]) -> Iterator[Tuples]:
    """Merge the tuples to as few chunks as memory allows, so that the
    database is queried for many rows at once.

    Columns are put in one order: joins emit their sides in the order in which they were probed.
    """
    for group in chunked((_flat(some, reads) for some in tuples), len, _ROWS):
        yield Tuples(Picked(pa.concat_batches(group)))


def _flat(some: Tuples, reads: frozenset[str]) -> pa.RecordBatch:
    fields = dict(sorted((f.name, f) for p in some.parts for f in p.schema if f.name in reads))
    # A column of no type keeps the number of rows where nothing is read.
    columns = [*(flat(some.column(n)) for n in fields), pa.nulls(len(some))]
    return pa.record_batch(columns, [*fields, "$rows"])
