"""Which changes does every system join?

Two inputs (k BIGINT, v BIGINT, s: 14 letters, op: STRING) of as many changes as the append-only inputs have rows. A share of
them are updates: the row of a v as it was (`-U`), then the row with another s (`+U`); all others insert a row. In a file,
updates are of rows of earlier files (in the first: of its own), each at most once, and lie anywhere among the inserts.

    file 0: +I +I … -U +U …      file 1: +I -U +U +I …

Rows are unique, so what a batch changes in the join can be counted by key: all pairs that were there, and all that are,
but those that stayed. The numbers that are right lie in `task.json` (rows that come out where a batch is a file of each input)
and `net.json` (rows that are there at the end).
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import task
from data import INPUTS, texts
from task import Task, write_file

SCHEMA = "k BIGINT, v BIGINT, s STRING, op STRING"


@dataclass(frozen=True)
class Shape:
    """What the data is; equal shapes are equal bytes."""

    changes: int = 4_000_000  # of each input
    keys: int = 1_000_000  # so a row has about as many partners as in the append-only task
    updates: float = 0.5  # share of the changes that take a row back or bring the one in its place
    files: int = 8
    seed: int = 11
    version: int = 1

    @property
    def file_rows(self) -> int:
        return self.changes // self.files

    @property
    def pairs(self) -> int:
        """Updates of one file, each of two changes."""
        return int(self.file_rows * self.updates) // 2

    @property
    def inserts(self) -> int:
        return self.file_rows - 2 * self.pairs


FULL = Shape()
QUICK = Shape(changes=500_000, keys=125_000)


def ensure(shape: Shape) -> Path:
    """The folder of a shape, written if it is not there."""
    return task.ensure(task.folder("changes", shape), partial(write, shape))


def net(data: Path) -> int:
    """Rows of the join at the end."""
    return int(json.loads((data / "net.json").read_text()))


def write(shape: Shape, folder: Path) -> Task:
    """Writes both inputs, and counts what each batch changes."""
    seeds = np.random.SeedSequence(shape.seed).spawn(len(INPUTS))
    drawn = [files(shape, np.random.default_rng(seed)) for seed in seeds]
    before = [np.zeros(shape.keys, np.int64) for _ in INPUTS]
    changed = 0
    for number, batch in enumerate(zip(*drawn, strict=True)):
        stayed, after = [], []
        for name, count, (table, taken) in zip(INPUTS, before, batch, strict=True):
            write_file(table, folder / name, number)
            ops, keys = table["op"].to_numpy(zero_copy_only=False), table["k"].to_numpy()
            gone = np.bincount(taken, minlength=shape.keys)
            came = np.bincount(keys[ops == "+I"], minlength=shape.keys)
            came += np.bincount(keys[ops == "+U"], minlength=shape.keys)
            own = np.bincount(
                keys[ops == "-U"], minlength=shape.keys
            )  # those of rows that came in this file cancel
            stayed.append(count - gone)
            after.append(count + came - own)
        changed += int(before[0] @ before[1] + after[0] @ after[1] - 2 * stayed[0] @ stayed[1])
        before = after
    (folder / "net.json").write_text(json.dumps(int(before[0] @ before[1])))
    return Task(dict.fromkeys(INPUTS, SCHEMA), len(INPUTS) * shape.changes, shape.files, changed)


def files(shape: Shape, random: np.random.Generator) -> Iterator[tuple[pa.Table, np.ndarray]]:
    """The files of one input, and the keys of the rows of earlier files that each takes back."""
    keys = random.integers(0, shape.keys, shape.inserts * shape.files)
    text = texts(len(keys), random).to_numpy(zero_copy_only=False)
    for number in range(shape.files):
        old = number * shape.inserts
        fresh = np.arange(old, old + shape.inserts)
        chosen = random.choice(old or shape.inserts, shape.pairs, replace=False)
        new = texts(shape.pairs, random).to_numpy(zero_copy_only=False)
        kinds = np.repeat([0, 1], [shape.inserts, shape.pairs])
        if old:  # a row of the first file is inserted before it is updated
            random.shuffle(kinds)
        place = np.cumsum(kinds + 1) - kinds - 1  # of the first change of each
        v, s, op = (
            np.empty(shape.file_rows, np.int64),
            np.empty(shape.file_rows, object),
            np.empty(shape.file_rows, object),
        )
        for at, who, what, word in (
            (place[kinds == 0], fresh, text[fresh], "+I"),
            (place[kinds == 1], chosen, text[chosen], "-U"),
            (place[kinds == 1] + 1, chosen, new, "+U"),
        ):
            v[at], s[at], op[at] = who, what, word
        text[chosen] = new
        table = pa.table(
            {"k": keys[v], "v": v, "s": pa.array(s, pa.string()), "op": pa.array(op, pa.string())}
        )
        yield table, keys[chosen] if old else np.empty(0, np.int64)


if __name__ == "__main__":
    print(ensure(FULL))
