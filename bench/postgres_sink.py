"""How fast do results get into a table of PostgreSQL? One task and one driver, on a server of the tests.

python bench/postgres_sink.py [ROWS]        rows a second of staging, of inserts, of updates and of deletions
"""

import os
import sys
import time
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from joinlib.compiled import results
from joinlib.sink.changing import changing
from joinlib.sink.config import SinkConfig
from joinlib.sink.postgres.outlet import TableOutlet
from joinlib.sink.postgres.sink import PostgresSink
from joinlib.spec.output import Output
from tests.postgres.database import PASSWORD, Database

FRAME = 100_000


def frames(rows: int, *weights: int) -> Iterator[pa.RecordBatch]:
    """Rows of four columns, each with the weights."""
    for start in range(0, rows, FRAME):
        keys = np.arange(start, min(start + FRAME, rows))
        for weight in weights:
            texts = pa.array([f"customer {k % 1000}" for k in keys])
            columns = [keys, keys * weight, keys * 0.5, texts, np.full(len(keys), weight)]
            yield pa.record_batch([pa.array(c) for c in columns], ["k", "n", "x", "s", "$weight"])


def main(rows: int) -> None:
    os.environ["PGPASSWORD"] = PASSWORD
    with Database() as database:
        database.execute("CREATE TABLE t (k bigint PRIMARY KEY, n bigint, x double precision, s text)")
        postgres = {**database.fields, "table": "t"}
        output = Output.model_validate({"mode": "upsert", "key": ["k"], "postgres": postgres})
        schema = next(frames(1, 1)).drop_columns(["$weight"]).schema
        outlet = TableOutlet(results(output), schema, lambda: None, str)
        outlet.open("bench", None)
        for batch, (what, weights) in enumerate({"insert": (1,), "update": (-1, 1), "delete": (-1,)}.items()):
            config = SinkConfig("postgres", "upsert", ("k",), postgres=outlet.target)
            sink = changing(PostgresSink(outlet.target, batch), config, batch)
            made = list(frames(rows, *weights))
            began = time.perf_counter()
            for frame in made:
                sink.write(frame)
            files, _ = sink.next_unit()
            sink.close()
            staged = time.perf_counter()
            outlet.take(batch, files)
            done = time.perf_counter()
            print(
                f"{what}: {rows / (done - began):,.0f} rows/s; staged {rows / (staged - began):,.0f},"
                f" applied {rows / (done - staged):,.0f}",
                flush=True,
            )
        began = time.perf_counter()
        for batch in range(10, 60):
            sink = PostgresSink(outlet.target, batch)
            sink.write(next(frames(10, 1)))
            files, _ = sink.next_unit()
            sink.close()
            outlet.take(batch, files)
        print(f"a batch of 10 rows: {1000 * (time.perf_counter() - began) / 50:.1f} ms")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
