"""The Python API: streaming DataFrames in, a streaming DataFrame out."""

import shutil
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import xxhash
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from joinlib.engine.edge import edge, senders
from joinlib.engine.splitter import exchange_rows
from joinlib.engine.task import JoinTask
from joinlib.engine.wire import SCHEMA
from joinlib.errors import SpecError
from joinlib.join.rows import concat
from joinlib.lookup.load import searchable
from joinlib.lookup.task import TableTask
from joinlib.lookup.version import write
from joinlib.model.inputs import InputPlan, read_columns
from joinlib.model.joins import Lookup
from joinlib.model.tuning import Tuning
from joinlib.plan import JoinOptions, SourceInput, pipeline
from joinlib.plan.changes import Mode
from joinlib.plan.landing import check_columns
from joinlib.route.split import block_schema, prepare
from joinlib.sink.changelog import described
from joinlib.sink.config import SinkConfig
from joinlib.source import RowChanges
from joinlib.spark.context import context
from joinlib.spark.mapped import mapped
from joinlib.spark.operator import results
from joinlib.spark.session import default_partitions
from joinlib.spec.changes import key_fault, op_fault
from joinlib.spec.inputs import Role
from joinlib.spec.nearest import hint

_DELAY = "spark.watermarkDelayMs"  # where Spark's withWatermark notes the delay


def join(
    spark: SparkSession,
    sql: str,
    inputs: Mapping[str, DataFrame],
    state: str | Path,
    *,
    name: str = "join",
    units: int = JoinOptions.units,
    retention_us: int | None = None,
    strategy: str = JoinOptions.strategy,
    subgroups: int | None = None,
    window_rows: int | None = None,
    tuning: Tuning | None = None,
    mode: Mode = "append",
    key: Sequence[str] = (),
    changes: Mapping[str, str] | None = None,
    upserts: Mapping[str, Sequence[str]] | None = None,
) -> DataFrame:
    """Join streaming DataFrames by an SQL query, exactly once.

    The result is a streaming DataFrame: write it in append mode, with a checkpoint of its own. Its session is
    the caller's, and so are its settings, such as who may reach it.

    Args:
        spark: The session that the DataFrames belong to.
        sql: One SELECT over `inputs`, by their names, in Spark's dialect; see the SQL reference.
        inputs: DataFrames by the names that `sql` gives them. One that is streaming is joined as it flows;
            its event time is the column that `withWatermark` was called with. One that is not streaming is a
            table: its rows are collected here, once, and looked up. A stream that is replayed after a failure
            must give the same rows in the same partitions, as Spark's own sources do.
        state: Folder of the state, local or shared by all executors. Keep it as long as the checkpoint of the
            query.
        name: Name of the folder within `state`; two joins that share `state` need different names.
        units: Slices of the state, a power of two. Must stay as long as `state` is kept.
        retention_us: Rows match only if their event times are no further apart than this, in microseconds;
            None means no such bound.
        strategy: The join operator, as `join.strategy` of the spec. Routes do not change while the query
            runs: hot keys stay where they are. Must stay as long as `state` is kept.
        subgroups: As `join.subgroups` of the spec. Must stay as long as `state` is kept.
        window_rows: As `join.window.rows` of the spec. Refused today, because rows of a DataFrame have no
            numbers.
        tuning: Thresholds of the state; None means the defaults. They change the cost of a batch and never
            its rows.
        mode: With append, rows of the result are final. With changelog they come at once and may be taken back:
            a last column `_change_type` says what a row is: insert, delete, update_preimage or
            update_postimage.
        key: Columns of the result that tell its rows apart, for changelog: a row that replaces another of its
            key in a batch is an update, of two rows.
        changes: For inputs whose rows may be deleted, the column that says whether a row came or went, as
            `changes.op` of the spec; `sql` does not see it.
        upserts: For inputs of which the last row of each key counts, the columns of the key. All rows of a key
            must come in one partition of a batch, in the order in which they happened, as they do where Spark
            reads a Kafka topic that has this key. Beside `changes`, the operation says which rows delete.

    Returns:
        A streaming DataFrame with the columns of the select list.

    Raises:
        SpecError: `inputs` or an option cannot be used; the message says what to write instead.
        SqlError: `sql` cannot be run. Its `line` and `column` count from 1.

    Example:
        >>> from joinlib.spark import join
        >>> def stream(rows: list[tuple[int, str]], name: str):
        ...     schema = "id BIGINT, word STRING"
        ...     spark.createDataFrame(rows, schema).write.parquet(f"{folder}/{name}")
        ...     return spark.readStream.schema(schema).parquet(f"{folder}/{name}")
        >>> orders = stream([(1, "chair"), (2, "table"), (3, "lamp")], "orders")
        >>> payments = stream([(1, "card"), (3, "cash")], "payments")
        >>> joined = join(
        ...     spark,
        ...     "SELECT o.id, o.word AS item, p.word AS paid FROM orders o JOIN payments p ON o.id = p.id",
        ...     {"orders": orders, "payments": payments},
        ...     state=f"{folder}/state",
        ... )
        >>> query = (
        ...     joined.writeStream.format("parquet")
        ...     .option("checkpointLocation", f"{folder}/checkpoint")
        ...     .trigger(availableNow=True)
        ...     .start(f"{folder}/joined")
        ... )
        >>> query.awaitTermination(120)
        True
        >>> spark.read.parquet(f"{folder}/joined").orderBy("id").show()
        +---+-----+----+
        | id| item|paid|
        +---+-----+----+
        |  1|chair|card|
        |  3| lamp|cash|
        +---+-----+----+
        <BLANKLINE>
    """
    how = _changing(inputs, changes or {}, upserts or {})
    stages = pipeline(
        sql,
        {n: _source(df, how.get(n)) for n, df in inputs.items()},
        JoinOptions(
            units=units,
            retention_us=retention_us,
            strategy=strategy,
            subgroups=subgroups,
            window_rows=window_rows,
            cells=False,  # the state of an earlier version does not say that it has its rows at random
            once=False,  # nor that it has those of a self-join twice
        ),
        mode=mode,
        key=tuple(key),
    )
    check_columns(stages, mode, tuple(key))
    home, tuning = Path(state).resolve() / name, tuning or Tuning()
    tables = tuple(
        _table(n, lookup, inputs[lookup.table.source], home / "tables", tuning)
        for n, lookup in stages.lookups
    )
    task = JoinTask(
        stages, home, tuning, (SinkConfig("rows", mode, tuple(key)),), tables, run=uuid.uuid4().hex
    )
    streams = {n: [(at, p) for at, p in stages.numbered_inputs if p.source == n] for n in inputs}
    parts = [_exchange(n, inputs[n], plans, task, how.get(n)) for n, plans in streams.items() if plans]
    rows = parts[0]
    for part in parts[1:]:
        rows = rows.unionAll(part)
    partitions = default_partitions(units, spark.sparkContext.defaultParallelism)
    schema = stages.schema if mode == "append" else described(stages.schema, numbered=False)
    return results(rows, task, partitions, from_arrow_schema(schema))


def _changing(
    inputs: Mapping[str, DataFrame], changes: Mapping[str, str], upserts: Mapping[str, Sequence[str]]
) -> dict[str, RowChanges]:
    """Return how rows of each input that changes say so.

    Raises:
        SpecError: There is no such input or column, or it cannot be used.
    """
    for option, names in (("changes", changes), ("upserts", upserts)):
        for name in names:
            if name not in inputs:
                raise SpecError(f"{option}: no input {name!r}; {hint(name, inputs.keys(), 'inputs')}")
            if not inputs[name].isStreaming:
                raise SpecError(
                    f"{option}[{name!r}]: is for streams, and this DataFrame is not streaming: it is read as a table,"
                    " as it is; remove the option, or read the DataFrame by readStream"
                )
    found = {}
    for name in dict.fromkeys([*changes, *upserts]):
        op, key, schema = changes.get(name), upserts.get(name), _schema(inputs[name])
        faults = {
            "changes": op_fault(op, schema) if op is not None else None,
            "upserts": key_fault(key, op, schema) if key is not None else None,
        }
        for option, fault in faults.items():
            if fault is not None:
                raise SpecError(f"{option}[{name!r}]: {fault}")
        found[name] = RowChanges(op, tuple(key or ()))
    return found


def _schema(df: DataFrame) -> pa.Schema:
    return to_arrow_schema(df.schema, timezone="UTC")


def _source(df: DataFrame, how: RowChanges | None) -> SourceInput:
    timed = [(f.name, int(f.metadata[_DELAY])) for f in df.schema if _DELAY in f.metadata]
    time, delay = timed[0] if timed else (None, 0)
    role: Role = "stream" if df.isStreaming else "table"
    plain = SourceInput(schema=_schema(df), time=time, delay_us=delay * 1000, idle_us=None, role=role)
    if how is None:
        return plain
    seen = pa.schema([f for f in plain.schema if f.name != how.op])
    return replace(plain, schema=seen, changes=True, upsert=how.key)


def _table(stage: int, lookup: Lookup, df: DataFrame, folder: Path, tuning: Tuning) -> TableTask:
    """Store the DataFrame's rows as the only version of a table, in a folder named by their hash."""
    columns, schema = _columns(df, list(lookup.table.read))
    blocks = [
        prepare(lookup.table, pa.record_batch(b.columns, b.schema.names).cast(schema), 0, tuning.hash_bits)
        for b in columns.toArrow().to_batches()
    ]
    rows = searchable(lookup, concat(blocks, block_schema(lookup.table)))
    own = folder / lookup.table.alias
    task = TableTask(lookup, None, own / xxhash.xxh3_64_hexdigest(rows.serialize()), stage)
    for old in own.glob("*"):
        if old != task.folder:
            shutil.rmtree(old, ignore_errors=True)
    write(task.version(0), rows, lookup.range, tuning.sync)
    return task


def _columns(df: DataFrame, names: list[str]) -> tuple[DataFrame, pa.Schema]:
    """Select these columns; return them with their Arrow schema."""
    chosen = df.select(names)
    schema = _schema(chosen)
    return chosen, pa.schema([schema.field(c) for c in names])


def _exchange(
    name: str, df: DataFrame, plans: list[tuple[int, InputPlan]], task: JoinTask, how: RowChanges | None
) -> DataFrame:
    """Return the DataFrame's rows as exchange rows.

    `plans` holds each input over it with the number of its stage, and `how` says how its rows change.
    """
    asked = read_columns(p for _, p in plans)
    columns, schema = _columns(df, how.read(asked) if how else asked)
    want = pa.schema([schema.field(c) for c in asked])
    schema = how.readable(schema) if how else schema

    def split(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        place = context()
        start, named = place.partition << 32, f"input {name}, partition {place.partition}"

        def rows() -> Iterator[tuple[int, pa.RecordBatch]]:
            for at, b in enumerate(batches, start):
                found = pa.record_batch(b.columns, b.schema.names).cast(schema)
                yield at, how.changed(named, found, want) if how else found

        pipeline, bits = task.pipeline, task.tuning.hash_bits
        to = senders(pipeline, task.states, task.tuning, place.batch)
        yield from exchange_rows(rows(), [edge(pipeline, n, p, to[n], bits) for n, p in plans], start)

    return mapped(columns, columns.columns, split, from_arrow_schema(SCHEMA))
