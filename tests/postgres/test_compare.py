"""The results of a job in a table of a real server, compared with those of its fork in files."""

from typing import Any

import pytest

from jobs.cli import ends
from jobs.cli.compare import compared
from jobs.cli.fork import fork
from joinlib.checkpoint import batches
from joinlib.compiled import compiled
from joinlib.errors import SpecError, StateError
from joinlib.spec import StreamJoin
from tests.postgres.database import PASSWORD, Database
from tests.spark.trial import CORES, Trial

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]
JOIN = "SELECT o.id AS id, o.amount AS amount, p.how AS how FROM orders o JOIN payments p ON o.id = p.id"
SUMS = "SELECT o.id % 5 AS id, count(*) AS n, sum(o.amount) AS amount FROM orders o GROUP BY o.id % 5"
COLUMNS = "id bigint, amount numeric(12,2), how text"


@pytest.fixture
def jobs(trial: Trial) -> Trial:
    """Two files of each input."""
    trial.input("orders", "id BIGINT, amount DECIMAL(10,2)", orderBy="name", maxFilesPerBatch=1)
    trial.input("payments", "id BIGINT, how STRING", orderBy="name", maxFilesPerBatch=1)
    more(trial)
    return trial


def more(trial: Trial) -> None:
    """Two files of each input."""
    start = len(list((trial.folder / "orders").iterdir()))
    for file in range(start, start + 2):
        ids = range(10 * file, 10 * file + 10)
        trial.write("orders", f"{file:03d}", [(n, None if n == 3 else n) for n in ids])
        trial.write("payments", f"{file:03d}", [(n - n % 2, "card" if n % 3 else None) for n in ids])


def job(jobs: Trial, database: Database, table: str, sql: str, **more: Any) -> StreamJoin:
    output = {"postgres": {**database.fields, "table": table}, **more}
    return jobs.spec(sql, output=output, checkpoint={"path": "first"})


def tried(jobs: Trial, sql: str, **more: Any) -> StreamJoin:
    output = {"files": {"path": "tried-out"}, **more}
    return jobs.spec(sql, output=output, checkpoint={"path": "tried"})


def run(jobs: Trial, *documents: StreamJoin) -> None:
    for document in documents:
        jobs.run_plan(compiled(document, CORES))


def test_rows_behind_the_fork(jobs: Trial, database: Database) -> None:
    """Of a table that only grows: those of before are left out, and what somebody else has put there is found."""
    database.execute(f"CREATE TABLE grown ({COLUMNS})")
    first, new = job(jobs, database, "grown", JOIN), tried(jobs, JOIN)
    run(jobs, first)
    before = database.execute("SELECT count(*) FROM grown").column(0)[0].as_py()
    database.execute("VACUUM FREEZE grown")
    assert "`compare`" not in fork(first, new)
    more(jobs)
    run(jobs, new)
    with pytest.raises(StateError, match="nothing to compare yet"):
        compared(first, new)
    run(jobs, first)
    found = compared(first, new)
    rows = database.execute("SELECT count(*) FROM grown").column(0)[0].as_py() - before
    assert before and rows
    assert found.text.splitlines()[1:] == [
        "compared with the rows of table grown behind the fork",
        f"equal, {rows} rows",
    ]
    assert compared(new, first).equal
    database.execute("INSERT INTO grown VALUES (-1, 7.5, 'cash')")
    found = compared(first, new)
    assert not found.equal
    assert "- {id: -1, amount: 7.50, how: 'cash'}" in found.text


def test_keys_that_the_fork_has_changed(jobs: Trial, database: Database) -> None:
    """Of a table whose rows are replaced: each such key is as the fork has left it, and the table may hold others."""
    database.execute("CREATE TABLE sums (id bigint PRIMARY KEY, n bigint, amount numeric(20,2))")
    first = job(jobs, database, "sums", SUMS, mode="upsert", key=["id"])
    new = tried(jobs, SUMS, mode="changelog", key=["id"])
    run(jobs, first)
    fork(first, new)
    jobs.write("orders", "900", [(n, 1) for n in (1, 2, 6)])
    run(jobs, first, new)
    found = compared(first, new)
    told = "compared with the rows of table sums as they are now, of the 2 keys that B has changed"
    assert found.text.splitlines()[1:] == [told, "equal, 2 rows"]
    database.execute("UPDATE sums SET n = 0 WHERE id IN (2, 3)")
    found = compared(first, new)
    assert "different, first in column n of a row" in found.text
    assert "{id: 3" not in found.text
    database.execute("DELETE FROM sums WHERE id = 2")
    assert "different, first in a row that A has not" in compared(first, new).text


def test_a_job_that_has_gone_on(jobs: Trial, database: Database) -> None:
    """Its later rows cannot be told in a table, and so it is said what to do."""
    database.execute(f"CREATE TABLE gone_on ({COLUMNS})")
    first, new = job(jobs, database, "gone_on", JOIN), tried(jobs, JOIN)
    run(jobs, first)
    fork(first, new)
    more(jobs)
    run(jobs, first, new)
    more(jobs)
    run(jobs, first)
    with pytest.raises(
        StateError, match=r"A: output: batch \d+ is the last .* cannot be told in table gone_on; stop A"
    ):
        compared(first, new)
    run(jobs, new)
    assert compared(first, new).equal


def test_a_table_that_may_not_be_read(
    jobs: Trial, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the output, and no secret."""
    database.execute(f"CREATE TABLE closed ({COLUMNS})")
    first, new = job(jobs, database, "closed", JOIN), tried(jobs, JOIN)
    run(jobs, first)
    fork(first, new)
    more(jobs)
    run(jobs, first, new)
    monkeypatch.setenv("PGPASSWORD", "wrong")
    with pytest.raises(SpecError, match=r"^output: ") as refused:
        compared(first, new)
    assert PASSWORD not in str(refused.value)


def test_batches_that_are_there_already(jobs: Trial, database: Database) -> None:
    """A job that goes on while it is forked: what it has written since cannot be told, which is said at once."""
    database.execute(f"CREATE TABLE early ({COLUMNS})")
    first = job(jobs, database, "early", JOIN)
    run(jobs, first)
    done = batches.done(first.spec.checkpoint.folder / "spark")
    assert done
    assert set(ends.ends(first, done)) == {""}
    assert ends.ends(first, done - 1) == {}
