"""A text run on the product's own path, in this process, over small tables that come in some batches."""

from collections import Counter
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq

from joinlib.spec import StreamJoin
from tests.laws.changelog import Changelog
from tests.laws.document import written
from tests.laws.harness import SMALL
from tests.laws.product import Course, Product, own_folder
from tests.laws.rewrites.nested import TABLES, Row, rows
from tests.laws.rewrites.same import SCHEMAS, Judge, translated

FILES = 3


def wrong(sql: str, judge: Judge, seed: int = 0) -> Iterator[str]:
    """Tell each batch after which the contents are not DuckDB's answer over the rows read so far."""
    data = _data(_used(sql), seed)
    with own_folder() as folder:
        for name, found in data.items():
            _write(folder / name, found, name)
        run = Product(
            _document(sql, folder, data),
            SMALL,
            Course((1, 2), twice=frozenset({1}), restart=frozenset({2}), seed=seed),
        )
        seen = Changelog(folder / "out")
        for batch in run.batches():
            seen.batch(batch, units_apart=False)
            known = run.composer.inputs
            judge.fill(
                {name: found[: run.read(name)] if name in known else [] for name, found in data.items()}
            )
            want = Counter(judge.rows(translated(sql)))
            have = Counter({tuple(row): times for row, times in seen.answer.items()})
            if want != have:
                yield f"{sql}\nbatch {batch} of seed {seed}: missing {want - have}, too many {have - want}"
        assert run.batch == FILES or not any(data[name] for name in run.composer.inputs)


def _data(used: list[str], seed: int) -> dict[str, list[Row]]:
    """Draw rows until one of the tables that the text reads has some: without any, no batch would run."""
    draws = (rows(Random(seed + 1_000_000 * again), 9) for again in count())
    return next(data for data in draws if any(data[name] for name in used))


def _used(sql: str) -> list[str]:
    return [name for name in TABLES if f" {name}" in sql.replace("(", " ").replace(")", " ")]


def _write(folder: Path, found: list[Row], name: str) -> None:
    folder.mkdir()
    columns = TABLES[name]
    for number in range(FILES):
        part = found[len(found) * number // FILES : len(found) * (number + 1) // FILES]
        table = pa.table({c: pa.array([r[i] for r in part], pa.int64()) for i, c in enumerate(columns)})
        pq.write_table(table.cast(SCHEMAS[name]), folder / f"{number}.parquet")


def _document(sql: str, folder: Path, data: dict[str, list[Row]]) -> StreamJoin:
    inputs = {
        name: {
            "schema": ", ".join(f"{c} BIGINT" for c in TABLES[name]),
            "files": {"path": name, "maxFilesPerBatch": 1, "orderBy": "name"},
        }
        for name in data
        if name in _used(sql)
    }
    spec = {
        "sql": sql,
        "inputs": inputs,
        "output": {"mode": "changelog", "files": {"path": "out"}},
        "checkpoint": {"path": "checkpoint", "sync": False},
        "join": {"units": 2},
    }
    return written(spec, folder)
