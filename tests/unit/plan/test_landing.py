"""Results in a folder: what is refused, how often batches begin, and what the plan says of it."""

from pathlib import Path

import orjson
import pytest

from joinlib.errors import SpecError
from joinlib.plan import landing, pipeline_of
from joinlib.spec import StreamJoin, parse

FILES = {"files": {"path": "out"}}


def document(sql: str = "SELECT a.k JOINED", output: object = FILES, **more: object) -> StreamJoin:
    spec = {
        "sql": sql.replace("JOINED", "FROM a JOIN b ON a.k = b.k"),
        "inputs": {n: {"schema": "k BIGINT, batch BIGINT", "files": {"path": n}} for n in "ab"},
        "output": output,
        "checkpoint": {"path": "checkpoint"},
        **more,
    }
    head = {"apiVersion": "streamjoin.dev/v1alpha1", "kind": "StreamJoin", "metadata": {"name": "landing"}}
    return parse(orjson.dumps({**head, "spec": spec}).decode(), "spec.yaml", Path("/tmp"))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a.k, a.batch JOINED",
        "SELECT a.k AS Batch JOINED",
        "SELECT a.* JOINED",
        "SELECT a.k, count(*) AS batch JOINED GROUP BY a.k",
    ],
)
def test_a_column_that_readers_would_not_see_is_refused(sql: str) -> None:
    """Readers of hive partitions take the folder's number for it; groups come out of columns too. Elsewhere it is a name as any."""
    with pytest.raises(SpecError, match=r"column '[Bb]atch'.*rename it, such as AS batch_id"):
        pipeline_of(document(sql))
    pipeline_of(document(sql, {"noop": {}}))
    pipeline_of(document("SELECT a.batch AS batch_id JOINED"))


def test_batches_of_files_begin_once_a_second() -> None:
    """Unless the spec says otherwise; other results come as soon as they can."""
    assert document().spec.pace_us == 1_000_000
    assert document(output={"noop": {}}).spec.pace_us == 0
    assert document(batch={"interval": "0s"}).spec.pace_us == 0
    assert document(output={"noop": {}}, batch={"interval": "5s"}).spec.pace_us == 5_000_000


def test_the_plan_says_how_fast_the_folder_fills() -> None:
    """In folders a day; nothing of it where there is no folder."""
    assert "at most one in 1s (batch.interval), so up to 86,400 folders a day" in lines()
    assert "at most one in 1m (batch.interval), so up to 1,440 folders a day" in lines(
        batch={"interval": "1m"}
    )
    assert "one after the other" in lines(batch={"interval": "0s"})
    gathered = lines(output={"files": {"path": "out", "compact": {"every": "5m"}}})
    assert "a folder for batches of 5m, or for 67,108,864 bytes" in gathered
    assert "so up to 288 folders a day" in gathered
    assert lines(output={"noop": {}}) == ""


def lines(**more: object) -> str:
    return "\n".join(landing.describe(document(**more).spec))  # type: ignore[arg-type]
