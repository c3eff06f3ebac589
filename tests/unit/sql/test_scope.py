"""What a dotted name means where a column of one input is called as another input."""

import pyarrow as pa
from sqlglot import exp

from joinlib.sql import Table
from joinlib.sql.graph import Scan
from joinlib.sql.scope import Scope

INNER = Scan("y", Table("y", pa.schema([("k", pa.int64()), ("d", pa.struct([("n", pa.string())]))]), None))
AROUND = Scan("d", Table("a", pa.schema([("n", pa.int64())]), None))


def test_a_column_of_an_input_around_it_is_no_field() -> None:
    scope = Scope("", {"y": INNER}, outer=Scope("", {"d": AROUND}))
    assert scope.resolve(exp.column("n", table="d")).type == pa.int64()
    assert scope.resolve(exp.column("n", table="d", db="y")).type == pa.string()


def test_a_field_is_found_where_no_input_is_called_so() -> None:
    assert Scope("", {"y": INNER}).resolve(exp.column("n", table="d")).type == pa.string()
