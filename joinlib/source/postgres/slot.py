"""A replication slot by SQL functions: the server keeps its log for us from the slot's position on.

A peek gives whole transactions in the order of their commits, from the slot's position on, and moves nothing:
it can be repeated. Only `advance` moves the slot, and lets the server drop what lies before. Positions in
the log (LSN) are numbers here.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from joinlib.postgres.connection import batches, literal

PLUGIN = "pgoutput"


@dataclass(frozen=True)
class SlotState:
    """What the server knows of a slot, and how far its log reaches."""

    flushed: int
    exists: bool
    plugin: str | None
    database: str | None
    here: bool  # it is of the database that we are connected to
    active_pid: int | None  # the process of the server that uses it now
    lost: bool  # the server dropped log that the slot still needed
    at: int | None  # the slot's position; None if it is still being made


def position(text: str) -> int:
    """Return the number of a position such as 0/16B3748."""
    high, low = text.split("/")
    return (int(high, 16) << 32) + int(low, 16)


def text(position: int) -> str:
    """Return a position as the server writes it."""
    return f"{position >> 32:X}/{position & 0xFFFFFFFF:X}"


def state(cursor: Any, slot: str) -> SlotState:
    """Return the state of a slot."""
    cursor.execute(
        "SELECT pg_current_wal_flush_lsn()::text AS flushed, s.slot_name IS NOT NULL AS there, s.plugin::text,"
        " s.database::text, s.database IS NOT DISTINCT FROM current_database() AS here, s.active_pid,"
        " s.wal_status = 'lost' AS lost, s.confirmed_flush_lsn::text AS at"
        f" FROM (SELECT 1) AS one LEFT JOIN pg_replication_slots s ON s.slot_name = {literal(slot)}"
    )
    (row,) = cursor.fetch_arrow_table().to_pylist()
    at = row["at"] and position(row["at"])
    return SlotState(
        position(row["flushed"]), row["there"], row["plugin"], row["database"], row["here"], row["active_pid"],
        bool(row["lost"]), at,
    )  # fmt: skip


def create(cursor: Any, slot: str) -> None:
    """Make a slot; waits for the transactions that are running."""
    cursor.execute(f"SELECT pg_create_logical_replication_slot({literal(slot)}, '{PLUGIN}')::text")
    cursor.fetch_arrow_table()


def peek(cursor: Any, slot: str, publication: str, upto: int, most: int) -> Iterator[pa.BinaryArray]:
    """Yield the messages of the transactions that were committed before position `upto`.

    Ends after the transaction with which there are `most` messages or more.
    """
    names = literal('"' + publication.replace('"', '""') + '"')
    cursor.execute(
        f"SELECT data FROM pg_logical_slot_peek_binary_changes({literal(slot)}, '{text(upto)}', {most},"
        f" 'proto_version', '1', 'publication_names', {names})"
    )
    for batch in batches(cursor):
        yield batch.column(0)


def advance(cursor: Any, slot: str, to: int) -> None:
    """Move a slot: what lies before can no longer be peeked."""
    cursor.execute(f"SELECT (pg_replication_slot_advance({literal(slot)}, '{text(to)}')).end_lsn::text")
    cursor.fetch_arrow_table()
