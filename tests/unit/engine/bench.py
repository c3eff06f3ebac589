"""The stages of a query run by hand, batch after batch, in one process and without Spark; DuckDB answers the same SQL."""

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import duckdb
import orjson
import pyarrow as pa

from joinlib.compiled import compiled, with_tables
from joinlib.engine import checks as inputs
from joinlib.engine.composer import Composer
from joinlib.engine.exchange import passed, split_by_stage
from joinlib.engine.forward import forwarding
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
        join: Mapping[str, Any] | None = None,
    ) -> None:
        self.join = {"units": UNITS, **(join or {})}
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
            "join": self.join,
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
        onward = None if last else forwarding(task, self.batch, 0)
        pipeline = task.pipeline
        store = pipeline.store_of(task.number)
        hops = [
            n for n in range(task.number + 1, len(pipeline.stages)) if pipeline.store_of(n) == task.number
        ]
        for unit, slot in enumerate(slots(UNITS)):
            arrived = [dict(zip(SCHEMA.names, row, strict=True)) for row in sent if row[0] == slot]
            mine, others = split_by_stage(pa.RecordBatch.from_pylist(arrived, SCHEMA), task.number)
            own, passing = _tuples(mine.to_pylist()), _tuples(others.to_pylist())
            key = task.number, unit
            save = partial(_keep, saved, key)
            told = partial(self._told, [(hop, unit) for hop in hops])
            known = task, unit, self.batch, self.saved.get(key), saved.get((store, unit)), told
            if onward is None:
                receipt, _ = attempt(*known).receipt(own, save, sink)
                said += [decode(text) for text in [*passed(others)[0], receipt.encode()]]
                files += receipt.files
            else:
                going += passing
                made.append(attempt(*known).onward(own, save, onward))
        sink.close()
        if onward is not None:
            sent = onward.send(chain.from_iterable(made))
            going += [row for rows in sent for row in _tuples(rows.to_pylist())]
        return going, files, said

    def _told(self, keys: list[tuple[int, int]]) -> list[bytes]:
        return [self.saved[key] for key in keys if key in self.saved]

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
