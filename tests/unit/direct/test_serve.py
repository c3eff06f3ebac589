"""What a process says that runs batches without Spark, and several that run one together."""

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from joinlib.compiled import Compiled, compiled
from joinlib.direct.serve import Server
from joinlib.direct.servers import ServerGone, Servers
from joinlib.engine import receipt
from joinlib.engine.composer import Composer
from joinlib.spark.boot import prefork
from joinlib.spec import parse

SMALL = 10  # rows of a small batch at most
SPEC = """
apiVersion: streamjoin.dev/v1alpha1
kind: StreamJoin
metadata: {name: few}
spec:
  sql: SELECT a.k AS k FROM a JOIN b ON a.k = b.k JOIN a c ON c.v = b.v
  inputs:
    a: {schema: "k BIGINT, v BIGINT", files: {path: a}}
    b: {schema: "k BIGINT, v BIGINT", files: {path: b}}
  output: {files: {path: out}}
  checkpoint: {path: checkpoint}
  join: {units: 4}
"""


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Compiled:
    """A job of two levels, with empty inputs and a place for indexes."""
    monkeypatch.setenv("STREAMJOIN_LOCAL_DIR", str(tmp_path / "local"))
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    made = compiled(parse(SPEC, "few.yaml", tmp_path), 2)
    return replace(made, source=replace(made.source, small_rows=SMALL))


def pour(folder: Path, file: int, rows: int, *names: str, group: int = 5) -> None:
    """A file of each input, in slices of so many rows."""
    for name in names:
        table = pa.table({c: pa.array(range(rows), pa.int64()) for c in ("k", "v")})
        pq.write_table(table, folder / name / f"{file}.parquet", row_group_size=group)


def followed(initial: Callable[[], str], following: Callable[[str], str | None]) -> Iterator[tuple[str, str]]:
    """Where each batch begins and ends."""
    start = initial()
    while (end := following(start)) is not None:
        yield start, end
        start = end


def test_an_end(plan: Compiled, tmp_path: Path) -> None:
    """What comes later than the first look is not read."""
    pour(tmp_path, 0, 5, "a")
    serving = Server(plan.source, plan.join, until_done=True)
    found = []
    for _, end in followed(serving.initial, lambda start: serving.next(start, start)):
        pour(tmp_path, 1, 5, "a")
        found.append(json.loads(end))
    assert [(end["inputs"], end["small"]) for end in found] == [({"a": 1, "b": 0}, True)]


@pytest.mark.slow
def test_several_processes_run_a_batch_together(plan: Compiled, tmp_path: Path) -> None:
    """Each unit of each stage says what it has done once, whether one process ran the batch or two did; what fails is told."""
    servers = Servers([prefork.begin()], plan.source, plan.join, until_done=False)
    try:
        told, small = [], []
        pour(tmp_path, 0, 60, "a", "b")
        for batch, (start, end) in enumerate(followed(servers.initial, servers.next)):
            said = [r for task in servers.run(start, end, batch, 2) for r in receipt.heard(task)]
            told.append([receipt.decode(text) for text, _ in said])
            small.append(json.loads(end)["small"])
            if batch == 0:
                pour(tmp_path, 1, 3, "a", "b")
        assert small == [False, True]
        assert not list(plan.join.exchange.iterdir()), "what has been read is gone"
        for server in servers._all:
            maps = Path(f"/proc/{server._process.pid}/maps").read_text()
            assert str(plan.join.exchange) not in maps, "and its room is free"
        units = range(len(plan.pipeline.stages) * 4)
        assert [sorted(r.unit for r in batch) for batch in told] == [list(units)] * 2
        last = [sum(r.rows_out for r in batch if r.unit >= max(units) - 3) for batch in told]
        assert last == [60, 3 * 7], "a key that comes again has 2 * 2 * 2 matches, of which one is old"
        with pytest.raises(ServerGone, match="Traceback"):
            servers.run(start, json.dumps({**json.loads(end), "small": False}), 99, 2)
    finally:
        servers.close()


@pytest.mark.slow
def test_a_batch_is_read_while_the_one_before_is_joined(plan: Compiled, tmp_path: Path) -> None:
    """It is the batch that would have come. One that is small, or goes to other partitions, is read anew."""
    pour(tmp_path, 0, 60, "a", "b")
    pour(tmp_path, 1, SMALL // 2, "b")
    found, there = both_ways(replace(plan, source=replace(plan.source, max_rows=30)))
    assert there == [False, True, True, True, False]
    assert [small for _, small, _ in found] == [False] * 4 + [True]


@pytest.mark.slow
def test_several_batches_are_read_whole(plan: Compiled, tmp_path: Path) -> None:
    """Where a row group would be decoded by each process that reads a part of it, others read several batches meanwhile."""
    for file in range(6):
        pour(tmp_path, file, 30, "a", "b", group=30)
    _, there = both_ways(few_of(plan, max_rows=60, tasks=5))
    assert there == [False, *[True] * 5]


def few_of(plan: Compiled, **source: int) -> Compiled:
    """The plan where any share of a row group is worth a task."""
    tuning = replace(plan.source.tuning, share_rows=1)
    return replace(plan, source=replace(plan.source, tuning=tuning, **source))  # type: ignore[arg-type]


@pytest.mark.slow
def test_what_cannot_be_read_is_told_when_its_batch_begins(plan: Compiled, tmp_path: Path) -> None:
    """Not by a batch before it, while which it was read."""
    for file in range(5):
        pour(tmp_path, file, 60, "a", group=60)
    plan = few_of(plan, max_rows=60, tasks=4)
    servers = Servers([prefork.begin()], plan.source, plan.join, until_done=True)
    try:
        ends = followed(servers.initial, servers.next)
        servers.run(*next(ends), 0, 2)
        (tmp_path / "a" / "3.parquet").write_bytes(b"changed")
        for batch in (1, 2):
            servers.run(*next(ends), batch, 2, ahead=True)
        with pytest.raises(ServerGone, match=r"3\.parquet"):
            servers.run(*next(ends), 3, 2, ahead=True)
    finally:
        servers.close()
    assert not plan.join.exchange.exists()


def test_what_is_decoded_at_once_is_one_part(plan: Compiled, tmp_path: Path) -> None:
    """It is read whole where others would decode it, too; not where there are enough row groups for all tasks."""
    pour(tmp_path, 0, 60, "a", "b", group=30)
    for tasks, whole, parts in ((9, True, 4), (8, False, 8), (3, False, 3)):
        serving = Server(few_of(plan, tasks=tasks).source, plan.join, until_done=True)
        found = serving.ahead(start := serving.initial(), start, read=True)
        assert found is not None
        assert (found[2], len(found[1])) == (whole, parts)


def test_slices_of_a_row_group_are_read_together(
    plan: Compiled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of them would be decoded with all others."""
    monkeypatch.setattr("joinlib.source.parquet.BATCH_ROWS", 10)
    pour(tmp_path, 0, 60, "a", "b", group=30)
    composer = Composer(few_of(plan, tasks=8).source)
    end = composer.after(start := composer.initial())
    whole = composer.parts(start, end, whole=True)
    assert [[(n, len(s)) for n, s in part.reads] for part in whole] == [[(n, 3)] for n in "aabb"]


Ran = tuple[
    dict[str, int], bool, list[tuple[int, int]]
]  # where a batch ends, whether it is small, rows of each unit


def both_ways(plan: Compiled) -> tuple[list[Ran], list[bool]]:
    """Each batch, which is the same whether what follows is read ahead or not; and whether any of it was."""
    apart, there_then = ran(plan, ahead=False)
    assert not any(there_then)
    plan.join.forget_local()
    shutil.rmtree(plan.checkpoint)
    overlapped, there_now = ran(plan, ahead=True)
    assert overlapped == apart
    return overlapped, there_now


def ran(plan: Compiled, *, ahead: bool) -> tuple[list[Ran], list[bool]]:
    """Each batch, and whether any of it was read before it began. Partitions change on the way."""
    servers, found, there = (
        Servers([prefork.begin()], plan.source, plan.join, until_done=True),
        list[Ran](),
        [],
    )
    try:
        for batch, (start, end) in enumerate(followed(servers.initial, servers.next)):
            there.append(servers._ahead.following(start) is not None)
            partitions, known = 2 if batch < 2 else 3, json.loads(end)
            said = servers.run(start, end, batch, partitions, ahead=ahead)
            assert len(said) == (1 if known["small"] else partitions)
            told = [receipt.decode(text) for task in said for text, _ in receipt.heard(task)]
            found.append((known["inputs"], known["small"], sorted((r.unit, r.rows_out) for r in told)))
        assert not list(plan.join.exchange.iterdir()), "what was read is gone, also what nobody has used"
    finally:
        servers.close()
    return found, there


@pytest.mark.parametrize(
    ("join", "table", "free"),
    [
        ("units: 4", "", True),
        ("units: 4, strategy: biclique", "", False),
        ("units: 4", ", role: table", False),
    ],
)
def test_what_depends_on_the_batch_before_is_read_when_that_one_is(
    join: str, table: str, free: bool, tmp_path: Path
) -> None:
    """A biclique spreads the keys that were hot, and so does a stream that only meets tables: then one batch is ahead."""
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    pour(tmp_path, 0, 60, "a", "b")
    text = SPEC.replace("units: 4", join).replace("{path: b}", "{path: b}" + table)
    plan = compiled(parse(text.replace(" JOIN a c ON c.v = b.v", ""), "few.yaml", tmp_path), 2)
    server = Server(plan.source, plan.join, until_done=True)
    assert (server.ahead(start := server.initial(), start, read=False) is not None) == free
    assert server.ahead(start, start, read=True) is not None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("join", "table"), [("units: 4, strategy: biclique", ""), ("units: 4", ", role: table")]
)
def test_hot_keys_are_spread_alike(join: str, table: str, tmp_path: Path) -> None:
    """Whether a batch was read ahead or not: by what the batch before has read, and has not joined yet."""
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    for file in range(3):
        hot = pa.table({"k": pa.array([7] * 40 + list(range(20)), pa.int64()), "v": pa.array(range(60))})
        pq.write_table(hot, tmp_path / "a" / f"{file}.parquet", row_group_size=30)
    pour(tmp_path, 0, 60, "b")
    text = SPEC.replace("units: 4", join).replace("{path: b}", "{path: b}" + table)
    plan = compiled(parse(text.replace(" JOIN a c ON c.v = b.v", ""), "few.yaml", tmp_path), 2)
    plan = replace(plan, source=replace(plan.source, small_rows=SMALL, max_rows=60))
    found = []
    for ahead in (False, True):
        servers, ends = Servers([prefork.begin()], plan.source, plan.join, until_done=True), []
        try:
            for batch, (start, end) in enumerate(followed(servers.initial, servers.next)):
                assert (servers._ahead.following(start) is not None) == (ahead and batch > 0)
                servers.run(start, end, batch, 2, ahead=ahead)
                ends.append({name: json.loads(end)[name] for name in ("inputs", "route", "rules", "hot")})
        finally:
            servers.close()
        plan.join.forget_local()
        shutil.rmtree(plan.checkpoint)
        found.append(ends)
    assert found[0] == found[1]
    assert any(end["route"] or end["rules"] for end in found[0]), "some keys are hot"


def test_inputs_let_go_of_what_is_done(
    plan: Compiled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not of what the batch reads that runs, whatever is composed behind it."""
    released = list[dict[str, int]]()
    monkeypatch.setattr(Composer, "commit", lambda _, end: released.append(end["inputs"]))
    pour(tmp_path, 0, 60, "a", "b")
    server = Server(replace(plan.source, max_rows=30), plan.join, until_done=True)
    first = server.next(start := server.initial(), start)
    assert first is not None
    ahead = server.ahead(first, start, read=True)
    assert ahead is not None
    assert released == []
    again = server.ahead(ahead[0], first, read=True)
    assert again is not None
    assert released == [json.loads(first)["inputs"]]
