"""How is a PostgreSQL server reached? What inputs, tables and outputs share: one configuration, one way to connect.

    config       where it is; no secret, no client
    connection   a connection of one's own, or the one that this process keeps; transient errors repeated
    said         what of an error's text is safe to repeat

The driver (ADBC) is loaded on the first connection.
"""

from joinlib.postgres.config import PostgresConfig

__all__ = ["PostgresConfig"]
