"""DDL: the Arrow schema is the one that Spark makes of the same columns, and errors name the column."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import types as spark
from pyspark.sql.pandas.types import to_arrow_schema

from joinlib.spec import ddl

AS_SPARK: list[tuple[str, spark.DataType]] = [
    ("BOOLEAN", spark.BooleanType()),
    ("TINYINT", spark.ByteType()),
    ("smallint", spark.ShortType()),
    ("INT", spark.IntegerType()),
    ("integer", spark.IntegerType()),
    ("BIGINT", spark.LongType()),
    ("LONG", spark.LongType()),
    ("FLOAT", spark.FloatType()),
    ("DOUBLE", spark.DoubleType()),
    ("DATE", spark.DateType()),
    ("TIMESTAMP", spark.TimestampType()),
    ("TIMESTAMP_LTZ", spark.TimestampType()),
    ("TIMESTAMP_NTZ", spark.TimestampNTZType()),
    ("STRING", spark.StringType()),
    ("VARCHAR(10)", spark.StringType()),
    ("CHAR(3)", spark.StringType()),
    ("BINARY", spark.BinaryType()),
    ("DECIMAL", spark.DecimalType()),
    ("DECIMAL(10)", spark.DecimalType(10)),
    ("NUMERIC(38, 18)", spark.DecimalType(38, 18)),
    ("ARRAY<INT>", spark.ArrayType(spark.IntegerType())),
    ("MAP<STRING, ARRAY<DATE>>", spark.MapType(spark.StringType(), spark.ArrayType(spark.DateType()))),
    (
        "STRUCT<x: INT NOT NULL, `y z` DECIMAL(4,2) COMMENT 'it''s'>".replace("''", "\\'"),
        spark.StructType(
            [
                spark.StructField("x", spark.IntegerType(), False),
                spark.StructField("y z", spark.DecimalType(4, 2)),
            ]
        ),
    ),
]


@pytest.mark.parametrize(("text", "type_"), AS_SPARK, ids=[text for text, _ in AS_SPARK])
def test_types_are_sparks(text: str, type_: spark.DataType) -> None:
    """Every type gives what Spark hands to Arrow in a UTC session, nullable or not."""
    expected = to_arrow_schema(
        spark.StructType([spark.StructField("a", type_), spark.StructField("b", type_, nullable=False)]),
        timezone="UTC",
    )
    assert ddl.parse(f"a {text}, b {text} NOT NULL") == expected


def test_names() -> None:
    """Quoted names hold anything; case is kept; words of SQL are names where a name stands."""
    schema = ddl.parse("`a b` INT, `tick``s` INT, Order: INT, `NOT` INT, `,` INT, day DATE comment 'x, y'")
    assert schema.names == ["a b", "tick`s", "Order", "NOT", ",", "day"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a BIGNT", "column 'a': unknown type 'BIGNT'; did you mean 'BIGINT'?"),
        ("a INT, b.c INT", "cannot read the schema at '.c INT'; write it as name TYPE, name TYPE"),
        ("a INT, b", "column 'b': has no type; write b STRING, for example"),
        ("a INT b STRING", "write a comma before 'b'"),
        ("a INT,", "expected a column name, found 'the end'; write name TYPE, name TYPE"),
        ("", "expected a column name, found 'the end'; write name TYPE, name TYPE"),
        ("a DECIMAL(39, 2)", "column 'a': DECIMAL(39, 2): precision is 1 to 38 and scale at most precision"),
        ("s STRUCT<x: ARRAY<STRNG>>", "column 's.x': unknown type 'STRNG'; did you mean 'STRING'?"),
        ("a ARRAY<INT", "column 'a': write ARRAY<TYPE>"),
        ("a INT NOT", "column 'a': write NOT NULL"),
        ("a VARCHAR", "column 'a': write the length, such as VARCHAR(20), or STRING"),
        ("id INT, ID STRING", "column 'id' appears twice (upper and lower case are the same); rename one"),
        ("a `INT`", "column 'a': has no type; write a STRING, for example"),
        ("a " + "ARRAY<" * 500 + "INT", "column 'a': its type is nested too deeply; write at most 32 levels"),
    ],
)
def test_errors_name_the_column_and_the_fix(text: str, message: str) -> None:
    """Each mistake has its own sentence."""
    with pytest.raises(ValueError, match=r".") as error:
        ddl.parse(text)
    assert str(error.value) == message


def test_types_may_be_nested() -> None:
    """As deep as the limit, in each of several columns."""
    text = "ARRAY<" * 32 + "INT" + ">" * 32
    assert ddl.to_ddl(ddl.parse(f"a {text}, b {text}")) == f"a {text}, b {text}"


def test_unknown_types_list_the_known() -> None:
    """Nothing near: all types are shown."""
    with pytest.raises(ValueError, match=r"unknown type 'QQQ'; types: BOOLEAN, TINYINT"):
        ddl.parse("a QQQ")


def test_arrow_types_without_a_spark_type_are_refused() -> None:
    """The way back exists for Spark's types only."""
    with pytest.raises(ValueError, match=r"Spark has no type for Arrow's uint8"):
        ddl.to_ddl(pa.schema([("a", pa.uint8())]))


NAMES = st.sampled_from(["a", "B1", "a b", "tick`", "1st", "été", "NOT", "order", "<"])
DECIMALS = st.integers(1, 38).flatmap(lambda p: st.integers(0, p).map(lambda s: pa.decimal128(p, s)))
SIMPLE = st.sampled_from(list(ddl.SIMPLE.values())) | DECIMALS


def fields(types: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[list[pa.Field]]:
    """Fields with different names, some of them not nullable."""
    field = st.builds(pa.field, NAMES, types, nullable=st.booleans())
    return st.lists(field, min_size=1, max_size=3, unique_by=lambda f: f.name.lower())


def nested(types: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    """Arrays, maps and structs as Spark would make them."""
    return (
        types.map(lambda t: pa.list_(pa.field("element", t)))
        | st.tuples(types, types).map(lambda t: pa.map_(t[0], pa.field("value", t[1])))
        | fields(types).map(pa.struct)
    )


@given(fields(st.recursive(SIMPLE, nested, max_leaves=4)).map(pa.schema))
def test_round_trip(schema: pa.Schema) -> None:
    """parse(to_ddl(schema)) == schema."""
    assert ddl.parse(ddl.to_ddl(schema)) == schema
