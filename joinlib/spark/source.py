"""The source of a query: one Spark data source that reads all inputs of a spec and yields exchange rows.

driver part (its own process)      map tasks               the task of a small batch
`engine.composer`                  `engine.reading`        `engine.small`
"""

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
from pyspark.sql.types import StructType
from pyspark.sql.udf import _wrap_function

from joinlib.engine.composer import Composer, Offset
from joinlib.engine.sources import SourceTask
from joinlib.engine.task import JoinTask
from joinlib.engine.wire import RECEIPT, SCHEMA, ExchangeRow
from joinlib.spark.context import context

NAME = "streamjoin"
_WRITTEN_IN_PYTHON = "org.apache.spark.sql.execution.datasources.v2.python.UserDefinedPythonDataSource"


def data_source(task: SourceTask, join: JoinTask | None = None) -> type[DataSource]:
    """Return the data source "streamjoin" of one task, to be registered with the session.

    join: the stages that small batches run; None if no batch is small. The tasks are stored in the class, which
    Spark pickles by value because no module holds it. As options they would be printed, encoded, in every plan.
    """

    class StreamJoinSource(DataSource):
        @classmethod
        def name(cls) -> str:
            return NAME

        def schema(self) -> StructType:
            return from_arrow_schema(SCHEMA)

        def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
            return StreamReader(task, join)

    return StreamJoinSource


def register(spark: SparkSession, source: type[DataSource]) -> None:
    """Register a data source with a session, as `spark.dataSource.register` does.

    That looks first for a Java class of the name, and makes an error of there being none, for which Spark reads and
    parses the texts of all its errors: a tenth of a session's start.
    """
    made = getattr(spark._jvm, _WRITTEN_IN_PYTHON)(_wrap_function(spark.sparkContext, source))
    spark._jsparkSession.sessionState().dataSourceManager().registerDataSource(source.name(), made)


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Both parts, under the names that Spark calls; the copy of it in map tasks never opens an input."""

    def __init__(self, task: SourceTask, join: JoinTask | None = None) -> None:
        self._task, self._join = task, join

    @cached_property
    def _composer(self) -> Composer:
        return Composer(self._task)

    def initialOffset(self) -> Offset:  # noqa: N802
        return self._composer.initial()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._composer.bound()

    def latestOffset(self, start: Offset, limit: Any = None) -> Offset:  # noqa: N802
        return self._composer.after(start)

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        return [InputPartition(part) for part in self._composer.parts(start, end)]

    def commit(self, end: Offset) -> None:
        self._composer.commit(end)

    def stop(self) -> None:
        """Do nothing: what is open ends with the process."""

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        from joinlib.engine import reading, small  # slow to load, and only tasks need them
        from joinlib.engine.exchange import exchange_batch

        part, place = partition.value, context()
        if not part.small:
            return reading.read(self._task, part, place.batch)
        assert self._join is not None
        assert place.batch is not None
        told = small.run(self._task, self._join, part, place.batch, place.attempt)
        return iter([exchange_batch([ExchangeRow(0, 0, RECEIPT, block=told)])])
