"""SPO-Join's Q1, Q2 and Q3 end to end: files, Spark, the join, its pairs as columns; beside what others do.

    python bench/inequality/stream.py                   # all queries and windows, and the peers
    python bench/inequality/stream.py Q3 --window 1000000 --repetitions 3
    python bench/inequality/stream.py Q3 --window 1000000 --one     # one run of the product in this process, as a line of JSON

A stream fills its window and then slides on by five tenths of it; rows/s are those of the batches that slide, from
the first row read to the last batch committed. Writes results/stream.json.
"""

import argparse
import json
import statistics
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import yaml

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parent), str(HERE)]

from task import write_file  # noqa: E402

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


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("queries", nargs="*", default=[], metavar="QUERY")
    asked.add_argument("--window", type=int, default=100_000)
    asked.add_argument("--batch", type=int)
    asked.add_argument("--units", type=int, default=8)
    asked.add_argument("--one", action="store_true")
    given = asked.parse_args()
    print(json.dumps(product(given.queries[0], given.window, given.batch or given.window // 10, given.units)))


if __name__ == "__main__":
    main()
