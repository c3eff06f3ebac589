"""Which updates of few keys does the bench of state send?

`orders` (k, v, s) has each key once, then file after file of updates of random keys; `payments` (k, v, s) has each key once.
A row of an update is an upsert of k; with `pairs` it is two, the row as it was (`-U`) and as it is (`+U`).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import task
from data import texts
from task import Task, write_file


@dataclass(frozen=True)
class Shape:
    """What the data is; equal shapes are equal bytes."""

    keys: int = 100_000
    updates: int = 10_000_000
    file_updates: int = 100_000
    pairs: bool = False
    seed: int = 5
    version: int = 1

    @property
    def files(self) -> int:
        """Of orders: that of the first rows, and those of updates."""
        return 1 + self.updates // self.file_updates


def ensure(shape: Shape) -> Path:
    return task.ensure(task.folder("upserts", shape), partial(write, shape))


def write(shape: Shape, folder: Path) -> Task:
    """Writes both inputs, and counts what comes out: a batch of updates takes back and brings the row of each key in it."""
    random = np.random.default_rng(shape.seed)
    changed, rows = 0, shape.keys
    for number, (table, keys) in enumerate(files(shape, random)):
        write_file(table, folder / "orders", number)
        changed += keys * (2 if number else 1)
        rows += table.num_rows
    write_file(_inserts(shape, random), folder / "payments", 0)
    schema = "k BIGINT, v BIGINT, s STRING, op STRING"
    return Task(dict.fromkeys(("orders", "payments"), schema), rows, shape.files, changed)


def files(shape: Shape, random: np.random.Generator) -> Iterator[tuple[pa.Table, int]]:
    """The files of orders, and how many keys each has."""
    first = _inserts(shape, random)
    yield first, shape.keys
    s, v = first["s"].to_numpy(zero_copy_only=False).copy(), np.arange(shape.keys)
    for number in range(1, shape.files):
        if shape.pairs:
            k = random.permutation(shape.keys)[: shape.file_updates]
        else:
            k = random.integers(0, shape.keys, shape.file_updates)
        new_v = number * shape.file_updates + np.arange(shape.file_updates)
        new_s = texts(shape.file_updates, random).to_numpy(zero_copy_only=False)
        if shape.pairs:
            yield (
                _table(_twice(k, k), _twice(v[k], new_v), _twice(s[k], new_s), np.tile(["-U", "+U"], len(k))),
                len(k),
            )
        else:
            yield _table(k, new_v, new_s, np.repeat(["+U"], len(k))), len(np.unique(k))
        v[k], s[k] = new_v, new_s


def _twice(old: np.ndarray, new: np.ndarray) -> np.ndarray:
    return np.stack([old, new], axis=1).ravel()


def _inserts(shape: Shape, random: np.random.Generator) -> pa.Table:
    """Each key once: row k is that of key k."""
    s = texts(shape.keys, random).to_numpy(zero_copy_only=False)
    return _table(np.arange(shape.keys), np.arange(shape.keys), s, np.repeat(["+I"], shape.keys))


def _table(k: np.ndarray, v: np.ndarray, s: np.ndarray, op: np.ndarray) -> pa.Table:
    return pa.table({"k": k, "v": v, "s": pa.array(s, pa.string()), "op": pa.array(op, pa.string())})
