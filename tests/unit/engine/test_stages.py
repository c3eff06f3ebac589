"""Several stages, from source to output, in one process and without Spark; DuckDB answers the same SQL in one piece."""

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import duckdb
import orjson
import pyarrow as pa
import pytest

from joinlib.compiled import compiled, with_tables
from joinlib.engine import checks as inputs
from joinlib.engine.composer import Composer
from joinlib.engine.exchange import Sender, receipts_of, split_by_stage
from joinlib.engine.forward import Forwarder
from joinlib.engine.kinds import attempt
from joinlib.engine.reading import read
from joinlib.engine.receipt import Receipt, decode
from joinlib.engine.task import JoinTask
from joinlib.engine.wire import SCHEMA
from joinlib.model.tuning import Tuning
from joinlib.route.slots import slots
from joinlib.sink.publish import publish
from joinlib.sink.sink import open_sink
from joinlib.spec import StreamJoin, parse

TUNING = Tuning(
    spool_bytes=200, file_bytes=200, seal_rows=40, merge_segments=2, max_segments=8, max_runs=2, frame_rows=50
)
UNITS = 4
STREAM = {"maxFilesPerBatch": 1}
Sent = tuple[Any, ...]


class Bench:
    """Several stages that are run by hand, batch after batch."""

    def __init__(
        self,
        folder: Path,
        schemas: Mapping[str, str],
        timed: bool,
        sql: str,
        *tables: str,
        mode: str = "append",
        changing: Mapping[str, Any] | None = None,
    ) -> None:
        self.folder, self.sql, self.schemas, self.db = folder, sql, schemas, duckdb.connect()
        time = {"eventTime": {"column": "t", "delay": "1m"}} if timed else {}
        self.batch = 0
        self.saved: dict[tuple[int, int], bytes] = {}  # manifests, by stage and unit
        self.receipts: list[list[Receipt]] = []  # of each batch
        for name in schemas:
            (folder / name).mkdir()
        self.document = self._document(
            {
                n: {"schema": s, "files": {"path": n, **({} if n in tables else STREAM)}, **time}
                | ({"role": "table"} if n in tables else {})
                | ({"changes": changing[n]} if changing and n in changing else {})
                for n, s in schemas.items()
            },
            mode,
        )
        self.plan = compiled(self.document, 2, TUNING)
        self.offset = Composer(self.plan.source).initial()

    def _document(self, inputs: dict[str, Any], mode: str) -> StreamJoin:
        spec = {
            "sql": self.sql,
            "inputs": inputs,
            "output": {"mode": mode, "files": {"path": "out"}},
            "checkpoint": {"path": "ck"},
            "join": {"units": UNITS},
        }
        head = {"apiVersion": "streamjoin.dev/v1alpha1", "kind": "StreamJoin", "metadata": {"name": "bench"}}
        return parse(orjson.dumps({**head, "spec": spec}).decode(), "spec.yaml", self.folder)

    def write(self, name: str, file: int, rows: list[tuple[Any, ...]]) -> None:
        marks = ", ".join("?" * len(rows[0]))
        self.db.execute(f"CREATE OR REPLACE TABLE made ({self.schemas[name].replace('STRING', 'VARCHAR')})")
        self.db.executemany(f"INSERT INTO made VALUES ({marks})", rows)
        self.db.execute(f"COPY made TO '{self.folder / name / f'{file:03d}'}.parquet' (FORMAT parquet)")

    def run(self, twice: frozenset[tuple[int, int]] = frozenset()) -> None:
        """Every batch that there is. `twice`: (batch, stage) whose units run, and run again from the old manifests."""
        self.plan = with_tables(self.plan, inputs.tables(self.plan.source.tables))
        composer = Composer(self.plan.source)
        composer.bound()
        while (end := composer.after(self.offset)) != self.offset:
            end = orjson.loads(orjson.dumps(end))
            parts = composer.parts(self.offset, end)
            read_rows = [rows for part in parts for rows in read(self.plan.source, part, self.batch)]
            sent = [row for rows in read_rows for row in _tuples(rows.to_pylist())]
            saved: dict[tuple[int, int], bytes] = {}
            for task in chain.from_iterable(self.plan.join.levels()):
                for _ in range(1 + ((self.batch, task.number) in twice)):
                    arrived, files, said = self._stage(task, sent, saved)
                sent = arrived
            self.saved = saved
            publish(self.folder / "out", self.batch, files, "")
            composer.commit(end)
            self.receipts.append(said)
            self.offset, self.batch = end, self.batch + 1

    def _stage(
        self, task: JoinTask, sent: list[Sent], saved: dict[tuple[int, int], bytes]
    ) -> tuple[list[Sent], list[str], list[Receipt]]:
        """All units of a stage: what goes on, and at the end files and receipts."""
        going: list[Sent] = []
        files: list[str] = []
        said: list[Receipt] = []
        made: list[Iterator[pa.RecordBatch]] = []
        last = task.number == len(self.plan.pipeline.stages) - 1
        sink = open_sink(
            task.sink, task.pipeline.schema, task.tuning, partition=0, batch=self.batch, attempt=0
        )
        onward = None if last else Forwarder(task, self.batch, 0)
        for unit, slot in enumerate(slots(UNITS)):
            arrived = [dict(zip(SCHEMA.names, row, strict=True)) for row in sent if row[0] == slot]
            mine, others = split_by_stage(pa.RecordBatch.from_pylist(arrived, SCHEMA), task.number)
            own, passing = _tuples(mine.to_pylist()), _tuples(others.to_pylist())
            key = task.number, unit
            save = partial(_keep, saved, key)
            known = task, unit, self.batch, self.saved.get(key)
            if onward is None:
                receipt, _ = attempt(*known).receipt(own, save, sink)
                said += [decode(text) for text in [*receipts_of(others), receipt.encode()]]
                files += receipt.files
            else:
                going += passing
                made.append(attempt(*known).onward(own, save, onward))
        sink.close()
        if onward is not None:
            sent = onward.send(chain.from_iterable(made))
            going += [row for rows in sent for row in _tuples(rows.to_pylist())]
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
        return Counter(self.db.sql(self.sql).fetchall())


def _keep(saved: dict[tuple[int, int], bytes], key: tuple[int, int], manifest: bytes, _: object) -> None:
    saved[key] = manifest


def _tuples(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in SCHEMA.names) for row in rows]


PLAIN = {
    "orders": "id BIGINT, customer BIGINT, v BIGINT",
    "lines": "id BIGINT, item STRING, n BIGINT",
    "customers": "customer BIGINT, nation STRING",
    "items": "item STRING, price BIGINT",
}
SQL = (
    "SELECT o.id AS id, c.nation AS nation, l.n * i.price AS paid FROM orders o JOIN lines l ON o.id = l.id"
    " JOIN customers c ON o.customer = c.customer JOIN items i ON l.item = i.item AND o.v < i.price"
)


def _some(draw: random.Random, top: int) -> int | None:
    return draw.choice([None, *range(top)])


def fill(bench: Bench, files: range) -> None:
    """A file of each input for each number."""
    for file in files:
        draw = random.Random(file)
        number = partial(_some, draw)
        made: dict[str, list[tuple[Any, ...]]] = {
            "orders": [(draw.randrange(90), number(9), draw.randrange(50)) for _ in range(40)],
            "lines": [(number(90), f"i{draw.randrange(7)}", draw.randrange(5)) for _ in range(60)],
            "customers": [(number(9), f"n{draw.randrange(3)}") for _ in range(3)],
            "items": [(f"i{draw.randrange(7)}", draw.randrange(60)) for _ in range(4)],
        }
        for name in bench.schemas:
            bench.write(name, file, made[name])


@pytest.mark.slow
def test_three_stages_in_several_batches(tmp_path: Path) -> None:
    """Three keys, NULLs among them, a condition over stages: DuckDB's answer, and figures that count each row once."""
    bench = Bench(tmp_path, PLAIN, False, SQL)
    assert len(bench.plan.pipeline.stages) == 3
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


def test_a_task_sends_the_rows_of_its_units_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One frame and one block for each unit behind it, as long as it is no larger; else each unit would send its own."""
    bench, frames = Bench(tmp_path, PLAIN, False, SQL), Counter[int]()
    split, pipeline = Sender.split, bench.plan.pipeline
    reads = {
        stage: plan.number for n in range(2) for stage, plan in pipeline.readers(n)
    }  # of the stage before

    def counting(self: Sender, number: int, sequence: int, rows: pa.RecordBatch) -> pa.RecordBatch | None:
        if reads.get(self.number) == number:
            assert sequence == frames[self.number], "each frame of a task has a number of its own"
            frames[self.number] += 1
        return split(self, number, sequence, rows)

    monkeypatch.setattr(Sender, "split", counting)
    bench.plan = replace(bench.plan, join=replace(bench.plan.join, tuning=replace(TUNING, frame_rows=10**6)))
    fill(bench, range(1))
    bench.run()

    assert frames == {1: 1, 2: 1}
    assert bench.output() == bench.expected() != Counter()


def test_tables_are_looked_up_in_the_last_stage(tmp_path: Path) -> None:
    """Versions reach it through the stage before."""
    bench = Bench(tmp_path, PLAIN, False, SQL, "items")
    fill(bench, range(3))
    bench.run()
    assert [len(s.lookups) for s in bench.plan.pipeline.stages] == [0, 1]
    assert bench.output() == bench.expected() != Counter()


TIMED = {
    "a": "k BIGINT, v BIGINT, t TIMESTAMP",
    "b": "k BIGINT, j BIGINT, t TIMESTAMP",
    "c": "j BIGINT, w BIGINT, t TIMESTAMP",
}
NEAR = "a JOIN b ON a.k = b.k AND b.t BETWEEN a.t - INTERVAL 4 MINUTES AND a.t + INTERVAL 4 MINUTES"
LAST = "c ON b.j = c.j AND c.t BETWEEN a.t - INTERVAL 6 MINUTES AND a.t + INTERVAL 3 MINUTES"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["", "LEFT ", "FULL "])
def test_time_goes_on_from_stage_to_stage(tmp_path: Path, kind: str) -> None:
    """What is too old is dropped in both stages, nothing that can still match is; the end lets the outer rows out."""
    bench = Bench(tmp_path, TIMED, True, f"SELECT a.v AS v, b.j AS j, c.w AS w FROM {NEAR} {kind}JOIN {LAST}")
    assert len(bench.plan.pipeline.stages) == 2
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
    joined = len(bench.db.sql(f"SELECT a.v FROM {NEAR}"))
    assert most[0] < 200 < 480
    assert most[1] < joined / 2
