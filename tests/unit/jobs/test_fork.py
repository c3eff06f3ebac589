"""A fork without Spark: what it shares, what each job does to the other (nothing), what is refused, and where results differ."""

import errno
import json
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jobs.cli.compare import compared
from jobs.cli.diff import differ
from jobs.cli.fork import fork
from jobs.cli.summary import near
from joinlib.checkpoint import batches, units
from joinlib.checkpoint import fork as forks
from joinlib.checkpoint.history import History
from joinlib.checkpoint.identity import identify, origin_of, units_of
from joinlib.checkpoint.planned import plan_of
from joinlib.compiled import compiled
from joinlib.errors import SpecError, StateError
from joinlib.inprocess import InProcess
from joinlib.model.tuning import Tuning
from joinlib.sink.publish import claim, publish
from joinlib.spec import StreamJoin, parse
from joinlib.state import epochs
from joinlib.worker import current

SQL = "SELECT a.k AS k, a.v AS av, b.v AS bv FROM a JOIN b ON a.k = b.k"
# Each batch seals and merges, and what a merge has replaced goes with the batch after it.
TUNING = Tuning(
    file_bytes=0,
    seal_rows=4,
    merge_segments=2,
    max_segments=8,
    max_runs=2,
    retain_batches=1,
    levelled=True,
    fanout=2,
)
KEYS, ROWS = 5, 12
Rows = Counter[tuple[Any, ...]]


@pytest.fixture(autouse=True)
def _indexes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("STREAMJOIN_LOCAL_DIR", str(tmp_path / "local"))
    yield
    current().close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two files of each input."""
    for _ in range(2):
        more(tmp_path)
    return tmp_path


def more(folder: Path) -> None:
    """Another file of each input; by its name it would be the first, so that only the log knows its place."""
    for number, name in enumerate("ab"):
        (folder / name).mkdir(exist_ok=True)
        file = len(list((folder / name).iterdir()))
        rows = range(file * ROWS, (file + 1) * ROWS)
        table = pa.table({"k": [(n * (number + 1)) % KEYS for n in rows], "v": list(rows)})
        pq.write_table(table, folder / name / f"{999 - file}.parquet")


def job(folder: Path, name: str = "first", sql: str = SQL, **more: Any) -> StreamJoin:
    files = {"orderBy": "name", "maxFilesPerBatch": 1}
    spec = {
        "sql": sql,
        "inputs": {n: {"schema": "k BIGINT, v BIGINT", "files": {"path": n, **files}} for n in "ab"},
        "output": {"files": {"path": f"{name}/out"}},
        "checkpoint": {"path": f"{name}/checkpoint", "sync": False},
        "join": {"units": 2},
        **more,
    }
    head = {"apiVersion": "streamjoin.dev/v1alpha1", "kind": "StreamJoin", "metadata": {"name": name}}
    return parse(json.dumps({**head, "spec": spec}), f"{name}.yaml", folder)


def run(document: StreamJoin, most: int = 100, cut_off: bool = False) -> int:
    """A run as a driver does it, of so many batches; returns how many. `cut_off`: the last one is not committed."""
    plan = compiled(document, 2, TUNING)
    spark, output = plan.checkpoint / "spark", document.spec.output.files
    assert output is not None
    plan.checkpoint.mkdir(parents=True, exist_ok=True)
    units.follow(plan.checkpoint, plan.pipeline, TUNING)
    identity = identify(plan.checkpoint, document.metadata.name, plan.pipeline)
    History(plan.checkpoint, len(plan.pipeline.stages)).check()
    batches.make(spark, synced=False)
    epochs.take(plan.join.states, synced=False)
    claim(output.path, identity)
    current().close()
    run = InProcess(plan)
    if (done := batches.done(spark)) is not None:
        run.offset, run.batch = batches.offset(spark, done), done + 1
    if (begun := batches.cut_off(spark)) is not None:
        batches.forget(spark, begun - 1)
    run.composer.bound()
    for number in count():
        if number == most or (end := run.next()) is None:
            return number
        batch = run.batch
        (spark / "offsets" / str(batch)).write_text(f"v1\n{{}}\n{json.dumps(end)}")
        told = run.join(end)
        publish(output.path, batch, [n for t in told for n in t.receipt.files], batches.mark(spark, batch))
        if not (cut_off and number == most - 1):
            (spark / "commits" / str(batch)).write_text('v1\n{"nextBatchWatermarkMs":0}')
        run.done(end)
    raise AssertionError


def results(folder: Path, *names: str) -> Rows:
    files = [f for name in names for f in (folder / name / "out").glob("batch=*/*.parquet")]
    rows = [r for f in files for r in pq.read_table(f, partitioning=None).to_pylist()]
    return Counter((r["k"], r["av"], r["bv"]) for r in rows)


def expected(folder: Path) -> Rows:
    a, b = ([r for f in (folder / n).iterdir() for r in pq.read_table(f).to_pylist()] for n in "ab")
    return Counter((x["k"], x["v"], y["v"]) for x in a for y in b if x["k"] == y["k"])


def segments(folder: Path, name: str) -> dict[str, int]:
    """Names and inodes."""
    found = (folder / name / "checkpoint" / "state").rglob("*.arrow")
    return {str(f.relative_to(folder / name)): f.stat().st_ino for f in found}


@pytest.mark.parametrize("first", ["first", "fork"])
def test_each_goes_on_by_itself(folder: Path, first: str) -> None:
    """While the other one merges and cleans up, or is gone; together with what was there before, both have all rows."""
    for _ in range(3):
        more(folder)
    run(job(folder), most=3)
    said = fork(job(folder), job(folder, "fork"))
    assert said.startswith(f"{near(folder / 'fork' / 'checkpoint')} begins behind batch 2 of")
    origin = origin_of(folder / "fork" / "checkpoint") or {}
    assert (origin["name"], origin["batch"]) == ("first", 2)
    both = segments(folder, "first")
    assert segments(folder, "fork").items() <= both.items()
    assert segments(folder, "fork")
    before = results(folder, "first")
    assert before and before != expected(folder)
    one, other = (first, "fork" if first == "first" else "first")
    assert run(job(folder, one)) >= 2
    more(folder)
    run(job(folder, one))
    assert not set(both) <= set(segments(folder, one)), "nothing was merged away"
    shutil.rmtree(folder / one / "checkpoint")
    run(job(folder, other))
    assert results(folder, "first") - before == results(folder, "fork")
    assert before + results(folder, "fork") == expected(folder)


def test_a_fork_of_a_job_that_was_cut_off(folder: Path) -> None:
    """The batch that has begun is not in it: each runs it by itself."""
    for _ in range(2):
        more(folder)
    run(job(folder), most=3, cut_off=True)
    assert "behind batch 1" in fork(job(folder), job(folder, "fork"))
    run(job(folder, "fork"))
    run(job(folder))
    assert results(folder, "first") == expected(folder)
    assert compared(job(folder), job(folder, "fork")).equal


def test_a_fork_while_the_job_goes_on(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it was about to share is merged away: the next batch is taken."""
    for _ in range(6):
        more(folder)
    run(job(folder), most=3)
    link, runs = forks._link, iter([5])

    def late(source: Path, target: Path) -> None:
        for most in runs:
            run(job(folder), most=most)
        link(source, target)

    monkeypatch.setattr(forks, "_link", late)
    assert "behind batch 7" in fork(job(folder), job(folder, "fork"))
    assert {f.name for f in (folder / "fork").iterdir()} == {"checkpoint"}
    more(folder)
    run(job(folder))
    run(job(folder, "fork"))
    told = "A: batches 8 to 8, B: batches 8 to 8, by which both have read the same\nequal, 489 rows"
    assert compared(job(folder), job(folder, "fork")).text == told


def other(folder: Path, **more: Any) -> StreamJoin:
    return job(folder, "fork", **more)


def input_of(folder: Path, **files: Any) -> dict[str, Any]:
    given = {"schema": "k BIGINT, v BIGINT", "files": {"path": "b", "orderBy": "name", **files}}
    return {"inputs": {"a": {**given, "files": {"path": "a"}}, "b": given}}


REFUSED: dict[str, Callable[[Path], StreamJoin]] = {
    "checkpoint.path: {f}/first/checkpoint meets the checkpoint of the first job": job,
    "output.files.path: {f}/first/out meets the output of the first job": lambda f: other(
        f, output={"files": {"path": "first/out"}}
    ),
    "checkpoint.path: {f}/first/out/x meets the output of the first job": lambda f: other(
        f, checkpoint={"path": "first/out/x"}
    ),
    "checkpoint.path: {f}/a is in use": lambda f: other(f, **used()),
    "deadLetters.path: {f}/first/out meets the output of the first job": lambda f: other(
        f, **letters("first/out")
    ),
    "output.kafka: takes rows that cannot be withdrawn": lambda f: other(
        f, output={"kafka": {"topic": "t", "bootstrapServers": "b:1"}}
    ),
    "inputs.b: is read from another place": lambda f: other(f, **input_of(f, path="c")),
    "inputs.b.files.done: is delete, by which the fork takes files away": lambda f: other(
        f, **input_of(f, done="delete")
    ),
    "the joins were inner": lambda f: other(f, sql=SQL.replace(" JOIN", " LEFT JOIN")),
}


def letters(path: str, out: str = "fork/out") -> dict[str, Any]:
    return {"deadLetters": {"path": path}, "output": {"files": {"path": out}, "onError": "deadLetter"}}


def used() -> dict[str, Any]:
    given = {"schema": "k BIGINT, v BIGINT", "files": {"path": "b"}}
    return {"checkpoint": {"path": "a"}, "inputs": {"a": given, "b": given}}


@pytest.mark.parametrize("message", REFUSED)
def test_what_cannot_be_forked(message: str, folder: Path) -> None:
    """Nothing is written, and the first job goes on."""
    run(job(folder), most=1)
    before = sorted(folder.rglob("*"))
    with pytest.raises(SpecError) as error:
        fork(job(folder), REFUSED[message](folder))
    assert message.format(f=near(folder)) in str(error.value)
    assert sorted(folder.rglob("*")) == before


def test_dead_letters_of_two_jobs(folder: Path) -> None:
    """Each job has a folder of its own, as it would be told at its first run."""
    run(job(folder), most=1)
    first, new = job(folder, **letters("dead", "first/out")), other(folder, **letters("dead"))
    with pytest.raises(SpecError, match=r"deadLetters\.path: .*dead meets the dead letters of the first job"):
        fork(first, new)
    assert not (folder / "fork").exists()


def test_a_fork_in_more_units(folder: Path) -> None:
    """It begins with the units of the first job, which share its segments; its first run divides them."""
    run(job(folder))
    before = results(folder, "first")
    new = other(folder, join={"units": 8})
    fork(job(folder), new)
    assert units_of(new.spec.checkpoint.folder) == 2
    assert "the state is divided when the job starts: join.units was 2 and is 8" in plan_of(new).notes
    more(folder)
    ours = segments(folder, "first")
    run(new)
    assert units_of(new.spec.checkpoint.folder) == 8
    assert segments(folder, "first") == ours
    run(job(folder))
    assert results(folder, "first") == expected(folder)
    assert results(folder, "first") - results(folder, "fork") == before


def test_nothing_to_fork(folder: Path) -> None:
    """Before the first batch is done, and before there is a checkpoint."""
    with pytest.raises(SpecError, match="holds no checkpoint"):
        fork(job(folder), job(folder, "fork"))
    run(job(folder), most=1, cut_off=True)
    with pytest.raises(SpecError, match="has no batch that is done"):
        fork(job(folder), job(folder, "fork"))


def test_a_fork_where_this_user_may_not_write(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told by the field of the new spec, and what to do."""

    def refuses(source: Path, target: Path) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(source), None, str(target))

    run(job(folder))
    monkeypatch.setattr(os, "link", refuses)
    with pytest.raises(
        SpecError,
        match=r"^spec\.checkpoint\.path: .*fork/checkpoint cannot be written: Permission denied; give",
    ):
        fork(job(folder), job(folder, "fork"))


def test_damage_is_not_forked(folder: Path) -> None:
    """A segment that is missing is named, and nothing is left of the fork."""
    run(job(folder))
    for file in (folder / "first" / "checkpoint" / "state").rglob("*.arrow"):
        file.unlink()
    with pytest.raises(StateError, match=r"\.arrow is missing; go back to an earlier batch"):
        fork(job(folder), job(folder, "fork"))
    assert list((folder / "fork").iterdir()) == []


def test_nothing_to_compare(folder: Path) -> None:
    """Right after a fork, and as long as one of the jobs has not gone on: no rows are not equal rows."""
    run(job(folder), most=1)
    fork(job(folder), new := job(folder, "fork"))
    with pytest.raises(StateError, match="nothing to compare yet: behind batch 0"):
        compared(job(folder), new)
    run(new)
    with pytest.raises(StateError, match="nothing to compare yet"):
        compared(job(folder), new)
    run(job(folder))
    assert compared(job(folder), new).equal
    with pytest.raises(SpecError, match="B: output: the results of a fork are compared from files"):
        compared(job(folder), other(folder, output={"noop": {}}))
    with pytest.raises(SpecError, match="A: output: only results in files, a topic or a table"):
        compared(job(folder, output={"noop": {}}), new)


def test_where_results_differ(folder: Path) -> None:
    """Of other columns of the same name the first difference is told; a column of one job alone is left out."""
    run(job(folder), most=1)
    changed = job(folder, "fork", SQL.replace("b.v AS bv", "b.v + if(a.v = 13, 1, 0) AS bv, b.k AS more"))
    fork(job(folder), changed)
    more(folder)
    run(job(folder))
    run(changed, most=1)
    run(changed)
    found = compared(job(folder), changed)
    assert not found.equal
    lines = found.text.splitlines()
    assert lines[0] == "A: batches 1 to 2, B: batches 1 to 2, by which both have read the same"
    assert lines[1] == "not compared, of one job alone or of two types: more"
    assert lines[2] == "different, first in column bv of a row"
    assert all("av: 13" in line for line in lines[3:])
    run(job(folder, "third"))
    with pytest.raises(SpecError, match="is a fork of the other"):
        compared(job(folder), job(folder, "third"))


def test_the_difference_of_specs_is_what_a_run_decides(folder: Path) -> None:
    """By the checkpoint where there is one; each field by itself, and all of them together."""
    old = job(folder)
    run(old)
    new = job(folder, sql=SQL.replace(" JOIN", " LEFT JOIN"), join={"units": 4}, batch={"maxRows": 7})
    change = differ(old, new)
    assert [(f.text.split(":")[0], bool(f.reasons)) for f in change.fields] == [
        ("spec.batch.maxRows", False),
        ("spec.join.units", False),
        ("spec.sql changed", True),
    ]
    with pytest.raises(SpecError) as refused:
        run(new)
    assert all(reason in str(refused.value) for reason in change.reasons)
    fine = job(
        folder,
        sql=SQL.replace("b.v AS bv", "b.v + 1 AS bv"),
        output={"files": {"path": "first/out", "format": "csv"}},
    )
    change = differ(old, fine)
    assert change.reasons == ()
    assert "goes on      spec.output.files.format: the default -> csv" in change.text
    run(fine)


def test_a_change_of_units_is_told(folder: Path) -> None:
    """Also to the default, where the checkpoint has others: it is what the next start does."""
    old = job(folder, join={})
    run(old)
    assert units_of(old.spec.checkpoint.folder) == 2
    change = differ(old, job(folder, join={"units": 8}))
    assert [field.text for field in change.fields] == ["spec.join.units: absent -> 8"]
    assert change.notes == (
        "the state is divided when NEW starts: join.units was 2 and is 8; no batch before that can be restored then",
    )
    same = differ(old, job(folder, join={"units": 2}))
    assert ([field.text for field in same.fields], same.notes) == (["spec.join.units: absent -> 2"], ())
    assert differ(old, old).text == "nothing has changed\n\nNEW goes on: the state keeps its meaning"


def test_each_field_that_differs_has_a_line(folder: Path) -> None:
    """The name of the job and the folder of its state, too."""
    old, new = job(folder), job(folder, checkpoint={"path": "x", "reset": "y", "sync": False})
    named = {"name": "other", "labels": {"example.com/a.b": "c"}}
    new = new.model_copy(update={"metadata": new.metadata.model_copy(update=named)})
    fields = differ(old, new).fields
    assert [next(field.lines).replace(" changed", ":").split(":")[0] for field in fields] == [
        "goes on      metadata.labels",
        "goes on      metadata.name",
        "elsewhere    spec.checkpoint.path",
        "elsewhere    spec.checkpoint.reset",
    ]


def test_a_field_that_changes_only_with_others(folder: Path) -> None:
    """It is said of it, and the whole is decided."""
    new = job(folder, output={"noop": {}}, checkpoint={"path": "new"})
    text = differ(job(folder), new).text
    assert "with others  spec.output.noop: the default -> {}" in text
    assert "NEW goes on" in text
    assert "NEW begins in" in text
