"""The operators of the stages as Spark runs them: blocks go to their partition, whose task joins its units.

    exchange rows ─► repartition by slot ─► task: last batch's manifests ─► units in turn ─► new manifests

To Spark they are stateless maps, which cost it next to nothing. Its own state store took 54 ms per partition
and 3 ms per unit in each batch, to keep a few hundred bytes. An inner stage sends its rows on as exchange
rows; the last operator emits receipts, or the rows themselves.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from joinlib.engine import receipt
from joinlib.engine.task import JoinTask
from joinlib.engine.wire import SCHEMA
from joinlib.spark.context import context
from joinlib.spark.mapped import Batches, mapped

if TYPE_CHECKING:
    from joinlib.engine.turn import Turn

Place = Callable[[DataFrame], DataFrame]  # adds the preferred executors of the partitions


def anywhere(rows: DataFrame) -> DataFrame:
    """Leave the placement of partitions to Spark."""
    return rows


def receipts(rows: DataFrame, task: JoinTask, partitions: int, place: Place = anywhere) -> DataFrame:
    """Write the results into the sink and return what each task says of its units (`receipt.heard`).

    `rows` holds the exchange rows of one batch.
    """
    arriving, last = _linked(rows, task, partitions, place)
    return _made(arriving, partial(_receipts, last, partitions), from_arrow_schema(receipt.TOLD))


def results(rows: DataFrame, task: JoinTask, partitions: int, schema: StructType) -> DataFrame:
    """Return the results as rows of `schema`. `rows` is a stream of exchange rows."""
    arriving, (last,) = _linked(rows, task, partitions, anywhere)
    made = to_arrow_schema(schema, timezone="UTC")
    return _made(arriving, partial(_results, last, partitions, made), schema)


def _linked(
    rows: DataFrame, task: JoinTask, partitions: int, place: Place
) -> tuple[DataFrame, tuple[JoinTask, ...]]:
    """Chain all levels but the last; return the exchange rows that arrive there, and the tasks of its stages."""
    *links, last = task.levels()
    for link in links:
        made = partial(_link, link, partitions)
        rows = _made(_exchanged(rows, partitions, place), made, from_arrow_schema(SCHEMA))
    return _exchanged(rows, partitions, place), last


def _exchanged(rows: DataFrame, partitions: int, place: Place) -> DataFrame:
    return place(rows.repartition(partitions, "slot"))


def _made(rows: DataFrame, each: Callable[[Batches], Batches], schema: StructType) -> DataFrame:
    return mapped(rows, SCHEMA.names, each, schema)


def _turn(task: JoinTask, partitions: int) -> "Turn":
    from joinlib.engine.turn import Turn

    place = context()
    return Turn(task, partition=place.partition, partitions=partitions, batch=place.batch or 0)


def _link(tasks: tuple[JoinTask, ...], partitions: int, batches: Batches) -> Batches:
    from joinlib.engine.operators import forwarded

    yield from forwarded([_turn(task, partitions) for task in tasks], batches)


def _receipts(tasks: tuple[JoinTask, ...], partitions: int, batches: Batches) -> Batches:
    from joinlib.engine.operators import receipts

    told = receipts([_turn(task, partitions) for task in tasks], context().attempt, batches)
    yield pa.record_batch({"told": [receipt.told(told)]}, schema=receipt.TOLD)


def _results(task: JoinTask, partitions: int, schema: pa.Schema, batches: Batches) -> Batches:
    from joinlib.engine.operators import results

    yield from results(_turn(task, partitions), schema, batches)
