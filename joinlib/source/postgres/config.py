"""Which table is read by which slot, and what a change of it means."""

from dataclasses import dataclass

from joinlib.postgres import PostgresConfig

MOST_COLUMNS = 63  # of a schema whose `$unchanged` is one number


@dataclass(frozen=True)
class PostgresLogConfig:
    """One table as an input. Frozen, picklable; names where secrets lie and holds none.

    With a key, rows are upserts: +1 is from now on the row of its key, -1 says that the key is deleted. Without
    one, rows are whole: -1 takes a row back that was sent before.
    """

    server: PostgresConfig  # its name is the input's; it names a table
    slot: str
    publication: str
    key: tuple[str, ...] = ()

    @property
    def table(self) -> str:
        """The table, as the spec names it."""
        assert self.server.table is not None
        return self.server.table

    @property
    def upsert(self) -> bool:
        return bool(self.key)
