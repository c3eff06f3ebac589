"""A job's file gets the spec of its fork: what of it stays, what is refused, and a kill at each point."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from jobs.cli.compare import compared
from jobs.cli.fork import fork
from jobs.cli.switch import switch
from joinlib.checkpoint.identity import identify
from joinlib.checkpoint.lock import Lock
from joinlib.checkpoint.planned import plan_of
from joinlib.errors import NotReady, SpecError
from joinlib.sink.publish import claim
from joinlib.spec import load
from joinlib.worker import current
from tests.unit.jobs.test_fork import more, results, run

OLD = """\
# The job of the shop.
apiVersion: streamjoin.dev/v1alpha1
kind: StreamJoin
metadata: {name: first, labels: {team: shop}}
spec:
  sql: SELECT a.k AS k, a.v AS av, b.v AS bv FROM a JOIN b ON a.k = b.k
  inputs:
    a: &input
      schema: k BIGINT, v BIGINT
      files: {path: a, orderBy: name, maxFilesPerBatch: 1}
    b:
      schema: k BIGINT, v BIGINT
      files: {path: b, orderBy: name, maxFilesPerBatch: 1}
  output:
    files: {path: first/out}
  checkpoint: {path: first/checkpoint, sync: false}
  join: {units: 2}
---
apiVersion: v1
kind: Secret
"""
NEW = """\
apiVersion: streamjoin.dev/v1alpha1
kind: StreamJoin
metadata: {name: fork}
spec:
    # What is new: rows of even keys alone.
    sql: |
      SELECT a.k AS k, a.v AS av, b.v AS bv
        FROM a JOIN b ON a.k = b.k
       WHERE b.k % 2 = 0 -- even
    inputs:
        a:
            schema: k BIGINT, v BIGINT
            files: {path: a, orderBy: name, maxFilesPerBatch: 1}
        b:
            schema: k BIGINT, v BIGINT
            files: {path: b, orderBy: name, maxFilesPerBatch: 1}
    output:
        files:
            path: fork/out   # of the fork alone
            compact: {every: 10s}
    checkpoint:
        path: fork/checkpoint
    join: {units: 2}

"""
AFTER = """\
# The job of the shop.
apiVersion: streamjoin.dev/v1alpha1
kind: StreamJoin
metadata: {name: first, labels: {team: shop}}
spec:
  sql: |
    SELECT a.k AS k, a.v AS av, b.v AS bv
      FROM a JOIN b ON a.k = b.k
     WHERE b.k % 2 = 0 -- even
  inputs:
      a:
          schema: k BIGINT, v BIGINT
          files: {path: a, orderBy: name, maxFilesPerBatch: 1}
      b:
          schema: k BIGINT, v BIGINT
          files: {path: b, orderBy: name, maxFilesPerBatch: 1}
  output:
      files:
          path: first/out   # of the fork alone
          compact: {every: 10s}
  checkpoint:
      {path: first/checkpoint, sync: false}
  join: {units: 2}
---
apiVersion: v1
kind: Secret
"""


@pytest.fixture(autouse=True)
def _indexes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("STREAMJOIN_LOCAL_DIR", str(tmp_path / "local"))
    yield
    current().close()


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """A job with a fork, which has not run."""
    for _ in range(2):
        more(tmp_path)
    old, new = tmp_path / "old.yaml", tmp_path / "new.yaml"
    old.write_text(OLD)
    new.write_text(NEW)
    run(load(old))
    fork(load(old), load(new))
    return old, new


def test_the_job_goes_on_as_its_fork(files: tuple[Path, Path]) -> None:
    """With its own name, checkpoint and output: nothing is lost or doubled, and a second time nothing changes."""
    old, new = files
    old.chmod(0o640)
    before = results(old.parent, "first")
    said = switch(old, new)
    assert old.read_text() == AFTER
    assert old.stat().st_mode & 0o777 == 0o640
    assert (
        said.splitlines()[0]
        == f"{old} has the spec of {new} now; `streamjoin run {old}` goes on behind batch 1"
    )
    assert "has not read" not in said
    assert switch(old, new).startswith(f"{old} has the spec of {new} already")
    more(old.parent)
    run(load(old))
    run(load(new))
    assert compared(load(old), load(new)).equal
    came = results(old.parent, "first") - before
    assert came
    assert all(k % 2 == 0 for k, _, _ in came)
    assert results(old.parent, "first") == before + results(old.parent, "fork")


def test_a_fork_that_is_behind(files: tuple[Path, Path]) -> None:
    """It is said how far, since that much was not compared; the job goes on all the same."""
    old, new = files
    more(old.parent)
    run(load(old))
    assert "the fork has not read 24 rows that the job has" in switch(old, new)


@pytest.mark.parametrize("point", ["switching", "switched"])
def test_a_kill(files: tuple[Path, Path], point: str) -> None:
    """The file is the old one or the new one; the command given again ends what was begun."""
    old, new = files
    faults = old.parent / "faults"
    faults.mkdir()
    (faults / f"{point}:1").touch()
    command = [
        sys.executable,
        "-c",
        "from jobs.cli.commands import main; main()",
        "switch",
        str(old),
        "--to",
        str(new),
    ]
    environment = os.environ | {"STREAMJOIN_FAULTS": str(faults)}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100, check=False)
    assert ran.returncode == -signal.SIGKILL, ran.stderr
    assert old.read_text() == (OLD if point == "switching" else AFTER)
    again = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert (again.returncode, "has the spec of" in again.stdout) == (0, True), again.stderr
    assert old.read_text() == AFTER


def test_outputs_of_other_kinds_stay(files: tuple[Path, Path]) -> None:
    """A topic or a table is where the job writes; the fork's files were to try it."""
    old, new = files
    topic = "kafka: {topic: t, bootstrapServers: b:1}\n    mode: upsert\n    key: [k, av, bv]"
    old.write_text(OLD.replace("files: {path: first/out}", topic))
    switch(old, new)
    spec = next(d for d in yaml.safe_load_all(old.read_text()) if d["kind"] == "StreamJoin")["spec"]
    assert spec["output"] == {
        "kafka": {"topic": "t", "bootstrapServers": "b:1"},
        "mode": "upsert",
        "key": ["k", "av", "bv"],
    }
    assert "% 2 = 0" in spec["sql"]


def test_what_is_refused(files: tuple[Path, Path]) -> None:
    """Each says why, and leaves the file as it is."""
    old, new = files
    apart = old.parent / "a" / ".." / "b" / "new.yaml"
    apart.write_text(NEW.replace("path: ", "path: ../"))
    with pytest.raises(SpecError, match="only if both are written in one folder; edit"):
        switch(old, apart)
    apart.unlink()
    new.write_text("x: &sql SELECT 1\n" + NEW.replace("metadata", "labels", 0))
    with pytest.raises(SpecError, match="unknown field"):
        switch(old, new)
    new.write_text(NEW.replace("JOIN b", "LEFT JOIN b"))
    with pytest.raises(SpecError, match="does not fit the new spec"):
        switch(old, new)
    new.write_text(
        NEW.replace("{units: 2}", "{units: 2}\n    deadLetters: {path: dead}").replace(
            "        files:\n", "        onError: deadLetter\n        files:\n"
        )
    )
    claim(old.parent / "dead", identify(old.parent / "fork/checkpoint", "fork", plan_of(load(new))))
    with pytest.raises(SpecError, match=r"deadLetters\.path: .*dead belongs to the fork"):
        switch(old, new)
    new.write_text(NEW)
    lock = Lock(old.parent / "first/checkpoint")
    with pytest.raises(NotReady, match="is in use by another run"):
        switch(old, new)
    lock.release()
    new.write_text(NEW.replace("fork/checkpoint", "other/checkpoint"))
    run(load(new))
    with pytest.raises(SpecError, match="is not a fork of"):
        switch(old, new)
    assert old.read_text() == OLD
