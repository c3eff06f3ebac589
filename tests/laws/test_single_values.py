"""A subquery that stands for a value stops the batch after which it has several rows for a row that asks, and no other.

DuckDB says what is right until then; it stops in fewer cases, since it filters before it counts.
"""

from collections import Counter
from pathlib import Path
from random import Random

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from joinlib.errors import SqlError
from joinlib.spec import StreamJoin
from tests.laws.changelog import Changelog
from tests.laws.document import written
from tests.laws.harness import SMALL
from tests.laws.product import Course, Product, own_folder

OP = "_change_type"
Row = tuple[int, int | None]
Changes = list[tuple[Row, int]]  # rows of one file, which come (1) or go (-1)
COLUMNS = {"t": ("k", "a"), "u": ("k", "x")}
QUERIES = (
    "SELECT t.a, (SELECT x FROM u WHERE u.k = t.k) AS x FROM t",
    "SELECT t.k FROM t WHERE t.a > (SELECT x FROM u WHERE u.k = t.k)",
    "SELECT t.k, count(*) AS n FROM t WHERE t.a > (SELECT x FROM u WHERE u.k = t.k) OR t.a = 1 GROUP BY t.k HAVING count(*) > 1",
    "SELECT DISTINCT t.a + (SELECT u.x + t.k FROM u WHERE u.k = t.k) AS s FROM t",
    "SELECT q.k FROM (SELECT t.a, t.k FROM t WHERE t.a <> (SELECT x FROM u WHERE u.k = t.k) UNION ALL SELECT 9, 9) q",
    "SELECT t.a, (SELECT x FROM u) AS x FROM t",
    "SELECT count(*) AS n FROM t WHERE t.a < (SELECT DISTINCT x FROM u WHERE x > 0)",
)  # fmt: skip
# What a batch takes back, or brings no outer row for, is no error; the third batch leaves two rows for an outer row.
CANCELLED: tuple[dict[str, Changes], ...] = (
    {"t": [((2, 5), 1)], "u": [((1, 5), 1), ((1, 6), 1), ((2, 1), 1)]},
    {"t": [((1, 7), 1)], "u": [((1, 6), -1), ((2, 2), 1), ((2, 1), -1)]},
    {"t": [((1, 7), -1)], "u": [((1, 8), 1)]},
    {"t": [((1, 3), 1)], "u": []},
)


def _document(sql: str, folder: Path) -> StreamJoin:
    inputs = {
        name: {
            "schema": f"{', '.join(f'{c} BIGINT' for c in columns)}, {OP} STRING",
            "files": {"path": name, "maxFilesPerBatch": 1, "orderBy": "name"},
            "changes": {"op": OP},
        }
        for name, columns in COLUMNS.items()
    }
    spec = {
        "sql": sql,
        "inputs": inputs,
        "output": {"mode": "changelog", "files": {"path": "out"}},
        "checkpoint": {"path": "checkpoint", "sync": False},
        "join": {"units": 2},
    }
    return written(spec, folder)


def _write(folder: Path, number: int, changes: Changes) -> None:
    folder.mkdir(exist_ok=True)
    words = ["insert" if weight > 0 else "delete" for _, weight in changes]
    columns = [pa.array([row[at] for row, _ in changes], pa.int64()) for at in (0, 1)]
    names = [*COLUMNS[folder.name], OP]
    pq.write_table(pa.table([*columns, pa.array(words, pa.string())], names), folder / f"{number}.parquet")


def _answer(sql: str, live: dict[str, Counter[Row]]) -> Counter[tuple[object, ...]] | None:
    """The rows by DuckDB; None if the subquery has several rows."""
    if "u.k = t.k" in sql:
        asked = {k for k, _ in live["t"].elements()}
        most = max(Counter(k for k, _ in live["u"].elements() if k in asked).values(), default=0)
    elif "DISTINCT" in sql:
        most = len({x for _, x in live["u"].elements() if x})
    else:
        most = live["u"].total()
    if most > 1:
        return None
    db = duckdb.connect(config={"threads": 1})
    for name, rows in live.items():
        db.execute(f"CREATE TABLE {name}({', '.join(f'{c} BIGINT' for c in COLUMNS[name])})")
        for row in rows.elements():
            db.execute(f"INSERT INTO {name} VALUES (?, ?)", row)
    return Counter(db.execute(sql).fetchall())


def _drawn(random: Random) -> list[dict[str, Changes]]:
    """Few values of u at a time, so that most batches have an answer; rows go in the batch in which others come."""
    live: dict[str, list[Row]] = {"t": [], "u": []}
    found = []
    for _ in range(6):
        batch: dict[str, Changes] = {}
        for name, rows in live.items():
            gone = [row for row in rows if random.random() < (0.9 if name == "u" else 0.3)]
            count = random.choice((1, 1, 2))  # a file without rows would be no batch
            come = [(random.randrange(5), random.choice((0, 1, 2, None))) for _ in range(count)]
            batch[name] = [(row, -1) for row in gone] + [(row, 1) for row in come]
            for row in gone:
                rows.remove(row)
            rows += come
        found.append(batch)
    return found


def _checked(sql: str, batches: list[dict[str, Changes]], seed: int) -> bool:
    """Run until the answer is an error; return whether it was."""
    with own_folder() as folder:
        for number, batch in enumerate(batches):
            for name, changes in batch.items():
                _write(folder / name, number, changes)
        course = Course((1,), twice=frozenset({1}), restart=frozenset({2}), seed=seed)
        run = Product(_document(sql, folder), SMALL, course)
        seen, made = Changelog(folder / "out"), run.batches()
        live: dict[str, Counter[Row]] = {"t": Counter(), "u": Counter()}
        for batch in batches:
            for name, changes in batch.items():
                for row, weight in changes:
                    live[name][row] += weight
            want = _answer(sql, live)
            if want is None:
                for _ in range(2):  # again: in the same way
                    with pytest.raises(SqlError, match="stands for a value, and has several rows") as error:
                        next(made)
                    assert error.value.line == 1
                    made = run.batches()
                return True
            seen.batch(next(made), units_apart=False)
            assert Counter({tuple(row): times for row, times in seen.answer.items()}) == want
    return False


@pytest.mark.parametrize("sql", QUERIES[:5])
def test_what_cancels_is_no_error(sql: str) -> None:
    assert _checked(sql, list(CANCELLED), 0)


@pytest.mark.slow
@pytest.mark.parametrize("sql", QUERIES)
def test_several_rows(sql: str) -> None:
    found = [_checked(sql, _drawn(Random(seed)), seed) for seed in range(6)]
    assert any(found)
