"""SPO-Join's Q1, Q2 and Q3 end to end: files, Spark, the join, its pairs as columns; beside what others do.

    python bench/inequality/stream.py                               # Q1, Q2, Q3 with a window of 1 M rows, two units
    python bench/inequality/stream.py Q3 --window 100000 --units 8
    python bench/inequality/stream.py --peers                       # the same windows in others' indexes

A stream fills its window, then slides on by five tenths of it; rows/s are those of the batches that slide, from the
commit of the one before them to the last commit. Outcomes are added to results/stream.json.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import yaml

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parent), str(HERE)]

from bands import CssBand, DuckDBand, NestedBand  # noqa: E402
from peers import CssBits, CssTree, DuckDB, Nested, PerTuple  # noqa: E402
from task import write_file  # noqa: E402
from trees import pim_trees  # noqa: E402

RESULTS = HERE / "results" / "stream.json"
RATE = 0.00025  # of all pairs of a window: 249 M of those of 1 M rows (SPO-Join, figure 14)
SLIDES = 5  # after the window is full; each a tenth of it
START = 1_767_225_600_000_000  # µs


@dataclass(frozen=True)
class Asked:
    """A query of the paper: its inputs, each with its columns as DDL, its text, and its window."""

    inputs: dict[str, str]
    sql: str
    timed: bool = False  # its window is one of time, a row a millisecond


QUERIES = {
    "Q1": Asked(
        dict.fromkeys("rs", "id BIGINT, power DOUBLE, cool DOUBLE"),
        "SELECT r.id AS r, s.id AS s FROM r JOIN s ON r.power < s.power AND r.cool > s.cool",
    ),
    "Q2": Asked(
        {"taxi": "id BIGINT, lon DOUBLE, lat DOUBLE, at TIMESTAMP"},
        "SELECT a.id AS a, b.id AS b FROM taxi a JOIN taxi b"
        " ON ABS(a.lon - b.lon) < 0.03 AND ABS(a.lat - b.lat) < 0.03",
        timed=True,
    ),
    "Q3": Asked(
        {"taxi": "id BIGINT, distance DOUBLE, fare DOUBLE"},
        "SELECT a.id AS a, b.id AS b FROM taxi a JOIN taxi b ON a.distance > b.distance AND a.fare < b.fare",
    ),
}


def columns(query: str, rows: int, seed: int) -> list[np.ndarray]:
    """Two columns; RATE of all pairs match. Of Q1 and Q3 each comparison alone keeps half of them, as distance and fare do."""
    draw = np.random.default_rng(seed)
    if query == "Q2":
        return list(draw.random((2, rows)) * (0.06 / RATE**0.5))
    x = draw.random(rows)
    return [x, x + 1.75 * RATE * draw.standard_normal(rows)]


def fill(folder: Path, query: str, window: int, batch: int) -> int:
    """Write the streams, a file for each batch; return the rows of each input."""
    asked = QUERIES[query]
    rows = window + SLIDES * window // 10
    for seed, (name, ddl) in enumerate(asked.inputs.items()):
        made = [np.arange(rows), *columns(query, rows, seed)]
        arrays = [pa.array(c) for c in made]
        if asked.timed:
            arrays.append(pa.array(START + 1000 * np.arange(rows)).cast(pa.timestamp("us")))
        table = pa.table(arrays, [c.split()[0] for c in ddl.split(", ")])
        for number, at in enumerate(range(0, rows, batch)):
            write_file(table.slice(at, batch), folder / name, number)
    return rows


def spec(folder: Path, query: str, window: int, units: int) -> dict[str, Any]:
    """The join as a user would write it; its results are counted and dropped."""
    asked = QUERIES[query]
    time_of = {"eventTime": {"column": "at", "delay": "0s"}} if asked.timed else {}
    inputs = {
        name: {
            "schema": ddl,
            "files": {"path": str(folder / name), "format": "parquet", "maxFilesPerBatch": 1},
            **time_of,
        }
        for name, ddl in asked.inputs.items()
    }
    kept = {"retention": f"{window}ms"} if asked.timed else {"window": {"rows": window}}
    return {
        "apiVersion": "streamjoin.dev/v1alpha1",
        "kind": "StreamJoin",
        "metadata": {"name": "bench"},
        "spec": {
            "sql": asked.sql,
            "inputs": inputs,
            "output": {"noop": {}},
            "join": {"units": units, **kept},
            "batch": {"maxRows": 10 * window},  # files are the limit
            "checkpoint": {"path": str(folder / "checkpoint")},
        },
    }


def product(query: str, window: int, batch: int, units: int) -> dict[str, Any]:
    """One run of the product, in this process."""
    from timed import run_to_end

    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        rows = fill(folder, query, window, batch)
        file = folder / "bench.yaml"
        file.write_text(yaml.safe_dump(spec(folder, query, window, units)))
        ran = run_to_end(file)
    filled, inputs = window // batch, len(QUERIES[query].inputs)
    sliding = ran.reports[filled:]
    last = {r.unit: r for _, report in ran.reports for r in report.receipts}.values()
    return {
        "system": "StreamJoin",
        "rows_s": inputs * (rows - window) / (sliding[-1][0] - ran.reports[filled - 1][0]),
        "filling_rows_s": inputs * window / (ran.reports[filled - 1][0] - ran.begun),
        "pairs": sum(r.rows_out for _, r in sliding),
        "batch_s": statistics.median(ran.seconds[r.batch] for _, r in sliding),
        "segments_mb": sum(r.state_bytes for r in last) / 1e6,
        "indexes_mb": sum(r.index_bytes for r in last) / 1e6,
        "stored_rows": sum(r.state_rows for r in last),
    }


def peers(query: str, window: int) -> list[dict[str, Any]]:
    """What others do with a window that stands still: pairs in arrays, no inserts, no engine; one core's rate, doubled.

    A new row of a self-join asks twice, as either row of a pair.
    """
    stored, rows = columns(query, window, 0), columns(query, window // 10, 9)
    mirrored = 1 if query == "Q2" else -1  # of Q3 as the other trip: less becomes more
    found = []
    for name, system, few in PEERS if query != "Q2" else BANDS:
        asked = [column[:few] for column in rows]  # None: all
        seconds = _seconds(system(*stored), asked)
        if len(QUERIES[query].inputs) == 1:
            seconds += _seconds(
                system(*(mirrored * column for column in stored)), [mirrored * a for a in asked]
            )
        found.append({"system": name, "rows_s": 2 * len(asked[0]) / seconds})
    return found


def _seconds(peer: Any, asked: list[np.ndarray]) -> float:
    """CPU time to make all pairs, compiled before."""
    peer.pairs(*(column[:10] for column in asked))
    begun = time.process_time()
    peer.pairs(*asked)
    return time.process_time() - begun


PEERS = (
    ("nested loop", Nested, 500),
    ("DuckDB, IEJoin, 1 000 rows a join", DuckDB, 1000),
    ("DuckDB, IEJoin, a slide a join", DuckDB, None),
    ("CSS-trees, hash set", CssTree, 40),
    ("CSS-trees, bit array", CssBits, 100),
    ("PIM-trees, bit array", pim_trees, 60),
    ("PO-Join, bits anew for each tuple", PerTuple, 200),
)
BANDS = (
    ("nested loop", NestedBand, 500),
    ("DuckDB, IEJoin, 1 000 rows a join", DuckDBand, 1000),
    ("DuckDB, IEJoin, a slide a join", DuckDBand, None),
    ("CSS-trees, bit array", CssBand, 1000),
)


def kept(case: str, outcome: dict[str, Any]) -> None:
    """Add an outcome to those of its case, and write the results."""
    found = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    found.setdefault(case, []).append(outcome)
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("queries", nargs="*", metavar="QUERY", default=list(QUERIES))
    asked.add_argument("--window", type=int, default=1_000_000, help="rows of each input")
    asked.add_argument("--batch", type=int, help="rows of each input; default: a tenth of the window")
    asked.add_argument("--units", type=int, default=2)
    asked.add_argument("--peers", action="store_true", help="what others do, instead of the product")
    asked.add_argument("--one", action="store_true", help="one run in this process, as a line of JSON")
    given = asked.parse_args()
    batch = given.batch or given.window // 10
    for query in given.queries:
        case = f"{query}, window {given.window}"
        if given.peers:
            for outcome in peers(query, given.window):
                kept(case, outcome)
                print(case, outcome, flush=True)
        elif given.one:
            print(json.dumps(product(query, given.window, batch, given.units)))
        else:  # a process of its own, with a JVM of its own
            own = ["--one", "--window", str(given.window), "--batch", str(batch), "--units", str(given.units)]
            ran = subprocess.run([sys.executable, __file__, query, *own], stdout=subprocess.PIPE, check=True)
            outcome = {"units": given.units, "batch": batch, **json.loads(ran.stdout.splitlines()[-1])}
            kept(case, outcome)
            print(case, outcome, flush=True)


if __name__ == "__main__":
    main()
