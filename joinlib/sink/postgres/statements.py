"""The SQL of a table that takes results. Pure: names are quoted, and values are parameters.

The staging table has columns of its own names, so that they are in nobody's way:

    part bigint, weight bigint, c0, c1, ...     one row for each result row; weight -1: its key is to be deleted
"""

from joinlib.postgres.connection import quoted
from joinlib.sink.postgres.config import PostgresSinkConfig

_BATCHES = "streamjoin_batches"
STAGED = "streamjoin_staged_"  # what names of staging tables begin with
PART, WEIGHT = "part", "weight"


def batches(schema: str) -> str:
    """Return the name of the table that knows which batches are there."""
    return f"{quoted(schema)}.{quoted(_BATCHES)}"


def make_batches(schema: str) -> str:
    return (
        f"CREATE TABLE IF NOT EXISTS {batches(schema)} (job text, target text, run text NOT NULL,"
        " batch bigint NOT NULL, mark text NOT NULL, written_at timestamptz NOT NULL DEFAULT now(),"
        " PRIMARY KEY (job, target))"
    )


def know(schema: str) -> str:
    """Make the row of a job ($1) and table ($2), if there is none."""
    return (
        f"INSERT INTO {batches(schema)} (job, target, run, batch, mark) VALUES ($1, $2, '', -1, '')"
        " ON CONFLICT DO NOTHING"
    )


def look(schema: str) -> str:
    """Read the row of a job ($1) and table ($2), which nobody else changes until the transaction ends."""
    return f"SELECT run, batch, mark FROM {batches(schema)} WHERE job = $1 AND target = $2 FOR UPDATE"


def take(schema: str) -> str:
    """Make a run ($3) the one that writes."""
    return f"UPDATE {batches(schema)} SET run = $3 WHERE job = $1 AND target = $2"


def note(schema: str) -> str:
    """Say that batch $3, which has read $4, is in the table."""
    return f"UPDATE {batches(schema)} SET batch = $3, mark = $4, written_at = now() WHERE job = $1 AND target = $2"


def end(schema: str) -> str:
    """Read which batch of a job ($1) is the last in a table ($2), and the transaction behind whose rows later ones come."""
    return f"SELECT batch, xmin::text::bigint FROM {batches(schema)} WHERE job = $1 AND target = $2"


def rows(target: PostgresSinkConfig, behind: int | None) -> str:
    """Select the rows of the table: all, or those that transactions behind this one have written.

    A job's transactions come one after the other, so each has a later number than those before. By its age, a number is
    compared across the point where they begin again.
    """
    columns = [f"CAST({quoted(c.name)} AS {c.staged}) AS {quoted(c.name)}" for c in target.columns]
    where = "" if behind is None else f" WHERE age(xmin) < age('{behind:d}'::xid)"
    return f"SELECT {', '.join(columns)} FROM {_table(target)}{where}"


def staging(target: PostgresSinkConfig) -> str:
    return f"{quoted(target.schema)}.{quoted(target.staging)}"


def make_staging(target: PostgresSinkConfig) -> str:
    columns = [f"c{n} {c.staged}" for n, c in enumerate(target.columns)]
    types = [f"{PART} bigint NOT NULL", f"{WEIGHT} bigint NOT NULL", *columns]
    return f"CREATE UNLOGGED TABLE {staging(target)} ({', '.join(types)})"


def count(target: PostgresSinkConfig) -> str:
    """Count the rows of each of the parts $1."""
    return f"SELECT {PART}, count(*) FROM {staging(target)} WHERE {PART} = ANY($1) GROUP BY {PART}"


def apply(target: PostgresSinkConfig) -> list[str]:
    """Return the statements that bring the parts $1 into the table."""
    if target.mode == "append":
        return [_insert(target, f"s.{PART} = ANY($1)")]
    return [
        _delete(target),
        f"{_insert(target, f's.{PART} = ANY($1) AND s.{WEIGHT} > 0')} {_replace(target)}",
    ]


def forget(target: PostgresSinkConfig) -> str:
    """Delete part $1."""
    return f"DELETE FROM {staging(target)} WHERE {PART} = $1"


def clear(target: PostgresSinkConfig) -> str:
    return f"TRUNCATE {staging(target)}"


def _table(target: PostgresSinkConfig) -> str:
    return f"{quoted(target.schema)}.{quoted(target.table)}"


def _values(target: PostgresSinkConfig) -> dict[str, str]:
    return {
        column.name: f"CAST(s.c{n} AS {column.cast})" if column.cast else f"s.c{n}"
        for n, column in enumerate(target.columns)
    }


def _insert(target: PostgresSinkConfig, which: str) -> str:
    values = _values(target)
    return (
        f"INSERT INTO {_table(target)} ({', '.join(map(quoted, values))})"
        f" SELECT {', '.join(values.values())} FROM {staging(target)} AS s WHERE {which}"
    )


def _delete(target: PostgresSinkConfig) -> str:
    values = _values(target)
    same = " AND ".join(f"t.{quoted(name)} = {values[name]}" for name in target.key)
    return (
        f"DELETE FROM {_table(target)} AS t USING {staging(target)} AS s"
        f" WHERE s.{PART} = ANY($1) AND s.{WEIGHT} < 0 AND {same}"
    )


def _replace(target: PostgresSinkConfig) -> str:
    others = [quoted(c.name) for c in target.columns if c.name not in target.key]
    key = ", ".join(map(quoted, target.key))
    if not others:
        return f"ON CONFLICT ({key}) DO NOTHING"
    return f"ON CONFLICT ({key}) DO UPDATE SET {', '.join(f'{name} = EXCLUDED.{name}' for name in others)}"
