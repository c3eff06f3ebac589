"""Texts that once gave other rows than they should, or stopped a batch: after the last one each has DuckDB's answer.

What went wrong with values is told with the values: `tests/unit/expr/test_spark.py`.
"""

import datetime as dt
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from joinlib.spec import StreamJoin
from tests.laws.changelog import Answer, Changelog, bare
from tests.laws.document import written
from tests.laws.harness import SMALL
from tests.laws.oracle import duckdb_rows
from tests.laws.product import Course, Product, own_folder

START = dt.datetime(2026, 1, 1)  # noqa: DTZ001 - as in most files, no zone
SCHEMA = "id BIGINT, k BIGINT, j BIGINT, s STRING, at TIMESTAMP, d STRUCT<j:BIGINT>"
FILES, ROWS = 3, 24
NEAR = "c.at BETWEEN b.at - INTERVAL 9 MINUTES AND b.at + INTERVAL 33 MINUTES"

# streams a, b, c; p is a table
TEXTS = {
    "a table below groups, by anti join": "SELECT b.s, count(*) AS n FROM b LEFT ANTI JOIN p ON b.j = p.j GROUP BY b.s",
    "a table below groups, only its match counts": "SELECT b.s, count(*) AS n FROM b JOIN p ON b.j = p.j GROUP BY b.s",
    "a table below DISTINCT": "SELECT DISTINCT b.s FROM b LEFT JOIN p ON b.j = p.j WHERE p.id IS NULL",
    "a column of a table in an aggregate": "SELECT b.s, count(p.s) AS n FROM b JOIN p ON b.j = p.id GROUP BY b.s",
    "EXCEPT of a star": "SELECT a.* EXCEPT (id, d), b.s AS bs FROM a JOIN b ON a.k = b.k",
    "EXISTS of an aggregate": "SELECT a.id FROM a WHERE EXISTS (SELECT count(*) FROM b WHERE b.k = a.k)",
    "NOT EXISTS of an aggregate": "SELECT a.id FROM a WHERE NOT EXISTS (SELECT count(*) FROM b WHERE b.k = a.k)",
    "EXISTS with HAVING": "SELECT a.id FROM a WHERE EXISTS (SELECT count(*) FROM b WHERE b.k = a.k HAVING count(*) > 3)",
    "a time that only the result reads, anti": f"SELECT b.at, a.j FROM b LEFT ANTI JOIN c ON b.j = c.j AND {NEAR} LEFT JOIN a ON b.s = a.s",
    "a time that only the result reads, semi": f"SELECT b.at, a.j FROM b LEFT SEMI JOIN c ON b.j = c.j AND {NEAR} JOIN a ON b.s = a.s",
    "a time that only the result reads, left": f"SELECT b.at, a.j, c.at AS ca FROM b LEFT JOIN c ON b.j = c.j AND {NEAR} LEFT JOIN a ON b.s = a.s",
    "a column called as a made alias": "SELECT a.id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND EXISTS (SELECT 1 FROM c WHERE c.j = a.j))",
    "NULL as a condition": "SELECT a.id FROM a WHERE NULL",
    "NULL as a condition, computed": "SELECT a.id FROM a WHERE CASE WHEN j > 0 THEN NULL END",
    "NULL as a condition of groups": "SELECT a.s, count(*) AS n FROM a GROUP BY s HAVING NULL",
    "NULL as a condition on windows": "SELECT a.id, rank() OVER (ORDER BY id) AS r FROM a QUALIFY NULL",
    "NULL as a condition of a join": "SELECT a.id FROM a JOIN b ON a.k = b.k AND NULL",
    "NULL as a condition of an outer join": "SELECT a.id, b.id AS i FROM a LEFT JOIN b ON a.k = b.k AND NULL",
    "NULL as all of ON": "SELECT a.id, b.id AS i FROM a LEFT JOIN b ON NULL",
    "NULL as a condition in EXISTS": "SELECT a.id FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE NULL)",
    "an OR of many": f"SELECT a.id FROM a JOIN b ON a.k = b.k WHERE {' OR '.join(f'a.id = {2 * n}' for n in range(500))}",
    "a rank in the order of LIMIT": "SELECT id, rank() OVER (PARTITION BY k ORDER BY j NULLS FIRST) AS r FROM a ORDER BY r DESC, id LIMIT 5",
}  # fmt: skip


def tables(random: Random) -> dict[str, pa.Table]:
    """Few values, so that rows meet; NULLs among keys."""
    found = {}
    for name in "abcp":
        rows = [
            {
                "id": at,
                "k": random.choice((0, 1, 2, None)),
                "j": random.choice((0, 1, 2, 3, 4, None)),
                "s": random.choice(("x", "y", "z")),
                "at": START + dt.timedelta(minutes=10 * at + random.randrange(9)),
                "d": {"j": at % 2},
            }
            for at in range(3 if name == "p" else ROWS)
        ]
        found[name] = pa.Table.from_pylist(rows, _schema())
    return found


def _schema() -> pa.Schema:
    kinds = {"BIGINT": pa.int64(), "STRING": pa.string(), "TIMESTAMP": pa.timestamp("us"), "STRUCT<j:BIGINT>": pa.struct([("j", pa.int64())])}  # fmt: skip
    return pa.schema([(name, kinds[kind]) for name, kind in (c.split() for c in SCHEMA.split(", "))])


def spec_of(sql: str, data: dict[str, pa.Table], folder: Path, mode: str) -> StreamJoin:
    """The files of what the text reads, and the spec."""
    words = sql.replace("(", " ").split()
    inputs: dict[str, Any] = {}
    for name in (name for name in data if name in words):
        inputs[name] = {"schema": SCHEMA, "files": {"path": name}}
        if name == "p":
            inputs[name]["role"] = "table"
        else:
            inputs[name]["eventTime"] = {"column": "at", "delay": "10m"}
            inputs[name]["files"] |= {"maxFilesPerBatch": 1, "orderBy": "name"}
        (folder / name).mkdir()
        for at in range(FILES):
            part = data[name].slice(at * ROWS // FILES, ROWS // FILES)
            pq.write_table(part, folder / name / f"{at}.parquet")
    output = {"mode": mode, "files": {"path": "out"}}
    checkpoint = {"path": "checkpoint", "sync": False}
    return written(
        {"sql": sql, "inputs": inputs, "output": output, "checkpoint": checkpoint, "join": {"units": 4}},
        folder,
    )


def answer(run: Product, out: Path, mode: str) -> Answer:
    """What a reader has after all batches."""
    seen = Changelog(out)
    for number in run.batches():
        if mode == "changelog":
            seen.batch(number, units_apart=False)
            continue
        for file in sorted((out / f"batch={number}").glob("*.parquet")):
            columns = pq.read_table(file, partitioning=None).columns
            seen.answer.update(
                tuple(map(bare, row)) for row in zip(*(c.to_pylist() for c in columns), strict=True)
            )
    return seen.answer


@pytest.mark.slow
@pytest.mark.parametrize("sql", TEXTS.values(), ids=TEXTS)
def test_as_duckdb_has_it(sql: str) -> None:
    mode = (
        "changelog"
        if any(w in sql for w in ("HAVING", "LIMIT", "QUALIFY", "NOT EXISTS (SELECT 1", "ON NULL"))
        else "append"
    )
    data = tables(Random(sql))
    with own_folder() as folder:
        course = Course((1, 2), twice=frozenset({1}), restart=frozenset({2}))
        found = answer(Product(spec_of(sql, data, folder, mode), SMALL, course), folder / "out", mode)
    assert found == duckdb_rows(sql.replace("EXCEPT (", "EXCLUDE ("), data)
    assert found or "NOT EXISTS" in sql or "NULL" in sql
