"""Is it the right answer, row by row?

The query's result at scale 1, as StreamJoin writes it, beside DuckDB's.
"""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import duckdb
import task
from speed import OUR_BINARY, OUR_STAGES, OURS, command


def compared(data: Path, work: Path) -> dict[str, Any]:
    """Of each way to join: how many rows came out, and how many of one answer the other has not."""
    return {name: _compared(name, data, work) for name in (OURS, OUR_BINARY, OUR_STAGES)}


def _compared(name: str, data: Path, work: Path) -> dict[str, int]:
    output = work / "results"
    run = [*command(name, data, work / "work"), "--output", str(output)]
    subprocess.run(run, check=True, stdout=subprocess.DEVNULL)
    with duckdb.connect() as base:
        for table in task.read(data).inputs:
            base.read_parquet(str(data / table / "*.parquet")).create_view(table)
        base.read_parquet(str(output / "**" / "*.parquet"), hive_partitioning=False).create_view("ours")
        base.execute(f"CREATE TABLE right_rows AS {Path(run[run.index('--query') + 1]).read_text()}")
        found = {
            "rows": "SELECT count(*) FROM ours",
            "missing": "SELECT count(*) FROM (FROM right_rows EXCEPT ALL FROM ours)",
            "wrong": "SELECT count(*) FROM (FROM ours EXCEPT ALL FROM right_rows)",
        }
        counted = {what: int(base.execute(sql).fetchall()[0][0]) for what, sql in found.items()}
    shutil.rmtree(work, ignore_errors=True)
    return counted
