"""How fast is PostgreSQL's log read? `bench/postgres_log.py [--changes N]` prints changes a second.

A server on this machine takes three kinds of changes of a table of ten columns: insertions by one statement,
updates in transactions of one row, updates under REPLICA IDENTITY FULL. For each it is measured, with one core
of ours (CPU seconds of this process beside the wall clock, in which the server decodes, too):

    peek     the messages arrive
    decode   messages become rows of columns, from memory
    look     all of it: peek, decode, spool (synced), log, advance; in as many looks as it takes
    read     a map task reads the spooled rows
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

sys.path[:0] = [str(Path(__file__).parents[1])]

from joinlib.postgres.connection import opened  # noqa: E402
from joinlib.source.postgres import slot  # noqa: E402
from joinlib.source.postgres.decode import LogDecoder, Snapshot, Target  # noqa: E402
from tests.postgres.database import PASSWORD, USER, Database  # noqa: E402
from tests.postgres.replica import Replica, plan  # noqa: E402

SCHEMA = pa.schema([
    ("id", pa.int64()), ("customer", pa.int64()), ("status", pa.string()), ("amount", pa.decimal128(12, 2)),
    ("rate", pa.float64()), ("at", pa.timestamp("us", "UTC")), ("day", pa.date32()), ("paid", pa.bool_()),
    ("name", pa.string()), ("n", pa.int32()),
])  # fmt: skip
TABLE = """CREATE TABLE orders (id bigint PRIMARY KEY, customer bigint, status text, amount numeric(12,2),
  rate double precision, at timestamptz, day date, paid boolean, name text, n int)"""
ROW = "i, i % 1000, 'status ' || i % 7, i * 0.01, i / 3.0, now(), current_date, i % 2 = 0, md5(i::text), i"
LOOP = "DO $$ BEGIN FOR i IN 1..{n} LOOP UPDATE orders SET n = n + 1 WHERE id = i; COMMIT; END LOOP; END $$"
KINDS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "insertions, one transaction": ("INSERT INTO orders SELECT {row} FROM generate_series(1, {n}) i", "DEFAULT", ("id",)),
    "updates, one a transaction": (LOOP, "DEFAULT", ("id",)),
    "updates, old rows whole": ("UPDATE orders SET n = n + 1 WHERE id <= {n}", "FULL", ()),
}  # fmt: skip


def timed(what: str, changes: int, run: Callable[[], Any]) -> Any:
    wall, cpu = time.perf_counter(), time.process_time()
    found = run()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(
        f"  {what:8} {changes / wall:12,.0f} changes/s   {changes / max(cpu, 1e-9):12,.0f} a second of our CPU"
    )
    return found


def measure(server: Database, kind: str, changes: int, folder: Path) -> None:
    statement, identity, key = KINDS[kind]
    server.execute(f"ALTER TABLE orders REPLICA IDENTITY {identity}")
    asked = plan(server, "orders", SCHEMA, "bench", key)
    replica = Replica(folder, [asked])
    known = replica.inputs["orders"]
    before = known.discover()
    server.execute(statement.format(n=changes, row=ROW))
    print(kind)
    target = Target(asked.config, SCHEMA, ("public", "orders"))
    with opened(asked.config.server) as connection, connection.cursor() as cursor:
        state = slot.state(cursor, "bench")
        assert state.at is not None
        found = timed(
            "peek", changes, lambda: list(slot.peek(cursor, "bench", "p", state.flushed, 2**31 - 1))
        )
    for warm in (True, False):  # the first run compiles
        decoder = LogDecoder([target], state.at, Snapshot(0, 0, (), 0))

        def decode(decoder: LogDecoder = decoder) -> int:
            return sum(rows.num_rows for messages in found for _, rows in decoder.decode(messages))

        decode() if warm else timed("decode", changes, decode)
    timed("look", changes, lambda: drained(known, before))
    slices = known.slices(before, known.discover())
    timed("read", changes, lambda: [b.num_rows for b in known.reader.read_many(slices, SCHEMA.names)])
    server.execute("SELECT pg_drop_replication_slot('bench')::text")


def drained(known: Any, before: int) -> None:
    while (after := known.discover()) > before:
        before = after


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--changes", type=int, default=300_000)
    changes = parser.parse_args().changes
    settings = {"wal_level": "logical", "log_statement": "none"}
    with Database(**settings, max_wal_size="4GB") as server, tempfile.TemporaryDirectory() as folder:
        os.environ["PGPASSWORD"] = PASSWORD
        server.execute(f"ALTER ROLE {USER} REPLICATION", as_superuser=True)
        server.execute(TABLE)
        server.execute("CREATE PUBLICATION p FOR TABLE orders")
        for n, kind in enumerate(KINDS):
            measure(server, kind, changes, Path(folder) / str(n))


if __name__ == "__main__":
    main()
