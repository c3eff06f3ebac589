"""Whether the blocks of a text return what the text returns, by DuckDB."""

from collections import Counter
from random import Random

import duckdb
import pyarrow as pa
import sqlglot
from sqlglot import exp

from joinlib.sql import Table
from joinlib.sql.blocks import Block, as_text, blocks
from tests.laws.rewrites.nested import TABLES, Row, rows

SCHEMAS = {name: pa.schema([(c, pa.int64()) for c in columns]) for name, columns in TABLES.items()}
INPUTS = {name: Table(name, schema, None) for name, schema in SCHEMAS.items()}


def translated(sql: str) -> str:
    """Spark's SQL in DuckDB's words."""
    return sqlglot.transpile(sql, read="spark", write="duckdb")[0]


class Judge:
    """A database with the tables."""

    def __init__(self) -> None:
        self.connection = duckdb.connect(config={"threads": 1})
        for name, columns in TABLES.items():
            self.connection.execute(f"CREATE TABLE {name}({', '.join(f'{c} BIGINT' for c in columns)})")
        self.connection.execute(
            "CREATE MACRO one_of(v, n, line, at, view) AS CASE WHEN n > 1 THEN error('several') ELSE v END"
        )

    def fill(self, data: dict[str, list[Row]]) -> None:
        for name, found in data.items():
            self.connection.execute(f"DELETE FROM {name}")
            if found:
                marks = ", ".join("?" for _ in TABLES[name])
                self.connection.executemany(f"INSERT INTO {name} VALUES ({marks})", found)

    def rows(self, sql: str) -> Counter[Row]:
        return Counter(self.connection.execute(sql).fetchall())


def differences(sql: str, judge: Judge, seeds: int = 12) -> str:
    """What the blocks return otherwise than the text, over random tables; "" if nothing."""
    found = blocks(sql, INPUTS)
    for block in found:
        check_form(block)
    ours, theirs = translated(as_text(found).replace("$ONE(", "one_of(")), translated(sql)
    for seed in range(seeds):
        judge.fill(rows(Random(seed)))
        want, have = judge.rows(theirs), judge.rows(ours)
        if want != have:
            return f"{sql}\n{as_text(found)}\nseed {seed}: missing {want - have}, too many {have - want}"
    return ""


def check_form(block: Block) -> None:
    """Each block is of one operator."""
    query = block.query
    assert not any(query.args.get(n) for n in ("with_", "order", "limit", "offset"))
    sides = list(query.find_all(exp.Select))
    for select in sides:
        start = select.args["from_"].this
        joins = [j.this for j in select.args.get("joins") or []]
        assert all(isinstance(source, exp.Table) for source in (start, *joins))
        assert block.kind == "select" or not joins
    assert all(isinstance(q.parent, exp.In) for q in query.find_all(exp.Subquery))
    if block.kind != "select":
        assert not any(query.args.get(n) for n in ("group", "having", "distinct"))
    if block.kind == "over":
        windows = list(query.find_all(exp.Window))
        keys = {tuple(sorted(p.sql() for p in w.args.get("partition_by") or [])) for w in windows}
        assert len(keys) == 1
    else:
        assert not list(query.find_all(exp.Window))
    if block.kind == "union":
        assert len(sides) > 1
        assert all(isinstance(i.this, exp.Column) for s in sides for i in s.expressions)
    names = [i.alias.lower() for i in sides[0].expressions]
    assert len(set(names)) == len(names)
