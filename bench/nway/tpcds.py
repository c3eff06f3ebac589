"""The four tables of the papers' query, from TPC-DS: a few columns, in random order, one part of each a
batch.

`tpcgen-cli` (PyPI) makes the tables, whole and equal to those of the official generator; DuckDB counts what
the join must give.

    python bench/nway/tpcds.py --scale 1
"""

import argparse
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

sys.path.append(str(Path(__file__).parents[1]))
import task
from task import Task, write_file

GENERATOR = "tpcgen-cli==4.0.0"
INPUTS = {  # the key and what names a row
    "customer": ("c_current_addr_sk", "c_customer_sk"),
    "web_returns": ("wr_refunded_addr_sk", "wr_order_number"),
    "catalog_returns": ("cr_refunded_addr_sk", "cr_order_number"),
    "store_returns": ("sr_addr_sk", "sr_ticket_number"),
}


@dataclass(frozen=True)
class Shape:
    """What the data is; equal shapes are equal bytes."""

    scale: float = 10  # of TPC-DS
    batches: int = 16  # 0: of default size
    seed: int = 7
    columns: str = str(INPUTS)
    generator: str = GENERATOR
    version: int = 2  # of this file's way to make rows

    @property
    def folder(self) -> Path:
        """Where the files of this shape lie."""
        return task.folder(f"tpcds-{self.scale:g}", self)


def ensure(shape: Shape) -> Path:
    """The folder of a shape, written if it is not there: scale 10 takes a minute."""
    return task.ensure(shape.folder, partial(_write, shape))


def _write(shape: Shape, folder: Path) -> Task:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as made:
        names = ",".join(INPUTS)
        tables = [f"--tables={names}", f"--output-dir={made}", f"-s={shape.scale:g}", "--quiet"]
        subprocess.run([generator(), "tpcds", "parquet", *tables], check=True, stdout=sys.stderr)
        seeds = np.random.SeedSequence(shape.seed).spawn(len(INPUTS))
        read = {
            n: _shuffled(Path(made), n, np.random.default_rng(s)) for n, s in zip(INPUTS, seeds, strict=True)
        }
    rows = sum(t.num_rows for t in read.values())
    batches = shape.batches or task.default_batches(rows)
    for name, table in read.items():
        cuts = np.linspace(0, table.num_rows, batches + 1).astype(int).tolist()
        for number, (start, end) in enumerate(pairwise(cuts)):
            write_file(table.slice(start, end - start), folder / name, number)
    ddl = {name: ", ".join(f"{column} BIGINT" for column in columns) for name, columns in INPUTS.items()}
    return Task(ddl, rows, batches, _results(read))


def _shuffled(folder: Path, name: str, random: np.random.Generator) -> pa.Table:
    columns = list(INPUTS[name])
    table = pq.read_table(folder / f"{name}.parquet", columns=columns)
    table = table.filter(pc.is_valid(table[columns[0]]))  # others match nothing
    longs = table.cast(pa.schema([(c, pa.int64()) for c in columns]))
    return longs.take(random.permutation(len(longs)))


def _results(tables: dict[str, pa.Table]) -> int:
    """How many rows the join has: by key, the product of how often each table has it."""
    with duckdb.connect() as base:
        for name, table in tables.items():
            base.register(name, table)
        counts = [
            f"(SELECT {c[0]} AS k, count(*) AS n FROM {t} GROUP BY 1) AS {t}" for t, c in INPUTS.items()
        ]
        product = " * ".join(f"{t}.n" for t in INPUTS)
        joined = counts[0] + "".join(f" JOIN {count} USING (k)" for count in counts[1:])
        return int(base.execute(f"SELECT sum({product}) FROM {joined}").fetchall()[0][0])


def generator() -> Path:
    """The generator's program, installed on first use: whole or not at all."""
    folder = task.CACHE / GENERATOR.replace("==", "-")
    if not folder.exists():
        aside = folder.with_name(f"{folder.name}.{os.getpid()}")
        install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(aside)]
        subprocess.run([*install, GENERATOR], check=True, stdout=sys.stderr)
        aside.rename(folder)
    return folder / "bin" / "tpcgen-cli"


if __name__ == "__main__":
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--scale", type=float, default=Shape.scale)
    print(ensure(Shape(asked.parse_args().scale)))
