"""Do the slots fill Spark's partitions? Asked of Spark's own hash."""

import pytest
from pyspark.sql import SparkSession

from joinlib.route.slots import slots

pytestmark = pytest.mark.spark

UNITS = [1 << n for n in range(11)]


def test_slots_are_a_bijection_onto_units(spark: SparkSession) -> None:
    """pmod(hash(slot), units) is the unit, for every power of two up to 1024; and smaller ones share evenly."""
    rows = [(units, unit, slot) for units in UNITS for unit, slot in enumerate(slots(units))]
    table = spark.createDataFrame(rows, "units INT, unit INT, slot INT")
    table.createOrReplaceTempView("slots")
    wrong = spark.sql("SELECT * FROM slots WHERE pmod(hash(slot), units) <> unit").count()
    assert wrong == 0
    shares = spark.sql(
        "SELECT COUNT(*) AS n FROM slots WHERE units = 1024 GROUP BY pmod(hash(slot), 32)"
    ).collect()
    assert [row["n"] for row in shares] == [32] * 32
