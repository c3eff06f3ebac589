"""A query's tables, in the order in which their rows arrive, cut into ten files."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from random import Random

import pyarrow as pa

from tests.queries import imdb, nexmark, tpcds, tpch
from tests.queries.corpus import Query, schemas
from tests.queries.draw import Shape
from tests.queries.hints import hints
from tests.queries.shapes import SHAPES

TENTHS = 10
MAKERS = {"tpch": tpch, "tpcds": tpcds, "imdb": imdb, "nexmark": nexmark, "patterns": nexmark}
TYPES = {
    "INT": pa.int32(), "BIGINT": pa.int64(), "STRING": pa.string(), "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us"),
}  # fmt: skip


@dataclass(frozen=True)
class Data:
    """The tables that a query reads."""

    query: Query
    shape: Shape

    @cached_property
    def tables(self) -> dict[str, pa.Table]:
        """All rows, as they arrive."""
        made = MAKERS[self.query.benchmark]
        known = {} if made is nexmark else hints(self.query.text)
        found, random = made.rows(known, self.shape), Random(self.shape.seed)
        timed = made is nexmark  # these arrive in their order, all others in any
        return {
            name: self._table(name, found[name] if timed else random.sample(found[name], len(found[name])))
            for name in self.query.tables
        }

    def files(self, name: str) -> Iterator[pa.Table]:
        """Its tenths."""
        table = self.tables[name]
        ends = [len(table) * n // TENTHS for n in range(TENTHS + 1)]
        return (table.slice(a, b - a) for a, b in itertools.pairwise(ends))

    def after(self, tenths: int) -> dict[str, pa.Table]:
        """All rows of so many tenths."""
        return {name: table.slice(0, len(table) * tenths // TENTHS) for name, table in self.tables.items()}

    def _table(self, name: str, rows: list[dict[str, object]]) -> pa.Table:
        schema = pa.schema([(c, arrow(kind)) for c, kind in schemas(self.query.benchmark)[name]])
        return pa.Table.from_pylist(rows, schema)


def arrow(kind: str) -> pa.DataType:
    """The type that Spark calls so."""
    if kind.startswith("DECIMAL"):
        return pa.decimal128(*map(int, kind[8:-1].split(",")))
    return TYPES[kind]


def data(query: Query) -> Data:
    """Rows with which its answer is not empty."""
    return Data(query, SHAPES.get(query.title, Shape()))
