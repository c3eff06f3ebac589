"""A spec, its files and its output in one folder; and DuckDB, which answers the same SQL over the same files.

trial.write("orders", ORDERS, parts)  ─►  trial.run(sql)  ─►  trial.output() == trial.expected(sql)
"""

import os
import time
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import duckdb
import orjson
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import sqlglot
from pyspark.sql import SparkSession

from joinlib.compiled import Compiled, compiled
from joinlib.direct.report import Report
from joinlib.errors import NotReady
from joinlib.model.tuning import Tuning
from joinlib.spark.job import RunningJob, started
from joinlib.spark.spread import Spread
from joinlib.spec import StreamJoin, parse

CORES = 2
Rows = Counter[tuple[Any, ...]]
T = TypeVar("T")
_READ = {"parquet": "read_parquet", "csv": "read_csv", "jsonl": "read_json"}
_TYPES = {
    "BIGINT": pa.int64(),
    "STRING": pa.string(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us"),
    "DOUBLE": pa.float64(),
}


def sized(plan: Compiled) -> Compiled:
    """The plan as this test runs it: in every second test a small batch is one task, in the others none is.

    Which of the two, the test's name decides, so that it is the same each time.
    """
    name = os.environ["PYTEST_CURRENT_TEST"].rpartition(" ")[0]
    if zlib.crc32(name.encode()) % 2:
        return plan
    tuning = replace(plan.source.tuning, small_rows=-1)
    return replace(plan, source=replace(plan.source, tuning=tuning))


def patiently(run: Callable[[], T]) -> T:
    """What `run` returns. On a machine so busy that Spark gave up on a worker: it runs once more."""
    for attempt in range(3):
        try:
            return run()
        except NotReady as busy:
            if "did not start within" not in str(busy) or attempt == 2:
                raise
    raise AssertionError


@dataclass
class Ran:
    """What a run reported."""

    reports: list[Report]
    lag: dict[str, Any]

    @property
    def rows_in(self) -> int:
        return sum(r.rows_in for r in self.reports)

    @property
    def rows_out(self) -> int:
        return sum(r.rows_out for r in self.reports)

    @property
    def late(self) -> tuple[int, ...]:
        return self.reports[-1].late()


@dataclass
class Trial:
    """The folder of one test. Inputs are folders of its own, the output is `out`, the checkpoint `checkpoint`."""

    folder: Path
    spark: SparkSession
    schemas: dict[str, str] = field(default_factory=dict)
    options: dict[str, dict[str, Any]] = field(default_factory=dict)  # of an input, beside its schema
    formats: dict[str, str] = field(default_factory=dict)

    # --- inputs ------------------------------------------------------------------------------------------------------

    def input(self, name: str, schema: str, format: str = "parquet", **options: Any) -> None:
        """Declares a folder of files; `options` go into the input (eventTime=...) or, if they are its, into `files`."""
        (self.folder / name).mkdir(exist_ok=True)
        known = ("orderBy", "maxFilesPerBatch", "onBadFile", "done", "archive")
        files = {k: options.pop(k) for k in known if k in options}
        self.schemas[name], self.formats[name] = schema, format
        self.options[name] = {"files": {"path": name, "format": format, **files}, **options}

    def write(self, name: str, file: str, rows: Sequence[tuple[Any, ...]]) -> Path:
        """One file of an input, whole at once."""
        table = table_of(self.schemas[name], rows)
        path = self.folder / name / f"{file}.{self.formats[name]}"
        aside = path.with_name(f".{path.name}")
        _WRITE[self.formats[name]](table, aside)
        aside.rename(path)
        return path

    def fill(self, name: str, rows: Sequence[tuple[Any, ...]], files: int) -> None:
        """The rows in several files."""
        size = -(-len(rows) // files)
        for at in range(files):
            self.write(name, f"{at:03d}", rows[at * size : (at + 1) * size])

    # --- runs --------------------------------------------------------------------------------------------------------

    def spec(self, sql: str, format: str = "parquet", **more: Any) -> StreamJoin:
        """The spec as a user writes it. `more`: further or other fields, such as join={...}."""
        content = {
            "sql": sql,
            "inputs": {n: {"schema": s, **self.options[n]} for n, s in self.schemas.items()},
            "output": {"files": {"path": "out", "format": format}},
            "checkpoint": {"path": "checkpoint"},
            "batch": {"interval": "0s"},
            "join": {"units": 4},
            **more,
        }
        head = {"apiVersion": "streamjoin.dev/v1alpha1", "kind": "StreamJoin", "metadata": {"name": "trial"}}
        return parse(orjson.dumps({**head, "spec": content}).decode(), "trial.yaml", self.folder)

    def compiled(
        self, sql: str, format: str = "parquet", tuning: Tuning | None = None, **more: Any
    ) -> Compiled:
        return compiled(self.spec(sql, format, **more), CORES, tuning)

    def run(self, sql: str, format: str = "parquet", tuning: Tuning | None = None, **more: Any) -> Ran:
        """All that is there, to the end."""
        return self.run_plan(self.compiled(sql, format, tuning, **more))

    def run_plan(self, plan: Compiled, partitions: int | None = None) -> Ran:
        """The same, of a plan that is there already."""
        reports: list[Report] = []

        def run() -> Ran:
            with started(
                sized(plan),
                reports.append,
                until_done=True,
                cores=CORES,
                spark=self.session(),
                spread=Spread(partitions) if partitions else None,
            ) as job:
                assert job.wait(200), "the run has not ended"
                return Ran(reports, dict(job.lag()))

        return patiently(run)

    def watch(self, plan: Compiled, act: "Callable[[RunningJob, list[Report]], None]") -> Ran:
        """A run without an end, stopped when `act` returns."""
        reports: list[Report] = []
        with started(sized(plan), reports.append, until_done=False, cores=CORES, spark=self.session()) as job:
            act(job, reports)
        return Ran(reports, {})

    def session(self) -> SparkSession:
        """A session of its own: its settings are nobody else's."""
        return self.spark.newSession()

    # --- answers -----------------------------------------------------------------------------------------------------

    @property
    def out(self) -> Path:
        return self.folder / "out"

    def expected(self, sql: str, **others: Sequence[tuple[Any, ...]]) -> Rows:
        """DuckDB's answer over the same files. `others`: rows that stand for those of an input."""
        return rows_of(self._oracle(others).sql(_duck(sql)).to_arrow_table())

    def output(self, sql: str, format: str = "parquet", out: str = "out") -> Rows:
        """What a reader of the output folder sees."""
        files = [str(f) for f in sorted((self.folder / out).glob(f"batch=*/*.{format}"))]
        if not files:
            return Counter()
        db = self._oracle({})
        if format == "parquet":
            return rows_of(
                db.sql(f"SELECT * FROM read_parquet({files!r}, hive_partitioning=false)").to_arrow_table()
            )
        columns = {name: str(kind) for name, kind, *_ in db.execute(f"DESCRIBE {_duck(sql)}").fetchall()}
        more = "" if format == "jsonl" else ", header=true, nullstr=''"
        return rows_of(
            db.sql(
                f"SELECT * FROM {_READ[format]}({files!r}, hive_partitioning=false, columns={columns!r}{more})"
            ).to_arrow_table()
        )

    def _oracle(self, others: dict[str, Sequence[tuple[Any, ...]]]) -> duckdb.DuckDBPyConnection:
        db = duckdb.connect()
        for name, schema in self.schemas.items():
            folder = self.folder / name
            if name in others or not (folder.is_dir() and any(folder.iterdir())):
                db.register(name, table_of(schema, others.get(name, [])))
                continue
            columns = {c: "VARCHAR" if t == "STRING" else t for c, t in _columns(schema)}
            typed = "" if self.formats[name] == "parquet" else f", columns={columns!r}"
            db.execute(
                f"CREATE VIEW {name} AS SELECT * FROM {_READ[self.formats[name]]}('{folder}/*'{typed})"
            )
        return db


def table_of(schema: str, rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    """Rows as Arrow; times without a zone, as most files have them."""
    fields = [pa.field(name, _arrow(kind)) for name, kind in _columns(schema)]
    columns = list(zip(*rows, strict=True)) or [()] * len(fields)
    return pa.table(
        [pa.array(c, f.type) for c, f in zip(columns, fields, strict=True)], schema=pa.schema(fields)
    )


def rows_of(table: pa.Table) -> Rows:
    """A multiset of rows; instants as microseconds, NaN equal to itself."""
    return Counter(zip(*(_plain(c) for c in table.columns), strict=True))


def _plain(column: pa.ChunkedArray) -> list[Any]:
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us")).cast(pa.int64())
    return ["NaN" if v != v else v for v in column.to_pylist()]


def _columns(schema: str) -> list[tuple[str, str]]:
    return [tuple(c.split(" ", 1)) for c in schema.split(", ")]  # type: ignore[misc]


def _arrow(kind: str) -> pa.DataType:
    return _TYPES[kind] if kind in _TYPES else pa.decimal128(10, 2)


def _duck(sql: str) -> str:
    return sqlglot.transpile(sql, read="spark", write="duckdb")[0]


def _jsonl(table: pa.Table, path: Path) -> None:
    path.write_bytes(
        b"".join(orjson.dumps(r, default=str, option=orjson.OPT_APPEND_NEWLINE) for r in table.to_pylist())
    )


_WRITE: dict[str, Callable[[pa.Table, Path], None]] = {
    "parquet": pq.write_table,
    "csv": lambda table, path: pc.write_csv(table, str(path)),
    "jsonl": _jsonl,
}


def until(job: RunningJob, true: Callable[[], bool], seconds: float = 100.0) -> None:
    """Waits while the job runs."""
    end = time.monotonic() + seconds
    while not true():
        assert not job.wait(0.1), "the run has ended by itself"
        assert time.monotonic() < end, "it has not happened"


def plain(error: BaseException) -> str:
    """The error's message, which is for people: short, no stack trace, nothing of Spark."""
    text = str(error)
    for noise in ("Traceback", "\tat ", "org.apache", 'File "', "SQLSTATE"):
        assert noise not in text
    assert len(text) < 700
    return text
