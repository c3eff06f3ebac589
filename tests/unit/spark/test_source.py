"""What a batch says of itself in its offset."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from joinlib.compiled import compiled
from joinlib.engine.composer import Composer, Offset
from joinlib.spec import parse

SPEC: dict[str, Any] = {
    "apiVersion": "streamjoin.dev/v1alpha1",
    "kind": "StreamJoin",
    "metadata": {"name": "told"},
    "spec": {
        "sql": "SELECT a.k FROM a JOIN b ON a.k = b.k",
        "inputs": {
            name: {"schema": "k BIGINT", "files": {"path": name, "orderBy": "name", "maxFilesPerBatch": 1}}
            for name in "ab"
        },
        "output": {"noop": {}},
    },
}


def test_batches_that_read_other_files_differ(tmp_path: Path) -> None:
    """Two checkpoints of the same counts, to which files came in another order; the first is as it was when it is asked again."""
    one, other = (spec(tmp_path, name) for name in ("one", "other"))
    for name in "ab":
        (tmp_path / name).mkdir()
    write(tmp_path, "2")
    first = [offset(one), offset(one), offset(other)]
    write(tmp_path, "1")
    second = offset(other, first[0])
    write(tmp_path, "3")
    (tmp_path / "one" / "sources").rename(tmp_path / "kept")
    anew = offset(one, first[0])  # lists 1 before 2: slice 1 is the file 2

    assert first[0] == first[1] == first[2]
    assert second["inputs"] == anew["inputs"] == {"a": 2, "b": 2}
    assert len({first[0]["read"], second["read"], anew["read"]}) == 3


def test_inputs_without_rows_make_one_batch_of_a_total(tmp_path: Path) -> None:
    """Once they have ended: the group of all rows is there. A job that waits for rows says nothing yet."""
    for name in "ab":
        (tmp_path / name).mkdir()
    total = {
        "sql": "SELECT count(*) AS n FROM a JOIN b ON a.k = b.k",
        "output": {"mode": "changelog", "noop": {}},
    }
    composer, keyed = spec(tmp_path, "total", **total), spec(tmp_path, "keyed")
    assert composer.after(composer.initial()) == composer.initial()
    for one in (composer, keyed):
        one.bound()
    first = composer.after(composer.initial())
    assert first != composer.initial()
    assert first["inputs"] == {"a": 0, "b": 0}
    assert composer.after(first) == first
    assert keyed.after(keyed.initial()) == keyed.initial()


def spec(folder: Path, checkpoint: str, **more: Any) -> Composer:
    made = {**SPEC, "spec": {**SPEC["spec"], "checkpoint": {"path": checkpoint}, **more}}
    return Composer(compiled(parse(orjson.dumps(made).decode(), "spec.yaml", folder), 1).source)


def offset(composer: Composer, start: Offset | None = None) -> Offset:
    """Of the next batch, as a process that begins now plans it."""
    return Composer(composer.task).after(start or composer.initial())


def write(folder: Path, file: str) -> None:
    for name in "ab":
        pq.write_table(pa.table({"k": [1]}), folder / name / file)


def test_files_stay_as_long_as_a_job_may_go_back(tmp_path: Path) -> None:
    """A file goes so many batches after the one that read it, as segments do, however few of them one run had."""
    for name in "ab":
        (tmp_path / name).mkdir()
    for number in range(12):
        write(tmp_path, f"{number:02d}")
    made = deepcopy(SPEC)
    made["spec"]["checkpoint"] = {"path": "checkpoint"}
    made["spec"]["inputs"]["a"]["files"]["done"] = "delete"
    plan = compiled(parse(orjson.dumps(made).decode(), "spec.yaml", tmp_path), 1)
    composer = Composer(plan.source)
    at, left = composer.initial(), []
    (log := tmp_path / "checkpoint" / "spark" / "offsets").mkdir(parents=True)
    for batch in range(12):
        if batch == 10:
            composer = Composer(plan.source)
        at = composer.after(at)
        (log / str(batch)).write_bytes(b"v1\n{}\n" + orjson.dumps(at))
        composer.commit(at)
        left.append(len(list((tmp_path / "a").iterdir())))
    assert plan.source.tuning.retain_batches == 8
    assert left == [12] * 8 + [11, 10, 9, 8]
    assert len(list((tmp_path / "b").iterdir())) == 12
