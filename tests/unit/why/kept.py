"""What a state holds, beside what DuckDB makes of the rows that have come: neither shares code with the other."""

import random
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
from rich.console import Console

from jobs.cli.state import state, stored
from joinlib.spec.model import StreamJoin
from joinlib.why.kept import rows
from tests.unit.why.lived import Files

WIDE = 400
CHANGELOG: Mapping[str, Any] = {"output": {"mode": "changelog", "files": {"path": "out"}}}
ROWS = 15  # of each file


def drawn(files: int = 4) -> Files:
    """Orders by their number, customer and amount, payments by customer; a row each seven seconds, a little out of order."""
    draw = random.Random(7)

    def row(name: str, number: int) -> str:
        at = datetime(2026, 1, 1, 12, tzinfo=UTC) + timedelta(seconds=7 * number + draw.randrange(6))
        customer, amount = draw.choice(["", *"01234"]), draw.choice(["", *map(str, range(20))])
        own = f"{number},{customer}" if name == "orders" else customer
        return f"{own},{amount},{at:%Y-%m-%dT%H:%M:%SZ}"

    names = ("orders", "payments")
    return {n: [[row(n, file * ROWS + at) for at in range(ROWS)] for file in range(files)] for n in names}


def asked(job: StreamJoin, sql: str | None, width: int = 160) -> list[list[str]]:
    """The words of each line that is printed."""
    out = StringIO()
    state(job, stored(job), sql, Console(file=out, width=width))
    return [line.split() for line in out.getvalue().splitlines() if line.strip("- ─")]


def listed(job: StreamJoin) -> dict[str, tuple[str, str]]:
    """What is told of each table: how many rows and for how long, and its columns."""
    _, *lines = (" ".join(words) for words in asked(job, None, WIDE))
    heads = [line.partition(": ") for line in lines[::2]]
    return {name: (told, columns) for (name, _, told), columns in zip(heads, lines[1::2], strict=True)}


class Beside:
    """DuckDB with the tables of the state, `inputs` as far as they were read, and `out`, what has come out."""

    def __init__(self, job: StreamJoin, folder: Path, batch: int) -> None:
        self._con = duckdb.connect()
        self._con.execute("SET TimeZone = 'UTC'")
        self.tables = [one.name for one in stored(job)]
        for one in stored(job):
            parts = list(rows(folder / "ck" / "state", batch, one))
            self._con.register(f"state_{one.name}", pa.Table.from_batches(parts, one.schema))
        for name, given in job.spec.inputs.items():
            files = [str(folder / name / f"{n}.csv") for n in range(batch + 1)]
            there = [file for file in files if Path(file).exists()]
            kinds = {field.name: _SQL[field.type] for field in given.arrow_schema}
            self._con.read_csv(there, header=True, dtype=kinds).create_view(name)
        if (folder / "out").exists():
            self._con.register("out", ds.dataset(folder / "out", format="parquet").to_table())

    def differ(self, one: str, other: str) -> list[tuple[object, ...]]:
        """The rows that one query has and the other has not, as often."""
        apart = f"(({one}) EXCEPT ALL ({other})) UNION ALL (({other}) EXCEPT ALL ({one}))"
        return self._con.execute(f"SELECT COLUMNS(*)::VARCHAR FROM ({apart})").fetchall()

    def count(self, sql: str) -> int:
        """How many rows a query has."""
        [[found]] = self._con.execute(f"SELECT count(*) FROM ({sql})").fetchall()
        assert isinstance(found, int)
        return found


_SQL = {pa.int64(): "BIGINT", pa.string(): "VARCHAR", pa.timestamp("us", "UTC"): "TIMESTAMPTZ"}
