"""What a worker loads before its first row: each process of Spark pays for it, so a join by equality of files loads no more."""

import subprocess
import sys

import pytest

HEAVY = {  # of topics, of databases, of specs: a second together
    "adbc_driver_manager",
    "adbc_driver_postgresql",
    "confluent_kafka",
    "joinlib.index.inequality",
    "joinlib.lookup.postgres",
    "joinlib.lookup.versions",
    "joinlib.postgres.connection",
    "joinlib.source.kafka.input",
    "joinlib.source.kafka.reader",
    "pyarrow.dataset",
    "pydantic",
    "sqlglot",
    "tenacity",
}
NUMERIC = {"numba", "pandas"}  # map tasks and units need them, the source's driver part does not


@pytest.mark.parametrize(
    ("module", "unwanted"),
    [
        ("joinlib.spark.source", HEAVY | NUMERIC),
        ("joinlib.spark.operator", HEAVY | NUMERIC),
        ("joinlib.engine.splitter", HEAVY),
        ("joinlib.engine.unit", HEAVY),
    ],
)
def test_a_join_of_files_loads_no_clients(module: str, unwanted: set[str]) -> None:
    """In a process of its own, as workers are."""
    assert loaded(f"import {module}", unwanted) == []


@pytest.mark.slow
def test_a_run_loads_no_kernels_before_spark_starts() -> None:
    """Only its workers join."""
    assert loaded("import jobs.cli.run, joinlib.compiled, joinlib.spark.job", {"numba", "scipy"}) == []


@pytest.mark.slow
def test_what_every_worker_warms_up() -> None:
    """Kernels that few jobs run are left to them: to load those takes half a second."""
    assert loaded("from joinlib.warm import warm; warm()", {"joinlib.index.inequality"}) == []


def loaded(program: str, modules: set[str]) -> list[str]:
    """Which of the modules a program loads."""
    tell = f"{program}; import sys; print(*sorted({modules!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", tell], capture_output=True, text=True, check=True)
    return done.stdout.split()
