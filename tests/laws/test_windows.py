"""Law: windows of time, lists and as-of joins are right after each batch, and what is final comes out early.

The product's own path: some batches run twice, some after a restart; told by DuckDB in other words of SQL.
"""

import datetime as dt
import random
from collections import Counter
from pathlib import Path

import duckdb
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from joinlib.errors import SpecError
from joinlib.model.tuning import Tuning
from joinlib.spec import parse
from joinlib.spec.model import StreamJoin
from tests.laws.product import Course, Product
from tests.laws.rewrites.test_time import CASES, windows

BEGIN = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
KINDS = {"k": pa.int32(), "v": pa.int32(), "ts": pa.timestamp("us", "UTC"), "tags": pa.list_(pa.string())}
Rows = list[tuple[object, ...]]
Bag = Counter[tuple[str, ...]]
FILES = 5  # of each input; each is a batch
COURSE = Course((2, 1, 3), frozenset({2}), frozenset({3}), 1)

# Those whose rows can be final before the inputs are closed; others join without a bound of time.
EARLY = (
    "tumble, as a table", "hop", "cumulate", "window join", "window(), with its fields", "windows of Flink's groups",
    "session_window()", "as of", "as of, left, strictly before, with the rows of a query", "as of, with a tolerance",
    "versions", "LATERAL VIEW OUTER, with positions",
)  # fmt: skip
# Half of them by what is final, the others after each batch; the planner is the same for both.
RUN = [n for n in CASES if n not in ("as of, without a key, after a join", "session, as a table")]
FINAL = [n for n in RUN if n in EARLY or n.startswith("two")]
WINDOW = f"(SELECT * FROM a JOIN {windows(30, 30)} w ON a.ts >= w.s AND a.ts < w.e)"
DISTINCT = (
    "SELECT DISTINCT k, window_end FROM TUMBLE(a, ts, INTERVAL '30' SECONDS)",
    f"SELECT DISTINCT k, e FROM {WINDOW}",
)
TWICE = (
    (
        "SELECT window_end, max(n) AS most FROM (SELECT k, window_start, window_end, count(*) AS n FROM"
        " TUMBLE(a, ts, INTERVAL '30' SECONDS) GROUP BY k, window_start, window_end) GROUP BY window_start, window_end"
    ),
    f"SELECT e, max(n) FROM (SELECT k, s, e, count(*) AS n FROM {WINDOW} GROUP BY k, s, e) GROUP BY s, e",
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def events(draw: random.Random, files: int, nulls: bool) -> dict[str, list[Rows]]:
    """Rows of each file of each input; no row is late, and of b there is one for each key and time."""
    found: dict[str, list[Rows]] = {"a": [], "b": []}
    seen = set()
    for number in range(files):
        for name, made in found.items():
            rows: Rows = []
            for _ in range(draw.randrange(1, 10)):
                ts = BEGIN + dt.timedelta(seconds=number * 40 + 5 * draw.randint(0, 12))
                at = None if nulls and draw.random() < 0.05 else ts
                row = (
                    draw.choice([1, 2, 3, None]),
                    draw.choice([1, 2, 3, None]),
                    at,
                    draw.choice([None, [], ["x"], ["x", "y"]]),
                )
                if name == "a" or row[0::2][:2] not in seen:
                    rows.append(row)
                seen.add(row[0::2][:2] if name == "b" else None)
            made.append(rows)
    return found


def document(folder: Path, sql: str, mode: str, given: dict[str, list[Rows]]) -> StreamJoin:
    for name, files in given.items():
        (folder / name).mkdir()
        for number, rows in enumerate(files):
            pq.write_table(table(rows), folder / name / f"{number:03d}.parquet")
    inputs = {
        name: {
            "schema": "k INT, v INT, ts TIMESTAMP, tags ARRAY<STRING>",
            "files": {"path": name, "orderBy": "name", "maxFilesPerBatch": 1},
            "eventTime": {"column": "ts", "delay": "60s"},
        }
        for name in given
    }
    spec = {
        "sql": sql,
        "inputs": inputs,
        "output": {"mode": mode, "files": {"path": "out"}},
        "checkpoint": {"path": "ck", "sync": False},
        "join": {"units": 4},
    }
    whole = {
        "apiVersion": "streamjoin.dev/v1alpha1",
        "kind": "StreamJoin",
        "metadata": {"name": "x"},
        "spec": spec,
    }
    return parse(orjson.dumps(whole).decode(), "x.yaml", folder)


def table(rows: Rows) -> pa.Table:
    columns = {
        name: pa.array([row[at] for row in rows], kind) for at, (name, kind) in enumerate(KINDS.items())
    }
    return pa.table(columns)


def expected(sql: str, rows: dict[str, Rows]) -> Bag:
    con = duckdb.connect()
    for name, given in rows.items():
        found = table(given)
        con.register(name, found.set_column(2, "ts", found["ts"].cast(pa.timestamp("us"))))
    return Counter(tuple(map(said, row)) for row in con.execute(sql).fetchall())


def said(value: object) -> str:
    return str(value.replace(tzinfo=None)) if isinstance(value, dt.datetime) else str(value)


def contents(folder: Path) -> Bag:
    """What the changes sent so far come to."""
    found: Bag = Counter()
    for file in sorted((folder / "out").glob("batch=*/*.parquet")):
        for row in pq.read_table(file, partitioning=None).to_pylist():
            came = row.get("_change_type", "insert") in ("insert", "update_postimage")
            found[tuple(said(v) for name, v in row.items() if not name.startswith("_"))] += 1 if came else -1
    return Counter({row: count for row, count in found.items() if count})


def whole(given: dict[str, list[Rows]]) -> dict[str, Rows]:
    """All rows of each input, of all its files."""
    return {name: [row for rows in files for row in rows] for name, files in given.items()}


def so_far(run: Product, given: dict[str, list[Rows]]) -> dict[str, Rows]:
    """Those that have been read; none of an input that the query does not name."""
    return {n: rows[: run.read(n)] if n in run.composer.inputs else [] for n, rows in whole(given).items()}


@pytest.mark.parametrize("name", [n for n in RUN if n not in FINAL])
def test_right_after_each_batch(name: str, folder: Path) -> None:
    ours, theirs = CASES[name]
    given = events(random.Random(name), FILES, nulls=True)
    run = Product(document(folder, ours, "changelog", given), Tuning(), COURSE)
    for _ in run.batches():
        assert contents(folder) == expected(theirs, so_far(run, given))
    assert run.batch == FILES


@pytest.mark.parametrize("name", [*FINAL, "distinct", "twice"])
def test_what_comes_out_is_final(name: str, folder: Path) -> None:
    """And all of it has come out at the end."""
    ours, theirs = {"distinct": DISTINCT, "twice": TWICE}.get(name) or CASES[name]
    given = events(random.Random(name), 6, nulls=not name.startswith(("as of", "versions")))
    at_the_end = expected(theirs, whole(given))
    run = Product(document(folder, ours, "append", given), Tuning(), COURSE)
    early: list[int] = []
    for _ in run.batches():
        assert not contents(folder) - at_the_end
        early.append(sum(contents(folder).values()))
    assert contents(folder) == at_the_end
    if name in (*EARLY, "distinct", "twice"):
        assert early[-2] > 0, "some rows are final before the inputs are closed"


def test_what_never_is_final_is_refused_for_append(folder: Path) -> None:
    given = events(random.Random(1), 1, nulls=False)
    with pytest.raises(SpecError, match="append takes rows that are final"):
        Product(document(folder, CASES["as of, the next"][0], "append", given), Tuning(), COURSE)
