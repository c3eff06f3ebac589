"""Tables 6 to 8 of BS-Join: a stream joined with the time slices of roads, by queries and by a table that is kept whole."""

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from unit import Result, look_up, table_of, whole

from joinlib.lookup.enrich import finder
from joinlib.lookup.postgres import PostgresTable
from joinlib.lookup.task import TableTask
from joinlib.plan import JoinOptions, SourceInput, build
from joinlib.postgres import PostgresConfig
from joinlib.postgres.connection import connected

SLICES = 96  # of a quarter of an hour, for each road
TABLE = pa.schema([(name, pa.int64()) for name in ("k", "low", "high", "n")])
SQL = "SELECT o.v, t.n FROM orders o JOIN t ON o.k = t.k AND o.v BETWEEN t.low AND t.high"
ROW = "SELECT n FROM t WHERE k = $1 AND low <= $2 AND high >= $2"
BATCH = "SELECT v, n FROM unnest($1, $2) AS o(k, v) JOIN t ON o.k = t.k AND o.v BETWEEN t.low AND t.high"
Column = Callable[[pa.Array], pa.Array]
Ask = Callable[[np.ndarray, np.ndarray], int]  # keys, minutes ─► rows that come out


def ranged(quick: bool, known: Result, runs: int) -> Iterator[Result]:
    """Rows/s, and milliseconds of a batch of 10 000 rows (of one row, where each is asked for), one unit."""
    found: Result = dict(known)
    for bits in (15,) if quick else (21, 22, 23):
        if str(bits) in found:
            continue
        draw, roads = np.random.default_rng(9), (1 << bits) // SLICES
        index = "CREATE INDEX ON t (k, low, high)"
        with (
            table_of(_slices(roads), index) as config,
            tempfile.TemporaryDirectory() as folder,
            connected(config) as connection,
            connection.cursor() as row,  # each keeps its statement prepared
            connection.cursor() as batch,
        ):
            found[str(bits)] = {}
            ways = {
                "one query a row": (1, partial(_asked, row, ROW, lambda column: column)),
                "one query a batch": (10_000, partial(_asked, batch, BATCH, _listed)),
                "kept whole": (10_000, _kept(config, Path(folder))),
            }
            for way, (rows, ask) in ways.items():
                count = 300 if rows == 1 else 30
                batches = [
                    (draw.integers(0, roads, rows), draw.integers(0, SLICES * 15, rows)) for _ in range(count)
                ]
                found[str(bits)][way] = _timed(ask, batches)
            yield found


def _slices(roads: int) -> pa.Table:
    keys, low = np.repeat(np.arange(roads), SLICES), np.tile(np.arange(SLICES) * 15, roads)
    return pa.table([keys, low, low + 14, keys ^ low], schema=TABLE)


def _timed(ask: Ask, batches: list[tuple[np.ndarray, np.ndarray]]) -> Result:
    seconds = []
    for keys, minutes in batches[:3] + batches:
        start = time.perf_counter()
        assert ask(keys, minutes) == len(keys)
        seconds.append(time.perf_counter() - start)
    middle = statistics.median(seconds[3:])
    return {"rows/s": len(batches[0][0]) / middle, "ms": 1000 * middle}


def _listed(column: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array([0, len(column)], pa.int32()), column)


def _asked(cursor: Any, sql: str, given: Column, keys: np.ndarray, minutes: np.ndarray) -> int:
    cursor.execute(sql, pa.record_batch([given(pa.array(keys)), given(pa.array(minutes))], ["k", "v"]))
    return int(cursor.fetch_arrow_table().num_rows)


def _kept(config: PostgresConfig, folder: Path) -> Ask:
    """As the engine has it: sorted arrays in files."""
    stream = SourceInput(pa.schema([("k", pa.int64()), ("v", pa.int64())]))
    stage = build(SQL, {"orders": stream, "t": SourceInput(TABLE, role="table")}, JoinOptions(units=1))
    (lookup,) = stage.lookups
    task = TableTask(lookup, PostgresTable(config, TABLE), folder / "versions")
    whole(task)
    found = finder(task, {lookup.table.number: 1}, folder / "unit", 1, 64)
    return lambda keys, minutes: look_up(stage, found, keys, values=minutes)
