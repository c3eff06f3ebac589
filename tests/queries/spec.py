"""The spec that asks a query of the files of its tables."""

from pathlib import Path
from typing import Any

import orjson
import pyarrow.parquet as pq

from joinlib.spec import StreamJoin, parse
from tests.queries.corpus import Query, schemas
from tests.queries.data import Data

SIDE = ("side_input",)  # role table: whole from the first batch on
DELAY = "5s"  # more than an event of Nexmark is late


def write(data: Data, folder: Path) -> None:
    """The files: ten of each table."""
    for name in data.tables:
        (folder / name).mkdir()
        for number, rows in enumerate(data.files(name)):
            pq.write_table(rows, folder / name / f"{number:03d}.parquet")


def content(query: Query, units: int = 2, strategy: str = "auto") -> dict[str, Any]:
    """The spec as a file has it: one file of each table a batch; results as changes."""
    spec = {
        "sql": query.streamed,
        "inputs": {name: _input(query.benchmark, name) for name in query.tables},
        "output": {"mode": "changelog", "files": {"path": "out"}},
        "checkpoint": {"path": "checkpoint", "sync": False},
        "join": {"units": units, "strategy": strategy},
    }
    return {
        "apiVersion": "streamjoin.dev/v1alpha1",
        "kind": "StreamJoin",
        "metadata": {"name": "query"},
        "spec": spec,
    }


def document(query: Query, folder: Path, strategy: str = "auto") -> StreamJoin:
    """The same, read."""
    return parse(orjson.dumps(content(query, strategy=strategy)).decode(), f"{query.title}.yaml", folder)


def _input(benchmark: str, name: str) -> dict[str, Any]:
    schema = ", ".join(" ".join(column) for column in schemas(benchmark)[name])
    if name in SIDE:
        return {"schema": schema, "files": {"path": name}, "role": "table"}
    told: dict[str, Any] = {
        "schema": schema,
        "files": {"path": name, "maxFilesPerBatch": 1, "orderBy": "name"},
    }
    if benchmark in ("nexmark", "patterns"):
        told["eventTime"] = {"column": "dateTime", "delay": DELAY}
    return told
