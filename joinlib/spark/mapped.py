"""A function over the Arrow batches of a frame's partitions.

It is PySpark's `DataFrame.mapInArrow`, which imports pandas and does not use it (a third of a second before the first batch,
and 25 MB), and asks the JVM for each column of the frame, twice, in each batch.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType
from pyspark.sql.udf import UserDefinedFunction
from pyspark.util import PythonEvalType

Batches = Iterator[pa.RecordBatch]


def mapped(
    rows: DataFrame, columns: Sequence[str], each: Callable[[Batches], Batches], schema: StructType
) -> DataFrame:
    """Return what a function makes of each partition.

    Args:
        rows: A frame.
        columns: Its columns, all of them.
        each: The function.
        schema: That of what it makes.
    """
    made = UserDefinedFunction(each, schema, evalType=PythonEvalType.SQL_MAP_ARROW_ITER_UDF)
    session = rows.sparkSession
    called = made._judf.apply(_columns(session._jvm, tuple(columns)))
    return DataFrame(rows._jdf.mapInArrow(called, False, None), session)


@cache
def _columns(jvm: Any, names: tuple[str, ...]) -> Any:
    """Return these columns of any frame, once for each JVM."""
    return jvm.PythonUtils.toSeq([jvm.functions.col(name) for name in names])
