"""All rows of some tables at one moment, and which transactions they hold.

    slot is made ─► wait until all transactions have ended that may have begun before ─► REPEATABLE READ: rows

SQL's function to make a slot exports no snapshot, so we take one of our own, later. What was committed in
between is in both, and left out of the log: by transaction (`Snapshot`), so that not even an old value is
seen again. Nothing is in neither: a transaction whose commit lies before the slot's position has a number that
was given before the slot was there. All of these have ended, in the eyes of the server and not only in
its log, before the snapshot is taken; so the snapshot holds it. (A commit that waits for a synchronous standby
is in the log long before it has ended.)
"""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from joinlib.errors import NotReady
from joinlib.model.inputs import UNCHANGED, WEIGHT
from joinlib.postgres.connection import batches
from joinlib.source.postgres.catalog import Published
from joinlib.source.postgres.decode import Snapshot, Target
from joinlib.source.postgres.slot import position
from joinlib.source.postgres.table import conform, listed
from joinlib.source.slices import BATCH_ROWS

_PAUSE_S = 0.05
_XMIN = "pg_snapshot_xmin(pg_current_snapshot())::text::bigint"


def wait(cursor: Any, place: str, patience_s: float, sleep: Callable[[float], None] = time.sleep) -> None:
    """Wait until every transaction that has a number by now has ended.

    We take a number ourselves to know how far numbers were given: a snapshot's xmax says only how far they
    have ended.

    Raises:
        NotReady: One goes on for longer than the patience.
    """
    ours = _one(cursor, "SELECT pg_current_xact_id()::text::bigint")
    end = time.monotonic() + patience_s
    while _one(cursor, f"SELECT {_XMIN}") < ours:
        if time.monotonic() > end:
            raise NotReady(f"{place}: {oldest(cursor)} has not ended for {patience_s:g} s; {_END_IT}")
        sleep(_PAUSE_S)


_END_IT = "a snapshot needs that: end it (or raise `patience`) and run again"


def oldest(cursor: Any) -> str:
    """Return the words for the transaction that has run for longest."""
    pid = _one(
        cursor,
        "SELECT (SELECT pid FROM pg_stat_activity WHERE backend_xid IS NOT NULL AND pid <> pg_backend_pid()"
        " ORDER BY xact_start LIMIT 1)",
    )
    return f"the transaction of process {pid}" if pid else "a transaction"


def taken(cursor: Any) -> Snapshot:
    """Begin a transaction, whose end is the caller's, and return what its statements see."""
    cursor.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    cursor.execute("SELECT pg_current_snapshot()::text, pg_current_wal_insert_lsn()::text")
    (text,), (until,) = (c.to_pylist() for c in cursor.fetch_arrow_table().columns)
    return Snapshot.parsed(text, position(until))


def rows(cursor: Any, tables: Sequence[Published]) -> Iterator[tuple[Target, pa.RecordBatch]]:
    """Yield the rows of the tables, as the transaction sees them."""
    for table in tables:
        target = table.target
        cursor.execute(f"SELECT {listed(target.schema)} FROM {table.source}")
        for batch in batches(cursor):
            plain = conform(target.place, batch, target.schema)
            for at in range(0, plain.num_rows, BATCH_ROWS):
                yield target, _weighted(target, plain.slice(at, BATCH_ROWS))


def _weighted(target: Target, plain: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows that came: each value was sent."""
    numbers = {UNCHANGED: 0, WEIGHT: 1}
    made = [
        pa.repeat(pa.scalar(numbers[n], pa.int64()), plain.num_rows)
        for n in target.rows.names
        if n in numbers
    ]
    return pa.RecordBatch.from_arrays([*plain.columns, *made], schema=target.rows)


def _one(cursor: Any, sql: str) -> Any:
    cursor.execute(sql)
    return cursor.fetch_arrow_table().column(0)[0].as_py()
