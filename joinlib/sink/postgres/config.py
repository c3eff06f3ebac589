"""The table that takes results: plain values, without a client."""

from dataclasses import dataclass
from typing import Literal

from joinlib.postgres import PostgresConfig


@dataclass(frozen=True)
class OutputDatabase(PostgresConfig):
    """Where the output's table is."""

    @property
    def place(self) -> str:
        return "output"


@dataclass(frozen=True)
class StagedColumn:
    """A column of the result, and how it gets from the staging table into the table."""

    name: str  # in the result and in the table
    staged: str  # its type in the staging table
    cast: str | None = None  # the table's type, where only an explicit cast gets there


@dataclass(frozen=True)
class PostgresSinkConfig:
    """The table, and what a run learns about it when it starts. It holds no secret."""

    database: OutputDatabase
    mode: Literal["append", "upsert"]
    key: tuple[str, ...]
    schema: str = ""  # of the database: where the table is
    table: str = ""  # its name there
    staging: str = ""  # the run's table, in the same schema
    columns: tuple[StagedColumn, ...] = ()
