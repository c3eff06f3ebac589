"""Specs whose profiles tell where time goes, each with its data: `python bench/where.py NAME`.

cores        two inputs of 4 M rows by equality, in batches of 1 M
latency      100 batches of 1 000 rows
inequality   Q3 of SPO-Join: a stream with itself, window of 100 000 rows, five slides
band         ABS(a.k - b.k) <= 1 over 1 M values, 2 x 200 000 rows, 16 units
lookup       1 M rows, and a table of 5 M rows that is loaded whole
reading      two inputs of 1 M rows in JSON lines
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

Spec = dict[str, Any]


def _table(columns: Mapping[str, Any]) -> pa.Table:
    return pa.table({name: pa.array(values) for name, values in columns.items()})


def _write(folder: Path, table: pa.Table, files: int, lines: bool = False) -> None:
    """In files of equal size: Parquet, or lines of JSON."""
    folder.mkdir(parents=True)
    size = -(-table.num_rows // files)
    for number in range(files):
        part = table.slice(number * size, size)
        if lines:
            text = "\n".join(json.dumps(row) for row in part.to_pylist())
            (folder / f"{number:05d}.jsonl").write_text(text + "\n")
        else:
            pq.write_table(part, folder / f"{number:05d}.parquet", row_group_size=250_000)


def _input(folder: Path, schema: str, format: str = "parquet") -> Spec:
    return {"schema": schema, "files": {"path": str(folder), "format": format, "maxFilesPerBatch": 1}}


def _two(folder: Path, rows: int, files: int, lines: bool = False) -> Spec:
    """Two inputs of as many rows, one match a row."""
    inputs = {}
    for seed, name in enumerate("ab"):
        keys = np.random.default_rng(seed).permutation(rows)
        texts = np.char.add("text", (keys % 1000).astype(str))
        _write(folder / name, _table({"id": keys, "v": keys * 7, "text": texts}), files, lines)
        schema = "id BIGINT, v BIGINT, text STRING"
        inputs[name] = _input(folder / name, schema, "jsonl" if lines else "parquet")
    return {"sql": "SELECT a.id, a.v, b.text FROM a JOIN b ON a.id = b.id", "inputs": inputs}


def cores(folder: Path) -> Spec:
    return _two(folder, 4_000_000, 8)


def latency(folder: Path) -> Spec:
    return _two(folder, 50_000, 100)


def inequality(folder: Path) -> Spec:
    rows, window, draw = 150_000, 100_000, np.random.default_rng(1)
    x = draw.random(rows)
    y = x + 1.75 * 0.00025 * draw.standard_normal(rows)
    _write(folder / "taxi", _table({"id": np.arange(rows), "distance": x, "fare": y}), rows // 10_000)
    return {
        "sql": "SELECT a.id AS a, b.id AS b FROM taxi a JOIN taxi b ON a.distance > b.distance AND a.fare < b.fare",
        "inputs": {"taxi": _input(folder / "taxi", "id BIGINT, distance DOUBLE, fare DOUBLE")},
        "join": {"units": 2, "window": {"rows": window}},
    }


def band(folder: Path) -> Spec:
    inputs = {}
    for seed, name in enumerate("ab"):
        keys = np.random.default_rng(seed).integers(0, 1_000_000, 200_000)
        _write(folder / name, _table({"id": np.arange(200_000), "k": keys}), 8)
        inputs[name] = _input(folder / name, "id BIGINT, k BIGINT")
    sql = "SELECT a.id AS a, b.id AS b FROM a JOIN b ON ABS(a.k - b.k) <= 1"
    return {"sql": sql, "inputs": inputs, "join": {"units": 16}}


def lookup(folder: Path) -> Spec:
    rows, draw = 5_000_000, np.random.default_rng(1)
    keys = draw.permutation(rows)
    _write(folder / "t", _table({"k": keys, "s": np.char.add("text", (keys % 1000).astype(str))}), 10)
    _write(folder / "a", _table({"k": draw.integers(0, rows, 1_000_000)}), 4)
    table = {
        "schema": "k BIGINT, s STRING",
        "role": "table",
        "files": {"path": str(folder / "t"), "format": "parquet"},
    }
    return {
        "sql": "SELECT a.k, t.s FROM a JOIN t ON a.k = t.k",
        "inputs": {"a": _input(folder / "a", "k BIGINT"), "t": table},
    }


def reading(folder: Path) -> Spec:
    return _two(folder, 1_000_000, 4, lines=True)


CASES: dict[str, Callable[[Path], Spec]] = {
    one.__name__: one for one in (cores, latency, inequality, band, lookup, reading)
}


def made(name: str, folder: Path) -> Path:
    """Write a case's data and spec into an empty folder; return the spec's file."""
    spec = {
        "output": {"noop": {}},
        "batch": {"maxRows": 2_000_000},  # files are the limit
        **CASES[name](folder),
        "checkpoint": {"path": str(folder / "checkpoint")},
    }
    head = {"apiVersion": "streamjoin.dev/v1alpha1", "kind": "StreamJoin", "metadata": {"name": name}}
    file = folder / f"{name}.yaml"
    file.write_text(yaml.safe_dump({**head, "spec": spec}))
    return file
