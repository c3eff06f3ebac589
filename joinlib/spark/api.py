"""The Python API: streaming DataFrames in, a streaming DataFrame out."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from joinlib.plan import SourceInput, build
from joinlib.route.config import InputPlan, read_columns
from joinlib.spark.exchange import Sender
from joinlib.spark.operator import FrameJoiner, ReceiptJoiner
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
    tuning: Tuning | None = None,
) -> DataFrame:
    """The streaming result of `sql` over streaming DataFrames; write it in Append mode with a checkpoint of its own.

    `state` is the folder for segments, local or shared by all executors; keep it as long as the checkpoint.
    An input's event time is the column that `withWatermark` was called with. Where a DataFrame is replayed after a
    failure it must give the same rows in the same partitions, as Spark's own sources do.
    """
    stage = build(sql, {n: _source(df) for n, df in inputs.items()}, units=units, retention_us=retention_us)
    task = JoinTask(stage, Path(state).resolve() / name / "0", tuning or Tuning(), Emit("rows"))
    parts = [_exchange(df, [p for p in stage.inputs if p.source == n], task) for n, df in inputs.items()]
    rows = parts[0]
    for part in parts[1:]:
        rows = rows.unionAll(part)
    return stateful(rows, task, from_arrow_schema(stage.schema))


def stateful(rows: DataFrame, task: JoinTask, schema: StructType | str) -> DataFrame:
    """The stage's stateful operator over exchange rows."""
    units = rows.groupBy("slot")
    if task.emit.kind == "rows":
        return units.transformWithStateInPandas(
            FrameJoiner(task), outputStructType=schema, outputMode="Append", timeMode="None"
        )
    return units.transformWithState(
        ReceiptJoiner(task), outputStructType=schema, outputMode="Append", timeMode="None"
    )


def _source(df: DataFrame) -> SourceInput:
    timed = [(f.name, int(f.metadata[_DELAY])) for f in df.schema if _DELAY in f.metadata]
    schema = to_arrow_schema(df.schema, timezone="UTC")
    time, delay = timed[0] if timed else (None, 0)
    return SourceInput(schema=schema, time=time, delay_us=delay * 1000, idle_us=None, role="stream")


def _exchange(df: DataFrame, plans: list[InputPlan], task: JoinTask) -> DataFrame:
    columns = read_columns(plans)
    schema = pa.schema([to_arrow_schema(df.select(columns).schema, timezone="UTC").field(c) for c in columns])

    def split(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        start = (context.partitionId() if context else 0) << 32
        rows = (
            (start + at, pa.record_batch(b.columns, b.schema.names).cast(schema))
            for at, b in enumerate(batches)
        )
        sender = Sender(task.stage.units, spool(task.state, task.tuning))
        yield from exchange_rows(rows, plans, sender, task.tuning.hash_bits)

    return df.select(columns).mapInArrow(split, DDL)
