"""The tables of TPC-H that the blocks read, the columns that they name, in random order, as files of streams.

DuckDB makes the tables (`tests/spark/tpc/data.py`). File n of each table belongs to batch n: each table comes at an even
pace, and a batch has a million rows, which is the default. A table of a few rows is one file, and comes first.

    python bench/many_keys/tables.py --scale 0.01
"""

import argparse
import sys
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

sys.path += [str(Path(__file__).parents[1]), str(Path(__file__).parents[2])]
import task
from task import Task, write_file

from tests.spark.tpc import data

COLUMNS = {
    "region": ("r_regionkey", "r_name"),
    "nation": ("n_nationkey", "n_regionkey", "n_name"),
    "supplier": ("s_suppkey", "s_nationkey"),
    "part": ("p_partkey", "p_name"),
    "partsupp": ("ps_partkey", "ps_suppkey", "ps_supplycost"),
    "customer": ("c_custkey", "c_nationkey", "c_mktsegment", "c_name", "c_acctbal", "c_phone"),
    "orders": ("o_orderkey", "o_custkey", "o_orderdate", "o_shippriority"),
    "lineitem": (
        "l_orderkey", "l_partkey", "l_suppkey", "l_quantity", "l_extendedprice", "l_discount", "l_shipdate",
        "l_returnflag",
    ),
}  # fmt: skip
FEW = 1_000


@dataclass(frozen=True)
class Shape:
    """What the data is; equal shapes are equal bytes."""

    scale: float = 1  # of TPC-H
    batches: int = 0  # 0: of default size
    seed: int = 7
    columns: str = str(COLUMNS)
    version: int = 1  # of this file's way to make rows

    @property
    def folder(self) -> Path:
        """Where the files of this shape lie."""
        return task.folder(f"tpch-{self.scale:g}", self)


def ensure(shape: Shape) -> Path:
    """The folder of a shape, written if it is not there."""
    return task.ensure(shape.folder, partial(_write, shape))


def _write(shape: Shape, folder: Path) -> Task:
    made = data.tables("h", shape.scale)
    seeds = np.random.SeedSequence(shape.seed).spawn(len(COLUMNS))
    rows = {name: pq.read_metadata(made / f"{name}.parquet").num_rows for name in COLUMNS}
    batches = shape.batches or task.default_batches(sum(rows.values()))
    ddl = {}
    for (name, columns), seed in zip(COLUMNS.items(), seeds, strict=True):
        table = pq.read_table(made / f"{name}.parquet", columns=list(columns))
        table = table.take(np.random.default_rng(seed).permutation(len(table)))
        ddl[name] = ", ".join(f"{column.name} {_word(column.type)}" for column in table.schema)
        cuts = np.linspace(0, len(table), 1 + (batches if len(table) >= FEW else 1)).astype(int).tolist()
        for number, (start, end) in enumerate(pairwise(cuts)):
            write_file(table.slice(start, end - start), folder / name, number)
    return Task(ddl, sum(rows.values()), batches, 0)


def _word(kind: pa.DataType) -> str:
    """A type as Spark writes it."""
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    return {pa.int32(): "INT", pa.int64(): "BIGINT", pa.string(): "STRING", pa.date32(): "DATE"}[kind]


if __name__ == "__main__":
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--scale", type=float, default=Shape.scale)
    print(ensure(Shape(asked.parse_args().scale)))
