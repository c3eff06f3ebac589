"""Four inputs whose rows are wide, so that state soon outgrows a small memory: `k BIGINT, v BIGINT, s
STRING`.

Keys are uniform, by default half a row of each input for each key: most rows find no partner, as in most
streams, and an eighth as many results come out as an input has rows. With two rows of a key it is eight times
as many. s is long and each row has its own; it repeats itself, so files stay small while state, which is not
compressed, does not.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import task
from task import Task, write_file

INPUTS = ("a", "b", "c", "d")
DDL = "k BIGINT, v BIGINT, s STRING"
WIDTH = 400  # bytes of s
ROW = WIDTH + 4 + 8 + 8 + 8  # bytes in a segment: offset, k, v and the key's hash


@dataclass(frozen=True)
class Shape:
    """What the data is; equal shapes are equal bytes."""

    state_mb: int  # of all inputs, as they are stored
    batch_mb: int = 64
    of_key: float = 0.5  # rows of each input, for each key
    width: int = WIDTH
    seed: int = 7
    version: int = 2  # of this file's way to make rows

    @property
    def batches(self) -> int:
        return max(4, self.state_mb // self.batch_mb)

    @property
    def file_rows(self) -> int:
        return self.state_mb * 1_000_000 // ROW // len(INPUTS) // self.batches

    @property
    def keys(self) -> int:
        return int(self.file_rows * self.batches / self.of_key)

    @property
    def folder(self) -> Path:
        """Where the files of this shape lie."""
        return task.folder(f"wide-{self.state_mb}", self)


def ensure(shape: Shape) -> Path:
    """The folder of a shape, written if it is not there."""
    return task.ensure(shape.folder, partial(_write, shape))


def _write(shape: Shape, folder: Path) -> Task:
    counts = [np.zeros(shape.keys, dtype=np.int64) for _ in INPUTS]
    seeds = np.random.SeedSequence(shape.seed).spawn(len(INPUTS))
    for count, name, seed in zip(counts, INPUTS, seeds, strict=True):
        for number, table in enumerate(_tables(shape, np.random.default_rng(seed))):
            count += np.bincount(table["k"].to_numpy(), minlength=shape.keys)
            write_file(table, folder / name, number)
    rows = len(INPUTS) * shape.file_rows * shape.batches
    return Task(dict.fromkeys(INPUTS, DDL), rows, shape.batches, int(np.prod(counts, axis=0).sum()))


def _tables(shape: Shape, random: np.random.Generator) -> Iterator[pa.Table]:
    for number in range(shape.batches):
        start = number * shape.file_rows
        numbers = pa.array(np.arange(start, start + shape.file_rows))
        digits = pc.utf8_lpad(numbers.cast(pa.string()), 20, "0")
        keys = random.integers(0, shape.keys, shape.file_rows)
        yield pa.table({"k": keys, "v": numbers, "s": pc.binary_repeat(digits, shape.width // 20)})
