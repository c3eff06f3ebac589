"""A table of PostgreSQL that changes, as an input: what a feed has spooled of it."""

import pyarrow as pa

from joinlib.source.postgres.config import PostgresLogConfig
from joinlib.source.postgres.feed import Feed
from joinlib.source.postgres.reader import SpoolReader
from joinlib.source.slices import Slice


class PostgresLogInput:
    """One input of a feed, which it may share with others."""

    def __init__(self, config: PostgresLogConfig, schema: pa.Schema, feed: Feed) -> None:
        self.reader: SpoolReader = SpoolReader(config, schema)
        self._name, self._feed = config.server.name, feed

    def discover(self) -> int:
        return self._feed.discover(self._name)

    def slices(self, start: int, stop: int) -> list[Slice]:
        return self._feed.known.between(self._name, start, stop)

    def forget(self, before: int) -> None:
        """Delete the rows that no batch will read again."""
        self._feed.known.forget(self._name, before)

    def lag(self, start: int = 0) -> dict[str, int]:
        known = self._feed.known.inputs[self._name]
        read = self._feed.known.rows_before(self._name, start)
        return {"slices": known.slices - start, "rows": known.rows - read, "read": read}
