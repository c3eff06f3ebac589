"""What a worker loads before its first row: each process of Spark pays for it, so a join by equality of files loads no more."""

import ast
import subprocess
import sys
from pathlib import Path

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
WARM = "from joinlib.spark.boot.daemon import warm_up; warm_up()"
ROOT = Path(__file__).parents[3]
DEFERRING = (
    "joinlib/spark/source.py",
    "joinlib/spark/operator.py",
    "joinlib/engine/turn.py",
)  # run by every task
NUMERIC = {"numba", "pandas"}  # map tasks and units need them, the source's driver part does not


@pytest.mark.parametrize(
    ("module", "unwanted"),
    [
        ("joinlib.spark.source", HEAVY | NUMERIC),
        ("joinlib.spark.operator", HEAVY | NUMERIC),
        ("joinlib.engine.splitter", HEAVY),
        (
            "joinlib.source.kafka",
            {"fastavro", "google.protobuf", "grpc_tools", "numba", "joinlib.source.avro.program"},
        ),
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
def test_a_fork_of_files_loads_nothing_that_joins() -> None:
    """It is done before that would be loaded."""
    assert (
        loaded(
            "import jobs.cli.fork",
            {"numba", "confluent_kafka", "joinlib.compiled", "joinlib.lookup.postgres"},
        )
        == []
    )


def test_what_every_worker_warms_up() -> None:
    """All that its first task would load, but nothing of clients, and no kernels that few jobs run."""
    wanted = {name for file in DEFERRING for name in deferred(ROOT / file)}
    assert set(loaded(WARM, HEAVY | wanted)) == wanted != set()


LEAN = "from joinlib.lean import lean; lean(); "


DRIVER = """
import sys
from jobs.driver.__main__ import main
sys.argv = ["streamjoin-driver"]
try: main()
except SystemExit: pass"""
COMMAND = """
import sys
from jobs.cli.commands import main
sys.argv = ["streamjoin", "validate", "nothing.yaml"]
try: main()
except SystemExit: pass"""


@pytest.mark.slow
@pytest.mark.parametrize("program", [WARM, COMMAND, DRIVER])
def test_workers_and_commands_load_no_pandas(program: str) -> None:
    """Pyarrow would load it at its first value. With Spark they do not either: `tests/spark/test_start.py`."""
    assert loaded(f"{program}; import pyarrow as pa; pa.array([None, 1])", {"pandas"}) == []


@pytest.mark.slow
def test_nobody_looks_for_garbage_while_workers_warm_up() -> None:
    """There is next to none; afterwards it is looked for, but not among what was loaded."""
    counted = "; import gc; print(sum(s['collections'] for s in gc.get_stats()), len(gc.get_objects()), gc.isenabled())"
    found = [
        printed(f"from joinlib.spark.boot.daemon import warm_up{more}{counted}")
        for more in ("", "; warm_up()")
    ]
    (before, _, _), (after, left, enabled) = (line.split() for line in found)
    assert int(after) - int(before) < 10
    assert int(left) < 10_000
    assert enabled == "True"


def test_who_wants_pandas_has_it() -> None:
    """Such as a function of a user's in a worker; afterwards pyarrow knows it, too."""
    wants = "import pyarrow as pa; assert pa.table({'a': [1]}).to_pandas().a[0] == 1"
    assert loaded(f"{LEAN} {wants}", {"pandas"}) == ["pandas"]


def deferred(file: Path) -> set[str]:
    """The modules that functions of a file import."""
    functions = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.FunctionDef)]
    imports = [node for f in functions for node in ast.walk(f) if isinstance(node, ast.ImportFrom)]
    return {str(node.module) for node in imports}


def loaded(program: str, modules: set[str]) -> list[str]:
    """Which of the modules a program loads."""
    return printed(f"{program}; import sys; print(*sorted({modules!r} & set(sys.modules)))").split()


def printed(program: str) -> str:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
