"""What is joined?

A data folder says it itself: its inputs, how many rows there are, how many results are right.

A folder holds a subfolder of parquet files for each input, one file a batch, and `task.json`. Made whole or
not at all.
"""

import json
import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

CACHE = Path.home() / ".cache" / "streamjoin" / "bench"
FIRST_MTIME = 1_700_000_000
DEFAULT_ROWS = 1_000_000  # of a batch: `batch.maxRows`


@dataclass(frozen=True)
class Task:
    """Inputs by name, each with its columns as DDL."""

    inputs: Mapping[str, str]
    rows: int  # of all inputs
    batches: int
    results: int

    @property
    def batch_rows(self) -> int:
        """Rows of one batch, all inputs together, about."""
        return self.rows // self.batches


def read(data: Path) -> Task:
    return Task(**json.loads((data / "task.json").read_text()))


def rows_of(data: Path, inputs: Iterable[str]) -> int:
    """Rows that the files of some inputs have."""
    return sum(pq.read_metadata(f).num_rows for name in inputs for f in (data / name).glob("*.parquet"))


def default_batches(rows: int) -> int:
    """So many that a batch has about as many rows as it has by default; at least four, for there is a warm-up."""
    return max(4, -(-rows // DEFAULT_ROWS))


def folder(kind: str, shape: Any) -> Path:
    """Where data of a shape, a dataclass, lies: equal shapes are equal bytes."""
    name = sha256(json.dumps(asdict(shape), sort_keys=True).encode()).hexdigest()[:12]
    return CACHE / f"{kind}-{name}"


def ensure(folder: Path, write: Callable[[Path], Task]) -> Path:
    """The folder, written if it is not there: whole or not at all, by one rename."""
    if not folder.exists():
        aside = folder.with_suffix(f".{os.getpid()}")
        task = write(aside)
        (aside / "task.json").write_text(json.dumps(asdict(task), indent=1))
        try:
            aside.rename(folder)
        except OSError:  # another run was first; its bytes are the same
            shutil.rmtree(aside)
    return folder


def write_file(table: pa.Table, folder: Path, number: int, row_groups: int = 2) -> None:
    """The part of an input that batch `number` reads; no dictionaries, since every value is nearly unique.

    Names and modification times ascend alike, so each reader takes the files in the same order.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"part-{number:04d}.parquet"
    group = max(-(-table.num_rows // row_groups), 1)
    options = {"use_dictionary": False, "store_decimal_as_integer": True, "compression": "snappy"}
    pq.write_table(table, path, row_group_size=group, **options)
    os.utime(path, (FIRST_MTIME + number, FIRST_MTIME + number))
