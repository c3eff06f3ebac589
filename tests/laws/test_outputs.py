"""Several outputs of one query: after each batch every output holds DuckDB's answer over the same rows, whatever dies in between."""

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from joinlib.model.fingerprint import compare, fingerprint
from joinlib.model.stage import GroupStage
from joinlib.plan import pipeline_of
from joinlib.spec import StreamJoin
from tests.laws.changelog import pairs, read
from tests.laws.document import written
from tests.laws.harness import SMALL
from tests.laws.product import Course, Product, own_folder, tells

OP = "_change_type"
UPSERTED = ("latest",)  # as Kafka and PostgreSQL take it, shown in files
WEIGHTS = {"insert": 1, "update_postimage": 1, "delete": -1, "update_preimage": -1}
SCHEMAS = {
    "orders": "id BIGINT, city STRING",
    "payments": f"id BIGINT, amount BIGINT, {OP} STRING",
    "stock": "city STRING, n BIGINT",
}
VIEWS = {
    "paid": "SELECT o.id, o.city, p.amount FROM orders o JOIN payments p ON o.id = p.id",
    "placed": "SELECT o.id, o.city, s.n FROM orders o JOIN stock s ON o.city = s.city",
    "sums": "SELECT city, sum(amount) AS total, count(*) AS k FROM paid GROUP BY city",
}
# One whose result only grows beside those that change; a view that all name, one below another, one that is not named
# twice; a result that is a view itself, filtered, computed; an equal definition in two texts.
OUTPUTS: dict[str, dict[str, Any]] = {
    "rows": {"sql": "SELECT id, city, n FROM placed"},
    "cities": {"sql": "SELECT city, total, k FROM sums WHERE k > 1", "mode": "changelog", "key": ["city"]},
    "whole": {"sql": "SELECT * FROM paid", "mode": "changelog"},
    "left-over": {
        "sql": "WITH many AS (SELECT id, count(*) AS n FROM placed GROUP BY id) SELECT paid.id, paid.amount + 1 AS more, m.n FROM paid LEFT JOIN many m ON m.id = paid.id",
        "mode": "changelog",
    },
    "latest": {"sql": "SELECT city, total, k FROM sums WHERE city IS NOT NULL", "mode": "changelog", "key": ["city"]},
    "again": {"sql": "WITH many AS (SELECT id, count(*) AS n FROM placed GROUP BY id) SELECT max(n) AS most FROM many", "mode": "changelog"},
}  # fmt: skip


def document(folder: Path, names: tuple[str, ...], **more: Any) -> StreamJoin:
    """The spec of these outputs."""
    files = {n: {"path": n, "maxFilesPerBatch": 1, "orderBy": "name"} for n in SCHEMAS}
    inputs: dict[str, Any] = {n: {"schema": SCHEMAS[n], "files": files[n]} for n in SCHEMAS}
    inputs["payments"]["changes"] = {"op": OP}
    outputs = {n: {**OUTPUTS[n], "files": {"path": f"out/{n}"}} for n in names}
    spec = {
        "inputs": inputs,
        "views": VIEWS,
        "outputs": outputs,
        "checkpoint": {"path": "checkpoint", "sync": False},
        "join": {"units": 4},
        **more,
    }
    return upserted(written(spec, folder))


def upserted(document: StreamJoin) -> StreamJoin:
    """The same, in which some outputs take the last row of each key."""
    outputs = {
        name: output.model_copy(update={"mode": "upsert"}) if name in UPSERTED else output
        for name, output in document.spec.outputs.items()
    }
    return document.model_copy(update={"spec": document.spec.model_copy(update={"outputs": outputs})})


class World:
    """The inputs, a file for each batch, and what DuckDB says of them."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.random = folder, Random(seed)
        self.live: dict[str, list[tuple[Any, ...]]] = {n: [] for n in SCHEMAS}
        for name in SCHEMAS:
            (folder / name).mkdir()

    def batch(self, number: int) -> None:
        """One file of each input."""
        draw, live = self.random, self.live
        made: dict[str, list[tuple[Any, ...]]] = {n: [] for n in SCHEMAS}
        for _ in range(6):
            made["orders"].append((draw.randrange(5), draw.choice(["a", "b", None])))
            made["stock"].append((draw.choice(["a", "b", "c"]), draw.randrange(3)))
            if live["payments"] and draw.random() < 0.4:
                gone = live["payments"].pop(draw.randrange(len(live["payments"])))
                made["payments"].append((*gone, "delete"))
            else:
                made["payments"].append((draw.randrange(5), draw.randrange(9), "insert"))
                live["payments"].append(made["payments"][-1][:-1])
        live["orders"] += made["orders"]
        live["stock"] += made["stock"][:1]
        made["stock"] = made["stock"][:1]
        for name, rows in made.items():
            kinds = [pa.int64() if "BIGINT" in c else pa.string() for c in SCHEMAS[name].split(",")]
            names = [c.split()[0] for c in SCHEMAS[name].split(",")]
            columns = [pa.array([r[i] for r in rows], kind) for i, kind in enumerate(kinds)]
            pq.write_table(pa.table(columns, names=names), self.folder / name / f"{number:03d}.parquet")

    def answers(self, names: tuple[str, ...]) -> dict[str, Counter[Any]]:
        """What each output holds now."""
        db = duckdb.connect()
        for name, rows in self.live.items():
            columns = ", ".join(SCHEMAS[name].replace("STRING", "VARCHAR").split(",")[:2])
            db.execute(f"CREATE TABLE {name} ({columns})")
            if rows:
                db.executemany(f"INSERT INTO {name} VALUES (?, ?)", rows)
        for name, sql in VIEWS.items():
            db.execute(f"CREATE VIEW {name} AS {sql}")
        return {name: Counter(db.sql(OUTPUTS[name]["sql"]).fetchall()) for name in names}


def held(folder: Path, batch: int, contents: Counter[Any]) -> None:
    """Add what a batch has brought."""
    for file in sorted((folder / f"batch={batch}").glob("*.parquet")):
        table = pq.ParquetFile(file).read()
        words = table.column(OP).to_pylist() if OP in table.column_names else ["insert"] * table.num_rows
        shown = [c for c in table.column_names if c not in (OP, "_batch")]
        for word, row in zip(words, zip(*(table.column(c).to_pylist() for c in shown)), strict=True):
            contents[row] += WEIGHTS[word]
    if folder.name in UPSERTED:  # all that a batch says of a key comes out of one unit
        pairs([row for file in folder.glob(f"batch={batch}/*.parquet") for row in read(file, batch)], (0,))


def holds(names: tuple[str, ...], course: Course, seed: int) -> None:
    """Every output is right after every batch."""
    with own_folder() as folder:
        world, expected = World(folder, seed), []
        for batch in range(6):
            world.batch(batch)
            expected.append(world.answers(names))
        spec = document(folder, names)
        tells(spec)
        run = Product(spec, SMALL, course)
        found: dict[str, Counter[Any]] = {name: Counter() for name in names}
        for batch in run.batches():
            for name in names:
                held(folder / "out" / name, batch, found[name])
                assert {k: n for k, n in found[name].items() if n} == dict(expected[batch][name]), name
        assert run.batch == len(expected)


COURSES = [
    Course(),
    Course((1, 2, 4), frozenset([2]), frozenset([3]), 1),
    Course((2, 1), frozenset([4]), seed=2, torn=frozenset([0, 3])),
]


@pytest.mark.parametrize("course", COURSES, ids=["plain", "restarts", "torn"])
@pytest.mark.parametrize("names", [tuple(OUTPUTS), ("whole", "rows")], ids=["six", "two"])
def test_contents(names: tuple[str, ...], course: Course) -> None:
    """With other partitions, restarts, tasks that run twice, and deaths between the outputs."""
    holds(names, course, 7)


def test_what_several_name_is_planned_once(tmp_path: Path) -> None:
    """The view below a view and the view itself are one join; each result has a stage that nobody reads."""
    plan = pipeline_of(document(tmp_path, ("cities", "whole")))
    assert [len(stage.operators) for stage in plan.stages].count(1) == 1, "one join"
    assert {r.name: r.stage for r in plan.results}.keys() == {"cities", "whole"}
    assert not [n for r in plan.results for n in plan.readers(r.stage)], "nobody reads a result"
    assert set(plan.levels[-1]) == {r.stage for r in plan.results}, "they come at the same time"


def test_equal_parts_of_two_texts_are_one(tmp_path: Path) -> None:
    """The same CTE in both is computed once, though they give its columns to different joins."""
    plan = pipeline_of(document(tmp_path, ("left-over", "again")))
    groups = [n for n, stage in enumerate(plan.stages) if isinstance(stage, GroupStage)]
    assert len(groups) == 2, "many, and its maximum"
    assert len(list(plan.readers(groups[0]))) == 2
    assert [r.name for r in plan.results] == ["left-over", "again"]


def test_another_set_of_outputs_is_refused(tmp_path: Path) -> None:
    """Its state is not that of the checkpoint, which held one output without a name or others."""

    def marks(*names: str) -> dict[str, Any]:
        found = fingerprint(pipeline_of(document(tmp_path, names)))
        return orjson.loads(orjson.dumps(found))  # type: ignore[no-any-return]

    two = marks("cities", "whole")
    assert compare(two, marks("cities", "whole")) == []
    for other in (marks("cities"), marks("cities", "whole", "again")):
        (why,) = compare(two, other)
        assert why.startswith("the outputs were cities, whole and are cities"), why
    single = {name: value for name, value in two.items() if name != "results"}
    (why,) = compare(single, two)
    assert why.startswith("the outputs were one without a name and are cities, whole")
