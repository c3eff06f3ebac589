"""Where a PostgreSQL database is, and which table of it is meant: a value that travels, without a client."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class PostgresConfig:
    """Where a table is and how long to wait for it. It holds no secret, only names of variables and files."""

    name: str  # the input's name, for messages
    table: str | None  # "schema.table", or
    query: str | None  # a SELECT
    host: str | None  # host, port, database and user; or
    port: int
    database: str | None
    user: str | None
    uri_env: str | None  # the variable that holds a whole connection string
    password_env: str
    password_file: Path | None
    mode: str  # libpq's sslmode
    ca_file: Path | None
    cert_file: Path | None
    key_file: Path | None
    timeout_us: int  # limit of one query
    patience_us: int  # limit of a call with all its attempts

    @property
    def place(self) -> str:
        """Where the spec names it, for messages."""
        return f"inputs.{self.name}"
