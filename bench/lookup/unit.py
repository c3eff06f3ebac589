"""One unit as the engine has it, and its table, which is in a PostgreSQL 1 ms away (see `remote`)."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

from remote import far  # noqa: E402

from joinlib.join.rows import Picked, Tuples  # noqa: E402
from joinlib.lookup.enrich import DatabaseLookup, Finder, enriched, finder  # noqa: E402
from joinlib.lookup.incremental import LookupCache  # noqa: E402
from joinlib.lookup.load import loaded  # noqa: E402
from joinlib.lookup.postgres import PostgresTable  # noqa: E402
from joinlib.lookup.task import TableTask  # noqa: E402
from joinlib.lookup.version import write_parts  # noqa: E402
from joinlib.model.stage import Stage  # noqa: E402
from joinlib.plan import JoinOptions, SourceInput, build  # noqa: E402
from joinlib.postgres import PostgresConfig  # noqa: E402
from joinlib.route.split import block_schema  # noqa: E402
from joinlib.spec.inputs import CacheMode  # noqa: E402
from tests import configs  # noqa: E402

TABLE = pa.schema([("k", pa.int64()), ("n", pa.int64()), ("s", pa.string())])
SQL = "SELECT o.v, t.n, t.s FROM orders o LEFT JOIN t ON o.k = t.k"
Result = dict[str, Any]


class Nothing(LookupCache):
    """Keeps nothing: every batch is asked for."""

    def _keep(self, *_: object) -> None:
        pass


def stage_of(units: int) -> Stage:
    stream = SourceInput(pa.schema([("k", pa.int64()), ("v", pa.int64())]))
    return build(SQL, {"orders": stream, "t": SourceInput(TABLE, role="table")}, JoinOptions(units=units))


def task_of(config: PostgresConfig, folder: Path, units: int, mode: CacheMode) -> TableTask:
    """The lookup as the engine has it. `folder`: of the versions."""
    (lookup,) = stage_of(units).lookups
    return TableTask(
        replace(lookup, caching=replace(lookup.caching, mode=mode)), PostgresTable(config, TABLE), folder
    )


def finder_of(way: str, config: PostgresConfig, folder: Path, unit: int, units: int) -> Finder:
    task = task_of(config, folder / "versions", units, "full" if way == "full" else "incremental")
    own = folder / str(unit)
    if way == "full" or way.startswith("incremental"):
        return finder(task, {task.lookup.table.number: 1}, own, units, 64)
    table = task.lookup.table
    return DatabaseLookup(task, Nothing(own, block_schema(table), table.keys, 1 << 16), 64)


def look_up(
    stage: Stage, found: Finder, keys: np.ndarray, together: int = 1 << 20, values: np.ndarray | None = None
) -> int:
    """Rows that come out of one batch. `together`: rows of a query at most. `values`: the column v, else the keys."""
    rows, values = 0, keys if values is None else values
    for start in range(0, len(keys), together):
        some = [pa.array(column[start : start + together]) for column in (keys, values)]
        tuples = Tuples(Picked(pa.record_batch(some, ["o.k", "o.v"])))
        for longer in enriched(iter([tuples]), [(stage.lookups[0], found)], stage.reads):
            for column in stage.select:
                column.value.evaluate(longer.column, len(longer))
            rows += len(longer)
    return rows


def customers(rows: int) -> pa.Table:
    keys = np.arange(rows)
    texts = np.char.add("customer-", np.char.zfill((keys % 100_000).astype(str), 5))
    return pa.table([keys, keys * 3, texts], schema=TABLE)


@contextmanager
def table_of(rows: pa.Table, index: str = "CREATE UNIQUE INDEX ON t (k)") -> Iterator[PostgresConfig]:
    """These rows as the table t, 1 ms away."""
    from tests.postgres.database import PASSWORD, Database

    os.environ["PGPASSWORD"] = PASSWORD
    with Database(log_statement="none", shared_buffers="256MB") as db:
        db.fill("t", rows)
        db.execute(index)
        db.execute("VACUUM ANALYZE t", as_superuser=False)
        with far(db.port) as port:
            yield configs.table("t", **{**db.fields, "port": port}, table="t")


def whole(task: TableTask) -> float:
    """Loads the table as version 1; the seconds that took."""
    start = time.perf_counter()
    with loaded(task, task.folder / ".aside") as found:
        write_parts(task.version(1), found.parts, task.lookup.range, whole=found.whole)
    return time.perf_counter() - start
