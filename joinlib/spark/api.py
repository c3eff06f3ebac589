"""The Python API: streaming DataFrames in, a streaming DataFrame out."""

import shutil
import uuid
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import xxhash
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from joinlib.join.config import Lookup
from joinlib.join.forward import check
from joinlib.join.rows import concat
from joinlib.lookup.load import searchable
from joinlib.lookup.task import TableTask
from joinlib.lookup.version import write
from joinlib.plan import SourceInput, pipeline
from joinlib.plan.source import Role
from joinlib.route.config import InputPlan, read_columns
from joinlib.route.split import block_schema, prepare
from joinlib.spark.exchange import Sender
from joinlib.spark.operator import results
from joinlib.spark.session import default_partitions
from joinlib.spark.splitter import exchange_rows, spool
from joinlib.spark.task import Emit, JoinTask
from joinlib.spark.wire import DDL
from joinlib.state.tuning import Tuning

_DELAY = "spark.watermarkDelayMs"  # where Spark's withWatermark notes the delay


def join(
    spark: SparkSession,
    sql: str,
    inputs: Mapping[str, DataFrame],
    state: str | Path,
    *,
    name: str = "join",
    units: int = 8,
    retention_us: int | None = None,
    strategy: str = "auto",
    subgroups: int | None = None,
    window_rows: int | None = None,
    tuning: Tuning | None = None,
    changelog: bool = False,
) -> DataFrame:
    """The streaming result of `sql` over streaming DataFrames; write it in Append mode with a checkpoint of its own.

    `changelog`: groups come out whenever they change, with a column `deleted`; otherwise once, when they are final.

    DataFrames that are not streams are tables: they are collected here, once, and looked up.

    `state` is the folder for segments, local or shared by all executors; keep it as long as the checkpoint.
    An input's event time is the column that `withWatermark` was called with. Where a DataFrame is replayed after a
    failure it must give the same rows in the same partitions, as Spark's own sources do.

    `strategy`, `subgroups` and `window_rows` are join.strategy, join.subgroups and join.window.rows of the spec. Routes do not
    change while the query runs (hot keys stay where they are), and rows of a DataFrame have no numbers for a window. As long as
    `state` is kept, units, strategy and subgroups must stay.
    """
    stages = pipeline(
        sql,
        {n: _source(df) for n, df in inputs.items()},
        units=units,
        retention_us=retention_us,
        strategy=strategy,
        subgroups=subgroups,
        window_rows=window_rows,
        changelog=changelog,
    )
    check(stages)
    home, tuning = Path(state).resolve() / name, tuning or Tuning()
    tables = tuple(
        _table(lookup, inputs[lookup.table.source], home / "tables", tuning) for lookup in stages.last.lookups
    )
    task = JoinTask(stages, home, tuning, Emit("rows"), tables, run=uuid.uuid4().hex)
    streams = {n: [(at, p) for at, p in stages.heard if p.source == n] for n in inputs}
    parts = [_exchange(inputs[n], plans, task) for n, plans in streams.items() if plans]
    rows = parts[0]
    for part in parts[1:]:
        rows = rows.unionAll(part)
    partitions = default_partitions(units, spark.sparkContext.defaultParallelism)
    return results(rows, task, partitions, from_arrow_schema(stages.schema))


def _source(df: DataFrame) -> SourceInput:
    timed = [(f.name, int(f.metadata[_DELAY])) for f in df.schema if _DELAY in f.metadata]
    schema = to_arrow_schema(df.schema, timezone="UTC")
    time, delay = timed[0] if timed else (None, 0)
    role: Role = "stream" if df.isStreaming else "table"
    return SourceInput(schema=schema, time=time, delay_us=delay * 1000, idle_us=None, role=role)


def _table(lookup: Lookup, df: DataFrame, folder: Path, tuning: Tuning) -> TableTask:
    """The DataFrame's rows as the one version of a table, in a folder that is named by what they are."""
    columns, schema = _columns(df, list(lookup.table.read))
    blocks = [
        prepare(lookup.table, pa.record_batch(b.columns, b.schema.names).cast(schema), 0, tuning.hash_bits)
        for b in columns.toArrow().to_batches()
    ]
    rows = searchable(lookup, concat(blocks, block_schema(lookup.table)))
    own = folder / lookup.table.alias
    task = TableTask(lookup, None, own / xxhash.xxh3_64_hexdigest(rows.serialize()))
    for old in own.glob("*"):
        if old != task.folder:
            shutil.rmtree(old, ignore_errors=True)
    write(task.version(0), rows, lookup.range, tuning.sync)
    return task


def _columns(df: DataFrame, names: list[str]) -> tuple[DataFrame, pa.Schema]:
    """These columns, and their Arrow types."""
    chosen = df.select(names)
    schema = to_arrow_schema(chosen.schema, timezone="UTC")
    return chosen, pa.schema([schema.field(c) for c in names])


def _exchange(df: DataFrame, plans: list[tuple[int, InputPlan]], task: JoinTask) -> DataFrame:
    """`plans`: of the inputs over it, each behind the number of its stage."""
    columns, schema = _columns(df, read_columns(p for _, p in plans))

    def split(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        start = (context.partitionId() if context else 0) << 32
        rows = (
            (start + at, pa.record_batch(b.columns, b.schema.names).cast(schema))
            for at, b in enumerate(batches)
        )
        aside = spool(task.states, task.tuning)
        senders = [Sender(task.pipeline, n, aside) for n in range(len(task.pipeline.stages))]
        yield from exchange_rows(rows, [(p, senders[n]) for n, p in plans], task.tuning.hash_bits)

    return columns.mapInArrow(split, DDL)
