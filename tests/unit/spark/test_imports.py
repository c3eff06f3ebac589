"""What a worker loads before its first row: each process of Spark pays for it, so a join of files loads what files need."""

import subprocess
import sys

import pytest

HEAVY = {  # of topics, of databases, of specs: a second together
    "adbc_driver_manager",
    "adbc_driver_postgresql",
    "confluent_kafka",
    "joinlib.lookup.postgres",
    "joinlib.lookup.versions",
    "joinlib.source.kafka.input",
    "joinlib.source.kafka.reader",
    "pyarrow.dataset",
    "pydantic",
    "sqlglot",
}
NUMERIC = {"numba", "pandas"}  # map tasks and units need them, the source's driver part does not


@pytest.mark.parametrize(
    ("module", "unwanted"),
    [
        ("joinlib.spark.source", HEAVY | NUMERIC),
        ("joinlib.spark.operator", HEAVY | NUMERIC),
        ("joinlib.spark.splitter", HEAVY),
        ("joinlib.spark.unit", HEAVY),
    ],
)
def test_a_join_of_files_loads_no_clients(module: str, unwanted: set[str]) -> None:
    """In a process of its own, as workers are."""
    program = f"import sys, {module}; print(*sorted({unwanted!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
