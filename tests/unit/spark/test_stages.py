"""Several stages, from source to output, in one process and without Spark; DuckDB answers the same SQL in one piece."""

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import orjson
import pytest

from joinlib.join.layout import delays
from joinlib.join.stage import Pipeline
from joinlib.plan import SourceInput, Stage, build
from joinlib.plan.spec import source
from joinlib.route.config import InputPlan
from joinlib.route.slots import slots
from joinlib.spark.compiled import Compiled, compiled
from joinlib.spark.exchange import apart, receipt_of
from joinlib.spark.publish import publish
from joinlib.spark.receipt import Receipt, decode
from joinlib.spark.source import Reader
from joinlib.spark.task import JoinTask
from joinlib.spark.unit import UnitTask
from joinlib.spark.wire import SCHEMA
from joinlib.spec import StreamJoin, parse
from joinlib.state.tuning import Tuning

TUNING = Tuning(
    spool_bytes=200, file_bytes=200, seal_rows=40, merge_segments=2, max_segments=8, max_runs=2, frame_rows=50
)
UNITS = 4
Sent = tuple[Any, ...]


def chained(document: StreamJoin, *queries: str) -> Pipeline:
    """A stage for each query; `stage0` in a later one is the rows of the first."""
    known: dict[str, SourceInput] = {n: source(i) for n, i in document.spec.inputs.items()}
    stages: list[Stage] = []
    for sql in queries:
        named = {n: i for n, i in known.items() if f" {n} " in f"{sql} "}
        stage = build(sql, named, units=document.spec.join.units)
        inputs = tuple(
            replace(i, upstream=int(i.source[5:]), source=f"${i.source}", behind=_behind(stages, i))
            if i.source.startswith("stage")
            else i
            for i in stage.inputs
        )
        stages.append(replace(stage, inputs=inputs))
        time = next((c.name for c in stage.select if c.name == "t"), None)
        known[f"stage{len(stages) - 1}"] = SourceInput(stage.schema, time, 0, None, "stream")
    return Pipeline(tuple(stages))


def _behind(stages: list[Stage], plan: InputPlan) -> tuple[tuple[str, int], ...]:
    stage = stages[int(plan.source[5:])]
    known = delays(stage.tree, stage.inputs, stage.above)
    found = {c.name: known.get(c.value.column or "") for c in stage.select}
    return tuple((f"{plan.alias}.{name}", late) for name, late in found.items() if late is not None)


class Bench:
    """Several stages that are run by hand, batch after batch."""

    def __init__(self, folder: Path, schemas: Mapping[str, str], timed: bool, *queries: str) -> None:
        self.folder, self.queries, self.schemas, self.db = folder, queries, schemas, duckdb.connect()
        time = {"eventTime": {"column": "t", "delay": "1m"}} if timed else {}
        for name in schemas:
            (folder / name).mkdir()
        self.document = self._document(
            {
                n: {"schema": s, "files": {"path": n, "maxFilesPerBatch": 1}, **time}
                for n, s in schemas.items()
            }
        )
        self.plan = self._compiled()
        self.offset = Reader(self.plan.source).initialOffset()
        self.batch = 0
        self.saved: dict[tuple[int, int], bytes] = {}  # manifests, by stage and slot
        self.receipts: list[list[Receipt]] = []  # of each batch

    def _document(self, inputs: dict[str, Any]) -> StreamJoin:
        spec = {
            "sql": self.queries[-1],
            "inputs": inputs,
            "output": {"files": {"path": "out"}},
            "checkpoint": {"path": "ck"},
            "join": {"units": UNITS},
        }
        head = {"apiVersion": "streamjoin.dev/v1alpha1", "kind": "StreamJoin", "metadata": {"name": "bench"}}
        return parse(orjson.dumps({**head, "spec": spec}).decode(), "spec.yaml", self.folder)

    def _compiled(self) -> Compiled:
        stages = chained(self.document, *self.queries) if len(self.queries) > 1 else None
        return compiled(self.document, 2, TUNING, stages)

    def write(self, name: str, file: int, rows: list[tuple[Any, ...]]) -> None:
        marks = ", ".join("?" * len(rows[0]))
        self.db.execute(f"CREATE OR REPLACE TABLE made ({self.schemas[name].replace('STRING', 'VARCHAR')})")
        self.db.executemany(f"INSERT INTO made VALUES ({marks})", rows)
        self.db.execute(f"COPY made TO '{self.folder / name / f'{file:03d}'}.parquet' (FORMAT parquet)")

    def run(self, twice: frozenset[tuple[int, int]] = frozenset()) -> None:
        """Every batch that there is. `twice`: (batch, stage) whose units run, and run again from the old manifests."""
        reader = Reader(self.plan.source)
        reader.prepareForTriggerAvailableNow()
        while (end := reader.latestOffset(self.offset)) != self.offset:
            end = orjson.loads(orjson.dumps(end))
            parts = reader.partitions(self.offset, end)
            sent = [row for part in parts for rows in reader.read(part) for row in _tuples(rows.to_pylist())]
            saved: dict[tuple[int, int], bytes] = {}
            for task in self.plan.join.chain():
                for _ in range(1 + ((self.batch, task.number) in twice)):
                    arrived, files, said = self._stage(task, sent, saved)
                sent = arrived
            self.saved = saved
            publish(self.folder / "out", self.batch, files)
            reader.commit(end)
            self.receipts.append(said)
            self.offset, self.batch = end, self.batch + 1

    def _stage(
        self, task: JoinTask, sent: list[Sent], saved: dict[tuple[int, int], bytes]
    ) -> tuple[list[Sent], list[str], list[Receipt]]:
        """All units of a stage: what goes on, and at the end files and receipts."""
        going: list[Sent] = []
        files: list[str] = []
        said: list[Receipt] = []
        for slot in slots(UNITS):
            own, passing = apart([row for row in sent if row[0] == slot], task.number)
            key = task.number, slot
            unit, save = (
                UnitTask(task, slot, self.batch, 0, self.saved.get(key)),
                partial(saved.__setitem__, key),
            )
            if task.last:
                receipt, _ = unit.receipt(own, save)
                said += [decode(receipt_of(row)) for row in passing] + [decode(receipt.encode())]
                files += receipt.files
            else:
                going += passing
                going += [row for rows in unit.onward(own, save) for row in _tuples(rows.to_pylist())]
        return going, files, said

    @property
    def state_rows(self) -> list[int]:
        """Of each stage, now."""
        stages = len(self.plan.pipeline.stages)
        return [
            sum(r.state_rows for r in self.receipts[-1] if r.unit // UNITS == stage)
            for stage in range(stages)
        ]

    def output(self) -> Counter[tuple[Any, ...]]:
        files = [str(f) for f in (self.folder / "out").glob("batch=*/*.parquet")]
        return Counter(
            self.db.sql(f"FROM read_parquet({files}, hive_partitioning=false)").fetchall() if files else []
        )

    def expected(self) -> Counter[tuple[Any, ...]]:
        for name in self.schemas:
            self.db.execute(f"CREATE OR REPLACE VIEW {name} AS FROM '{self.folder / name}/*.parquet'")
        *before, last = self.queries
        parts = ", ".join(f"stage{n} AS ({sql})" for n, sql in enumerate(before))
        return Counter(self.db.sql(f"WITH {parts} {last}" if before else last).fetchall())


def _tuples(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in SCHEMA.names) for row in rows]


PLAIN = {
    "orders": "id BIGINT, customer BIGINT, v BIGINT",
    "lines": "id BIGINT, item STRING, n BIGINT",
    "customers": "customer BIGINT, nation STRING",
    "items": "item STRING, price BIGINT",
}
FIRST = "SELECT o.id AS id, o.customer AS customer, o.v AS v, l.item AS item, l.n AS n FROM orders o JOIN lines l ON o.id = l.id"
SECOND = (
    "SELECT a.id AS id, a.v AS v, a.item AS item, a.n AS n, c.nation AS nation FROM stage0 a"
    " JOIN customers c ON a.customer = c.customer"
)
THIRD = (
    "SELECT b.id AS id, b.nation AS nation, b.n * i.price AS paid FROM stage1 b"
    " JOIN items i ON b.item = i.item AND b.v < i.price"
)


def _some(draw: random.Random, top: int) -> int | None:
    return draw.choice([None, *range(top)])


def fill(bench: Bench, files: range) -> None:
    """A file of each input for each number."""
    for file in files:
        draw = random.Random(file)
        number = partial(_some, draw)
        bench.write("orders", file, [(draw.randrange(90), number(9), draw.randrange(50)) for _ in range(40)])
        bench.write(
            "lines", file, [(number(90), f"i{draw.randrange(7)}", draw.randrange(5)) for _ in range(60)]
        )
        bench.write("customers", file, [(number(9), f"n{draw.randrange(3)}") for _ in range(3)])
        bench.write("items", file, [(f"i{draw.randrange(7)}", draw.randrange(60)) for _ in range(4)])


def test_three_stages_in_several_batches(tmp_path: Path) -> None:
    """Three keys, NULLs among them, a condition over stages: DuckDB's answer, and figures that count each row once."""
    bench = Bench(tmp_path, PLAIN, False, FIRST, SECOND, THIRD)
    fill(bench, range(4))
    bench.run(twice=frozenset({(1, 0), (2, 1), (3, 2)}))
    assert bench.output() == bench.expected() != Counter()
    fill(bench, range(4, 6))
    bench.run()
    assert bench.output() == bench.expected()
    said = [r for batch in bench.receipts for r in batch]
    assert [sum(column) for column in zip(*(r.rows_in for r in said), strict=True)][:1] == [240]
    assert sum(r.rows_out for r in said) == bench.output().total()
    assert all({r.unit for r in batch} == set(range(3 * UNITS)) for batch in bench.receipts)
    assert all(bench.state_rows)
    assert list((tmp_path / "ck" / "state" / "1").glob("*/in*")), "large blocks go as files"


PLANNED = (
    "SELECT o.id AS id, c.nation AS nation, l.n * i.price AS paid FROM orders o JOIN lines l ON o.id = l.id"
    " JOIN customers c ON o.customer = c.customer JOIN items i ON l.item = i.item AND o.v < i.price"
)


def test_the_planner_makes_the_stages(tmp_path: Path) -> None:
    """The same query in one piece."""
    bench = Bench(tmp_path, PLAIN, False, PLANNED)
    fill(bench, range(4))
    bench.run()
    assert len(bench.plan.pipeline.stages) == 3
    assert bench.output() == bench.expected() != Counter()


TIMED = {
    "a": "k BIGINT, v BIGINT, t TIMESTAMP",
    "b": "k BIGINT, j BIGINT, t TIMESTAMP",
    "c": "j BIGINT, w BIGINT, t TIMESTAMP",
}
NEAR = (
    "SELECT a.v AS v, b.j AS j, a.t AS t FROM a JOIN b ON a.k = b.k"
    " AND b.t BETWEEN a.t - INTERVAL 4 MINUTES AND a.t + INTERVAL 4 MINUTES"
)
LAST = (
    "SELECT s.v AS v, s.j AS j, c.w AS w FROM stage0 s {}JOIN c ON s.j = c.j"
    " AND c.t BETWEEN s.t - INTERVAL 6 MINUTES AND s.t + INTERVAL 3 MINUTES"
)


@pytest.mark.parametrize("kind", ["", "LEFT ", "FULL "])
def test_time_goes_on_from_stage_to_stage(tmp_path: Path, kind: str) -> None:
    """What is too old is dropped in both stages, nothing that can still match is; the end lets the outer rows out."""
    bench = Bench(tmp_path, TIMED, True, NEAR, LAST.format(kind))
    start = datetime(2026, 1, 1)  # noqa: DTZ001 - as in most files, no zone
    for file in range(12):
        for name in TIMED:
            draw = random.Random(f"{file}{name}")
            bench.write(
                name,
                file,
                [
                    (
                        draw.randrange(5),
                        draw.randrange(5) if name == "b" else at,
                        start + timedelta(seconds=6 * at + draw.randrange(55)),
                    )
                    for at in range(file * 20, file * 20 + 20)
                ],
            )
    bench.run()
    assert bench.output() == bench.expected() != Counter()
    assert [sum(r.late_total[i] for r in bench.receipts[-1]) for i in range(3)] == [0, 0, 0]
    most = [
        max(sum(r.state_rows for r in batch if r.unit // UNITS == n) for batch in bench.receipts)
        for n in (0, 1)
    ]
    joined = len(bench.db.sql(NEAR))
    assert most[0] < 200 < 480
    assert most[1] < joined / 2
