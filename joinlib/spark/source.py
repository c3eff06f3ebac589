"""The source of a query: one Spark data source that reads all inputs of a spec and yields exchange rows.

driver part (its own process)      map tasks
`engine.composer`                  `engine.reading`
"""

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from joinlib.engine.composer import Composer, Offset
from joinlib.engine.sources import SourceTask
from joinlib.engine.wire import DDL
from joinlib.spark.context import context

NAME = "streamjoin"


def data_source(task: SourceTask) -> type[DataSource]:
    """Return the data source "streamjoin" of one task, to be registered with the session.

    The task is stored in the class, which Spark pickles by value because no module holds it. As an option it
    would be printed, encoded, in every plan.
    """

    class StreamJoinSource(DataSource):
        @classmethod
        def name(cls) -> str:
            return NAME

        def schema(self) -> str:
            return DDL

        def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
            return StreamReader(task)

    return StreamJoinSource


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Both parts, under the names that Spark calls; the copy of it in map tasks never opens an input."""

    def __init__(self, task: SourceTask) -> None:
        self._task = task

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
        from joinlib.engine.reading import read  # slow to load, and only map tasks need it

        return read(self._task, partition.value, context().batch)
