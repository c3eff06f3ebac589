"""What fails behind the inputs becomes dead letters: pairs for a condition, joined rows, groups and rows of window functions.

Law: the result is DuckDB's over what does not fail, and the letters are what its TRY has NULL for: after each batch of a
changelog, and in the end of an append query; however rows are cut into batches, and whatever dies in between.
"""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Literal

import duckdb
import pyarrow.parquet as pq
import pytest

from tests.laws.changelog import Changelog
from tests.laws.document import written
from tests.laws.harness import SMALL
from tests.laws.product import Course, Product, own_folder

FULL = 9223372036854775800  # from 8 on, a sum with it overflows
HALF = 4611686018427387900  # three of them overflow
ROWS, KEYS = 24, 3
Row = tuple[int, int, str, int, str]  # id, k, q, v, ts
Mode = Literal["append", "changelog"]


@dataclass(frozen=True)
class Query:
    """A query, and what DuckDB says of it: the rows that do not fail, and what identifies those that do."""

    sql: str
    sound: str
    failing: str
    told: tuple[str, ...]  # columns of letters that are the columns of `failing`
    modes: tuple[Mode, ...] = ("append", "changelog")


PAIRS = "FROM a JOIN b ON a.k = b.k"
IDS = ("a.id", "b.id")
NUMBER = "CAST(concat(a.q, b.q) AS BIGINT)"  # x in one of them makes it none
LEFT = "FROM a LEFT JOIN b ON a.k = b.k"
FILLED = "CAST(concat(a.q, coalesce(b.q, 'x')) AS BIGINT)"
GROUPED = f"a.k, max(b.v) AS v, min(a.q) AS q {PAIRS} GROUP BY a.k"
SUMS = f"SELECT k, sum(v + {HALF}) AS s FROM a GROUP BY k"
WINDOW = "OVER (PARTITION BY k ORDER BY ts)"
OVER = f"SELECT id, k, q, sum(v + {HALF}) {WINDOW} AS s, count(*) {WINDOW} AS n FROM a"
SECOND = "CAST(concat(q, n) AS BIGINT)"
FITS = "TRY(CAST(s AS BIGINT))"
LAST = "SELECT id, k, q, ts, last_value(q) OVER (PARTITION BY k ORDER BY ts) AS m FROM a"
MADE = "TRY(CAST(m AS BIGINT))"
SMALLEST = "SELECT k, min(q) AS q FROM a GROUP BY k"
QUERIES = {
    "condition in ON": Query(
        f"SELECT a.id AS a, b.id AS b {PAIRS} AND {NUMBER} < 22",
        f"SELECT a.id, b.id {PAIRS} WHERE TRY({NUMBER}) < 22",
        f"SELECT a.id, b.id {PAIRS} WHERE TRY({NUMBER}) IS NULL",
        IDS,
    ),
    "conditions, one of which never fails": Query(
        f"SELECT a.id AS a, b.id AS b {PAIRS} WHERE {NUMBER} < 22 AND a.v < b.v",
        f"SELECT a.id, b.id {PAIRS} WHERE TRY({NUMBER}) < 22 AND a.v < b.v",
        f"SELECT a.id, b.id {PAIRS} WHERE TRY({NUMBER}) IS NULL AND a.v < b.v",
        IDS,
    ),
    "no equality": Query(
        f"SELECT a.id AS a, b.id AS b FROM a JOIN b ON a.v < b.v AND {NUMBER} < 22",
        f"SELECT a.id, b.id FROM a JOIN b ON a.v < b.v AND TRY({NUMBER}) < 22",
        f"SELECT a.id, b.id FROM a JOIN b ON a.v < b.v AND TRY({NUMBER}) IS NULL",
        IDS,
    ),
    "condition above an outer join": Query(
        f"SELECT a.id AS a, b.id AS b {LEFT} WHERE {FILLED} < 22",
        f"SELECT a.id, b.id {LEFT} WHERE TRY({FILLED}) < 22",
        f"SELECT a.id, b.id {LEFT} WHERE TRY({FILLED}) IS NULL",
        IDS,
        ("changelog",),
    ),
    "argument and key of a group": Query(
        f"SELECT a.v + b.v + {FULL} AS g, sum({NUMBER}) AS s {PAIRS} GROUP BY a.v + b.v + {FULL}",
        f"SELECT a.v + b.v + {FULL} AS g, sum({NUMBER}) {PAIRS} WHERE a.v + b.v < 8 AND TRY({NUMBER}) IS NOT NULL GROUP BY g",
        f"SELECT a.q, b.q, a.v, b.v {PAIRS} WHERE a.v + b.v >= 8 OR TRY({NUMBER}) IS NULL",
        ("a.q", "b.q", "a.v", "b.v"),
    ),
    "HAVING and columns of a group": Query(
        f"SELECT a.k, max(b.v) + {FULL} AS v {PAIRS} GROUP BY a.k HAVING CAST(min(a.q) AS BIGINT) < 2",
        f"SELECT k, v + {FULL} FROM (SELECT {GROUPED}) WHERE TRY(CAST(q AS BIGINT)) < 2 AND v < 8",
        f"SELECT k, v, q FROM (SELECT {GROUPED}) WHERE TRY(CAST(q AS BIGINT)) IS NULL"
        " OR (TRY(CAST(q AS BIGINT)) < 2 AND v >= 8)",
        ("a.k", "max(b.v)", "min(a.q)"),
    ),
    "a sum that is too large": Query(
        SUMS,
        f"SELECT k, {FITS} FROM ({SUMS}) WHERE {FITS} IS NOT NULL",
        f"SELECT k FROM ({SUMS}) WHERE {FITS} IS NULL",
        ("a.k",),
    ),
    "above a window function": Query(
        "SELECT id, CAST(last_value(q) OVER (PARTITION BY k ORDER BY ts) AS BIGINT) AS m FROM a",
        f"SELECT id, {MADE} FROM ({LAST}) WHERE {MADE} IS NOT NULL",
        f"SELECT m, k, q FROM ({LAST}) WHERE {MADE} IS NULL",
        ("last_value(q) OVER (PARTITION BY k ORDER BY ts)", "k", "q"),
    ),
    "a sum over a window, and QUALIFY": Query(
        f"{OVER} QUALIFY {SECOND} < 15",
        f"SELECT id, k, q, {FITS}, n FROM ({OVER}) WHERE {FITS} IS NOT NULL AND TRY({SECOND}) < 15",
        f"SELECT k, q FROM ({OVER}) WHERE {FITS} IS NULL OR TRY({SECOND}) IS NULL",
        ("k", "q"),
    ),
    "a join of groups": Query(
        "SELECT g.k, g.q AS q, b.id AS b FROM (SELECT k, CAST(min(q) AS BIGINT) AS q FROM a GROUP BY k) g"
        " JOIN b ON g.k = b.k",
        f"SELECT g.k, TRY(CAST(g.q AS BIGINT)), b.id FROM ({SMALLEST}) g JOIN b ON g.k = b.k WHERE g.q <> 'x'",
        f"SELECT k, q FROM ({SMALLEST}) WHERE TRY(CAST(q AS BIGINT)) IS NULL",
        ("a.k", "min(a.q)"),
        ("changelog",),
    ),
}
CASES = [(name, mode) for name, query in QUERIES.items() for mode in query.modes]


class World:
    """The files of each input, one for a batch, and the rows that are there after each."""

    def __init__(self, folder: Path, draw: Random, batches: int, mode: Mode) -> None:
        self.rows: list[dict[str, list[Row]]] = []
        there: dict[str, list[Row]] = {"a": [], "b": []}
        for name in there:
            (folder / name).mkdir()
        for batch in range(batches):
            for one, (name, rows) in enumerate(there.items()):
                lines = ["id,k,q,v,ts,op"]
                for n in range(batch * ROWS // batches, (batch + 1) * ROWS // batches):
                    own = Random(1000 * one + n)  # the same rows, however they are cut
                    q, ts = own.choice(["1", "1", "2", "x"]), f"2026-01-01T12:00:{n:02}Z"
                    row = (n, own.randrange(KEYS), q, own.randrange(9), ts)
                    rows.append(row)
                    lines.append(",".join(map(str, (*row, "insert"))))
                while mode == "changelog" and rows and draw.random() < 0.7:
                    lines.append(",".join(map(str, (*rows.pop(draw.randrange(len(rows))), "delete"))))
                (folder / name / f"{batch}.csv").write_text("\n".join([*lines, ""]))
            self.rows.append({name: list(rows) for name, rows in there.items()})

    def ask(self, batch: int, sql: str) -> Counter[Any]:
        """What DuckDB answers over the rows after a batch."""
        db = duckdb.connect()
        for name, rows in self.rows[batch].items():
            db.execute(f"CREATE TABLE {name} (id BIGINT, k BIGINT, q VARCHAR, v BIGINT, ts TIMESTAMPTZ)")
            if rows:
                db.executemany(f"INSERT INTO {name} VALUES (?, ?, ?, ?, ?)", rows)
        return Counter(db.sql(sql).fetchall())


def document(folder: Path, query: Query, mode: Mode) -> dict[str, Any]:
    """The spec."""
    inputs: dict[str, Any] = {}
    for name in [name for name in "ab" if f" {name}" in query.sql]:
        own = {"path": name, "format": "csv", "orderBy": "name", "maxFilesPerBatch": 1}
        inputs[name] = {
            "schema": "id BIGINT, k BIGINT, q STRING, v BIGINT, ts TIMESTAMP, op STRING",
            "files": own,
        }
        if mode == "changelog":
            inputs[name]["changes"] = {"op": "op"}
        else:
            inputs[name]["eventTime"] = {"column": "ts"}
    return {
        "sql": query.sql,
        "inputs": inputs,
        "output": {"files": {"path": "out"}, "mode": mode, "onError": "deadLetter"},
        "checkpoint": {"path": "checkpoint", "sync": False},
        "deadLetters": {"path": "dead"},
        "join": {"units": 4},
    }


def letters(folder: Path, told: tuple[str, ...]) -> Counter[Any]:
    """What is in the box, less what went again."""
    found: Counter[Any] = Counter()
    for one in each(folder):
        assert one["reason"] == "result" and one["input"] is None and one["error"]
        found[tuple(one["row"][name] for name in told)] += -1 if one["change"] == "delete" else 1
    assert all(n >= 0 for n in found.values()), "what fails when it goes did not when it came"
    return +found


def each(folder: Path) -> Iterator[dict[str, Any]]:
    for file in sorted((folder / "dead").glob("batch=*/*.jsonl")):
        yield from map(json.loads, file.read_text().splitlines())


def come(folder: Path) -> Counter[Any]:
    """The rows of an append query."""
    tables = [pq.read_table(file, partitioning=None) for file in folder.glob("out/batch=*/*.parquet")]
    return Counter(row for t in tables for row in zip(*(c.to_pylist() for c in t.columns), strict=True))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("name", "mode"), CASES)
def test_exactly_what_fails(name: str, mode: Mode, seed: int) -> None:
    query, draw = QUERIES[name], Random(f"{name} {mode} {seed}")
    batches = draw.choice([1, 3, 5])
    some = [frozenset(draw.sample(range(5), 2)) for _ in range(2)]
    course = Course((draw.choice([1, 2, 4]), draw.choice([1, 4])), twice=some[0], restart=some[1], seed=seed)
    with own_folder() as folder:
        world, out = World(folder, draw, batches, mode), Changelog(folder / "out")
        run = Product(written(document(folder, query, mode), folder), SMALL, course)
        for number in run.batches():
            at = min(number, batches - 1)
            if mode == "changelog":
                out.batch(number, units_apart=False)
                assert Counter(out.answer) == world.ask(at, query.sound), f"after batch {number}"
                assert letters(folder, query.told) == world.ask(at, query.failing), f"after batch {number}"
        if mode == "append":
            assert come(folder) == world.ask(-1, query.sound)
            assert letters(folder, query.told) == world.ask(-1, query.failing)
        if batches > 1 and mode == "append":
            assert letters(folder, query.told), "nothing failed"
        assert sum(run.figures.dead.values()) == len(list(each(folder)))
