"""Rows with ARRAYs, STRUCTs and MAPs may be deleted: the contents after each batch are the query over what is there."""

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from joinlib.expr.equality import key
from joinlib.spec import StreamJoin
from tests.laws.document import written
from tests.laws.harness import SMALL
from tests.laws.product import Course, Product, own_folder

OP = "_change_type"
A = pa.schema(
    [
        ("k", pa.int64()), ("l", pa.list_(pa.string())), ("r", pa.struct([("f", pa.int32()), ("g", pa.list_(pa.int32()))])),
        ("m", pa.map_(pa.string(), pa.float64())), (OP, pa.string()),
    ]
)  # fmt: skip
B = pa.schema([("k", pa.int64()), ("x", pa.list_(pa.int64()))])
DDL = {
    "a": f"k BIGINT, l ARRAY<STRING>, r STRUCT<f: INT, g: ARRAY<INT>>, m MAP<STRING, DOUBLE>, {OP} STRING",
    "b": "k BIGINT, x ARRAY<BIGINT>",
}
WEIGHTS = {"insert": 1, "update_postimage": 1, "delete": -1, "update_preimage": -1}
LEFT = "SELECT a.k, a.l, a.r, a.m, b.x FROM a LEFT JOIN b ON a.k = b.k"
ONE = "SELECT a.k, a.l, a.r, a.m, transform(a.l, x -> concat(x, '!')) AS x FROM a"


def _row(random: Random) -> tuple[Any, ...]:
    return (
        random.randrange(3),
        random.choice([None, [], ["p"], ["p", None], [None]]),
        random.choice([None, {"f": None, "g": None}, {"f": 1, "g": []}, {"f": None, "g": [1, None]}]),
        random.choice([None, [], [("p", 1.0)], [("p", None), ("q", float("nan"))]]),
    )


def _document(sql: str, folder: Path) -> StreamJoin:
    files = {n: {"path": n, "maxFilesPerBatch": 1, "orderBy": "name"} for n in "ab"}
    inputs: dict[str, Any] = {
        n: {"schema": DDL[n], "files": files[n]} for n in ("ab" if "JOIN" in sql else "a")
    }
    inputs["a"]["changes"] = {"op": OP}
    spec = {
        "sql": sql,
        "inputs": inputs,
        "output": {"mode": "changelog", "files": {"path": "out"}},
        "checkpoint": {"path": "checkpoint", "sync": False},
        "join": {"units": 2},
    }
    return written(spec, folder)


def _answer(sql: str, live: list[tuple[Any, ...]], others: list[tuple[Any, ...]]) -> Counter[Any]:
    if "JOIN" not in sql:
        return Counter(key((*r, None if r[1] is None else [v and v + "!" for v in r[1]])) for r in live)
    found = [(*r, x) for r in live for x in ([o[1] for o in others if o[0] == r[0]] or [None])]
    return Counter(map(key, found))


@pytest.mark.parametrize("sql", [LEFT, ONE], ids=["join", "map"])
@pytest.mark.parametrize("seed", range(3))
def test_contents(sql: str, seed: int) -> None:
    """With restarts, and batches that run twice."""
    random = Random(seed)
    live: list[tuple[Any, ...]] = []
    others: list[tuple[Any, ...]] = []
    expected = []
    with own_folder() as folder:
        for name in "ab":
            (folder / name).mkdir()
        for batch in range(6):
            said = []
            for _ in range(5):
                gone = live.pop(random.randrange(len(live))) if live and random.random() < 0.4 else None
                said.append((*(gone or _row(random)), "insert" if gone is None else "delete"))
                live += [said[-1][:-1]] if gone is None else []
            more = [(random.randrange(9), random.choice([None, [], [1, None]]))]
            others += more
            for name, rows, schema in (("a", said, A), ("b", more, B)):
                columns = [pa.array([r[i] for r in rows], f.type) for i, f in enumerate(schema)]
                pq.write_table(pa.table(columns, schema=schema), folder / name / f"{batch:03d}.parquet")
            expected.append(_answer(sql, live, others))
        run = Product(_document(sql, folder), SMALL, Course((1, 2), frozenset([2]), frozenset([3]), seed))
        found: Counter[Any] = Counter()
        for batch in run.batches():
            for file in sorted((folder / "out" / f"batch={batch}").glob("*.parquet")):
                rows = pq.ParquetFile(file).read()
                words = rows.column(OP).to_pylist()
                values = zip(*(rows.column(c).to_pylist() for c in ("k", "l", "r", "m", "x")))
                for word, row in zip(words, values):
                    found[key(row)] += WEIGHTS[word]
            assert {k: n for k, n in found.items() if n} == dict(expected[batch])
        assert run.batch == len(expected)
