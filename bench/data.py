"""Which rows does every system join?

Two inputs (k BIGINT, v BIGINT, s: 14 letters), written once, as parquet.

Keys are uniform, so rows * rows / keys results are expected (8 M at full size); the exact number is counted
here and every system is held to it. v numbers the rows, s is random: no two rows are equal, nothing
compresses. Same parameters, same bytes; the folder is named by them. File n of an input is its part of batch
n: names and modification times ascend alike, so each reader takes them in the same order.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import task
from task import Task, write_file

INPUTS = ("orders", "payments")
SCHEMA = "k BIGINT, v BIGINT, s STRING"
TEXT_LENGTH = 14
LETTERS = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz012345", dtype=np.uint8)


@dataclass(frozen=True)
class Shape:
    """What the data is; equal shapes are equal bytes."""

    rows: int = 4_000_000  # of each input
    keys: int = 2_000_000
    files: int = 8  # of each input: one a batch
    row_groups: int = 2  # of each file
    seed: int = 7
    version: int = 2  # of this file's way to make rows

    @property
    def file_rows(self) -> int:
        """Rows of one file."""
        return self.rows // self.files

    @property
    def folder(self) -> Path:
        """Where the files of this shape lie."""
        return task.folder("data", self)


FULL = Shape()
QUICK = Shape(rows=500_000, keys=250_000)


def ensure(shape: Shape) -> Path:
    """The folder of a shape, written if it is not there."""
    return task.ensure(shape.folder, partial(write, shape))


def write(shape: Shape, folder: Path) -> Task:
    """Writes both inputs and counts their join."""
    counts = [np.zeros(shape.keys, dtype=np.int64) for _ in INPUTS]
    seeds = np.random.SeedSequence(shape.seed).spawn(len(INPUTS))
    for count, name, seed in zip(counts, INPUTS, seeds, strict=True):
        for number, table in enumerate(tables(shape, np.random.default_rng(seed))):
            count += np.bincount(table["k"].to_numpy(), minlength=shape.keys)
            write_file(table, folder / name, number, shape.row_groups)
    return Task(
        dict.fromkeys(INPUTS, SCHEMA), len(INPUTS) * shape.rows, shape.files, int(counts[0] @ counts[1])
    )


def tables(shape: Shape, random: np.random.Generator) -> Iterator[pa.Table]:
    """The files of one input, in order."""
    for start in range(0, shape.rows, shape.file_rows):
        keys = random.integers(0, shape.keys, shape.file_rows)
        numbers = np.arange(start, start + shape.file_rows)
        yield pa.table({"k": keys, "v": numbers, "s": texts(shape.file_rows, random)})


def texts(rows: int, random: np.random.Generator) -> pa.StringArray:
    """Random strings of TEXT_LENGTH letters, made without a Python object for each."""
    letters = LETTERS[random.integers(0, len(LETTERS), rows * TEXT_LENGTH, dtype=np.uint8)]
    offsets = np.arange(0, rows * TEXT_LENGTH + 1, TEXT_LENGTH, dtype=np.int32)
    return pa.StringArray.from_buffers(rows, pa.py_buffer(offsets), pa.py_buffer(letters))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="an eighth of the size")
    print(ensure(QUICK if parser.parse_args().quick else FULL))
