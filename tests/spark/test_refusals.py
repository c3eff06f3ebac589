"""What is refused before a row is read, and is the message of use? Nothing that is stored may change by it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from joinlib.compiled import Compiled
from joinlib.errors import NotReady, SpecError, SqlError, StateError
from tests.spark.trial import Trial, plain

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[2]
SCHEMA = "k BIGINT, s STRING, v BIGINT"
SQL = "SELECT o.k AS k, o.v AS ov, p.v AS pv FROM orders o JOIN payments p ON o.k = p.k"


def two(trial: Trial) -> Trial:
    for name in ("orders", "payments"):
        trial.input(name, SCHEMA)
    return trial


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        (
            "SELECT o.amuont AS v FROM orders o JOIN payments p ON o.k = p.k",
            ["line 1, column 8", "no column amuont"],
        ),
        (
            "SELECT o.v AS v\nFROM orders o JOIN paymnets p ON o.k = p.k",
            ["line 2, column 20", "paymnets", "payments"],
        ),
        (
            "SELECT o.v AS v FROM orders o\nJOIN payments p ON o.k = p.s",
            ["line 2", "BIGINT", "STRING", "CAST(p.s AS BIGINT)"],
        ),
        (
            "SELECT o.k AS k, FIRST(p.v) AS n FROM orders o JOIN payments p ON o.k = p.k GROUP BY o.k",
            ["line 1", "first depends", "min_by"],
        ),
    ],
)
def test_sql_that_cannot_run(trial: Trial, sql: str, said: list[str]) -> None:
    """Place, reason and what to write instead."""
    with pytest.raises(SqlError) as refused:
        two(trial).compiled(sql)
    for part in said:
        assert part in plain(refused.value)


@pytest.fixture(scope="module")
def done(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Trial:
    """A checkpoint and an output of `SQL`."""
    trial = two(Trial(tmp_path_factory.mktemp("done"), spark))
    for name in ("orders", "payments"):
        trial.fill(name, [(n % 5, f"s{n}", n) for n in range(40)], 2)
    trial.run(SQL)
    assert trial.output(SQL) == trial.expected(SQL)
    return trial


def refused(trial: Trial, plan: Compiled, kind: type[Exception] = SpecError) -> str:
    """The message; and the output is what it was."""
    before = files(trial.folder)
    with pytest.raises(kind) as error:
        trial.run_plan(plan)
    assert files(trial.folder) == before
    return plain(error.value)


def files(folder: Path) -> dict[str, int]:
    """Everything that a run may have changed; a lock is not state."""
    return {
        str(f.relative_to(folder)): f.stat().st_mtime_ns
        for f in folder.rglob("*")
        if f.is_file() and "lock" not in f.name
    }


CHANGES: list[tuple[str, dict[str, Any], list[str]]] = [
    (SQL.replace("o.k = p.k", "o.v = p.v"), {}, ["key of o", "o.k", "o.v"]),
    (SQL.replace("payments p", "orders p"), {}, ["the inputs were", "payments p", "orders p"]),
    (SQL.replace(" JOIN", " LEFT JOIN"), {}, ["inner(0, 1)", "left(0, 1)"]),
    (SQL.replace("p.v AS pv", "p.s AS ps"), {}, ["p.s is not among the stored columns"]),
    (SQL + " WHERE o.s > 's3'", {}, ["filter of o", "o.s > 's3'"]),
]


@pytest.mark.parametrize(("sql", "more", "said"), CHANGES)
def test_a_change_that_the_checkpoint_cannot_follow(
    done: Trial, sql: str, more: dict[str, Any], said: list[str]
) -> None:
    """Keys, inputs, kinds, columns, filters: what changed, and what would be needed."""
    text = refused(done, done.compiled(sql, **more))
    for part in [*said, "new", str(done.folder / "checkpoint")]:
        assert part in text


def test_another_type_of_a_column(done: Trial) -> None:
    """Stored bytes of one type are not read as another."""
    done.schemas["orders"] = SCHEMA.replace("v BIGINT", "v INT")
    try:
        text = refused(done, done.compiled(SQL))
    finally:
        done.schemas["orders"] = SCHEMA
    assert "o.v was stored as o.v BIGINT and would be o.v INT" in text


def test_output_of_another_checkpoint(done: Trial) -> None:
    """Results of two checkpoints are not mixed in one folder; nor is a folder taken that somebody else has filled."""
    fresh = done.compiled(SQL, checkpoint={"path": "other"})
    with pytest.raises(SpecError) as error:
        done.run_plan(fresh)
    assert "belongs to another checkpoint" in plain(error.value)
    (done.folder / "foreign" / "batch=0").mkdir(parents=True)
    with pytest.raises(SpecError) as error:
        done.run_plan(done.compiled(SQL, checkpoint={"path": "third"}, output={"files": {"path": "foreign"}}))
    assert "holds batches of something else" in plain(error.value)


def test_checkpoint_without_its_identity(done: Trial) -> None:
    """Nobody knows any more what the state means: it is not guessed."""
    file = done.folder / "checkpoint" / "streamjoin.json"
    aside = file.rename(file.with_name("aside"))
    try:
        text = refused(done, done.compiled(SQL), StateError)
        assert "streamjoin.json is missing" in text
        file.write_text(aside.read_text()[:20])  # cut off
        text = refused(done, done.compiled(SQL), StateError)
        assert "streamjoin.json" in text
    finally:
        aside.replace(file)


def test_two_runs_on_one_checkpoint(done: Trial) -> None:
    """The second is refused while the first lives, and names it; the lock dies with its holder."""
    holder = "import sys; from pathlib import Path; from joinlib.checkpoint.lock import Lock;"
    holder += "lock = Lock(Path(sys.argv[1])); print('held', flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", holder, str(done.folder / "checkpoint")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        text = refused(done, done.compiled(SQL), NotReady)
        assert f"process {other.pid}" in text
        assert "in use by another run" in text
        other.kill()
    assert done.run_plan(done.compiled(SQL)).reports == []


def test_the_select_list_may_change(done: Trial) -> None:
    """What it reads is stored, so expressions, names and order are free; and the checkpoint goes on."""
    sql = "SELECT p.v + o.v AS total, o.k AS same FROM orders o JOIN payments p ON o.k = p.k"
    before = done.output(SQL)
    known = json.loads((done.folder / "checkpoint" / "streamjoin.json").read_text())
    done.write("payments", "new", [(2, "new", 1000)])
    done.run_plan(done.compiled(sql))
    newest = max(done.out.glob("batch=*"), key=lambda p: int(p.name.partition("=")[2]))
    for old in done.out.glob("batch=*"):
        if old != newest:
            old.rename(old.with_name(f".{old.name}"))
    assert done.output(sql) == done.expected(sql) - done.expected(
        sql.replace("o.k = p.k", "o.k = p.k AND p.v < 1000")
    )
    assert before.total() + 8 == done.expected(sql).total()
    assert json.loads((done.folder / "checkpoint" / "streamjoin.json").read_text())["id"] == known["id"]
