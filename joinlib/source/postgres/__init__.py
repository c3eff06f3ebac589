"""Tables of PostgreSQL that change, as inputs: a snapshot of the table, then the changes of its log (pgoutput).

    slot ──peek──► messages ──wire──► tuples ──columns──► rows ──spool──► slices      in the driver, by `feed`
                                                            │
                                                          reader ──► rows             in any process

    catalog    does the server allow it, and does the table fit what is declared?
    slot       the SQL functions of a replication slot: create, peek, advance
    snapshot   all rows at one moment, and which transactions they hold
    relation   what a message says of a table's columns
    wire       the messages' bytes, walked by compiled loops; pure
    columns    texts of values become columns of the declared types; pure
    decode     messages of one peek become rows of each input; pure
    spool      rows on the disk, and the log of what lies there
    feed       one slot and all inputs over it: snapshot, peek, spool, log, advance

Law: the rows of the snapshot and of the log together are the table, at each commit that was read: every
transaction counts once, and one that was rolled back never. What was spooled is read again as it is; the
slot moves on only over what is in the log.
"""

from joinlib.source.postgres.config import PostgresLogConfig

__all__ = ["PostgresLogConfig"]
