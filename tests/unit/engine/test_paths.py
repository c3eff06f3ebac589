"""A path join from source to output, in one process and without Spark; DuckDB answers the same SQL in one piece."""

import random
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

from joinlib.engine.exchange import Sender
from joinlib.engine.frames import frames_by_route
from tests.unit.engine.bench import TUNING, UNITS, Bench
from tests.unit.plan.three import three

SCHEMAS = {"c": "k BIGINT, name STRING", "o": "k BIGINT, c BIGINT, t TIMESTAMP", "l": "o BIGINT, t TIMESTAMP"}
SQL = (
    "SELECT c.name AS name, o.k AS k, l.t AS t FROM c JOIN o ON c.k = o.c JOIN l ON o.k = l.o AND l.t >= o.t"
)
START = datetime(2026, 1, 1, tzinfo=UTC)


def _time(draw: random.Random) -> datetime:
    return START + timedelta(minutes=draw.randrange(90))


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """The path join of `three`."""
    monkeypatch.setattr("joinlib.compiled.plan_of", lambda *_, **__: three(UNITS))
    made = Bench(tmp_path, SCHEMAS, False, SQL)
    made.sql = SQL.replace("l.t AS t", "l.t::TIMESTAMPTZ AS t")  # as instants are read
    return made


def fill(bench: Bench, files: range) -> None:
    """A file of each input for each number."""
    for file in files:
        draw = random.Random(file)
        some = partial(draw.choice, [None, *range(9)])
        at = partial(_time, draw)
        bench.write("c", file, [(some(), f"n{draw.randrange(99)}") for _ in range(5)])
        bench.write("o", file, [(draw.randrange(40), some(), at()) for _ in range(30)])
        bench.write("l", file, [(draw.choice([None, *range(40)]), at()) for _ in range(40)])


def test_two_levels_in_several_batches(bench: Bench) -> None:
    """Each level runs twice in some batch; figures count each row once, by however many keys it is stored."""
    fill(bench, range(3))
    bench.run(twice=frozenset({(1, 0), (2, 1)}))
    assert bench.output() == bench.expected() != Counter()
    fill(bench, range(3, 5))
    bench.run()

    assert bench.output() == bench.expected()
    said = [r for batch in bench.receipts for r in batch]
    assert [sum(column) for column in zip(*(r.rows_in for r in said), strict=True)] == [
        bench.db.sql(f"SELECT count(*) FROM {source} WHERE {key} IS NOT NULL").fetchall()[0][0]
        for source, key in (("c", "k"), ("o", "c"), ("l", "o"))
    ]
    assert sum(r.rows_out for r in said) == bench.output().total()
    assert all({r.unit for r in batch} == set(range(2 * UNITS)) for batch in bench.receipts)


def test_tuples_of_earlier_batches_are_deleted(bench: Bench, tmp_path: Path) -> None:
    """Large blocks of tuples go as files, which only their own batch reads."""
    fill(bench, range(4))
    bench.run()

    assert bench.output() == bench.expected() != Counter()
    left = [f.name for f in (tmp_path / "ck" / "state" / "1").glob("*/in*")]
    assert left and all(f"-{bench.batch - 1:08d}-" in name for name in left)


def test_routes_are_framed_apart() -> None:
    """Frames have the rows of one route, in their order, and are as large as they may be."""
    rows = [(n % 3, pa.record_batch({"n": [n]})) for n in range(20)]
    found = [
        (route, frame.column("n").to_pylist()) for route, frame in frames_by_route(iter(rows), 3, 100, 10**6)
    ]
    for one in range(3):
        own = [numbers for route, numbers in found if route == one]
        assert [n for numbers in own for n in numbers] == list(range(one, 20, 3))
        assert [len(numbers) for numbers in own[:-1]] == [3] * (len(own) - 1)


def test_very_many_tuples_are_framed_by_bytes() -> None:
    """Behind the limit frames grow with what comes, and none is as small as before."""
    rows = [(0, pa.record_batch({"n": [n]})) for n in range(100)]
    found = [frame.num_rows for _, frame in frames_by_route(iter(rows), 2, 20, 8 * 16)]
    assert found == [2] * 10 + [16] * 5


def test_wide_tuples_are_framed_by_bytes() -> None:
    """However few they are."""
    rows = [(0, pa.record_batch({"n": [n]})) for n in range(10)]
    found = [frame.num_rows for _, frame in frames_by_route(iter(rows), 100, 1000, 8 * 4)]
    assert found == [4, 4, 2]


@pytest.mark.parametrize("limit", [10**6, 0])
def test_very_many_tuples_go_in_few_blocks(bench: Bench, monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    """Frames of a row or two make a block of each; behind the limit a batch has one for each route and unit."""
    sent, send = Counter[int](), Sender._send

    def counted(self: Sender, number: int, unit: int, part: pa.RecordBatch) -> tuple[int, pa.Buffer]:
        sent[self.number] += 1
        return send(self, number, unit, part)

    monkeypatch.setattr(Sender, "_send", counted)
    tuning = replace(TUNING, frame_rows=2, path_rows=limit)
    bench.plan = replace(bench.plan, join=replace(bench.plan.join, tuning=tuning))
    fill(bench, range(3))
    bench.run()

    assert bench.output() == bench.expected() != Counter()
    assert (sent[1] > 3 * 3 * UNITS) == (limit > 0)


TIMED = {
    "a": "k BIGINT, v BIGINT, t TIMESTAMP",
    "b": "k BIGINT, j BIGINT, t TIMESTAMP",
    "c": "j BIGINT, w BIGINT, t TIMESTAMP",
}
NEAR = (
    "a JOIN b ON a.k = b.k AND b.t BETWEEN a.t - INTERVAL 4 MINUTES AND a.t + INTERVAL 4 MINUTES"
    " JOIN c ON b.j = c.j AND c.t BETWEEN a.t - INTERVAL 6 MINUTES AND a.t + INTERVAL 3 MINUTES"
)


def test_time_passes_through_all_levels(tmp_path: Path) -> None:
    """Old rows are dropped, and groups above the last level come out before the end: they hear how far time is."""
    sql = f"SELECT minute(date_trunc('minute', a.t)) AS m, count(*) AS n, sum(c.w) AS w FROM {NEAR} GROUP BY date_trunc('minute', a.t)"
    bench = Bench(tmp_path, TIMED, True, sql, join={"strategy": "paths"})
    assert [type(s).__name__ for s in bench.plan.pipeline.stages] == ["PathStage", "HopStage", "GroupStage"]
    start = datetime(2026, 1, 1)  # noqa: DTZ001 - as in most files, no zone
    for file in range(12):
        for name in TIMED:
            draw = random.Random(f"{file}{name}")
            times = [
                start + timedelta(seconds=6 * at + draw.randrange(55))
                for at in range(file * 20, file * 20 + 20)
            ]
            rows = [
                (draw.randrange(5), draw.randrange(5) if name == "b" else at, t) for at, t in enumerate(times)
            ]
            bench.write(name, file, rows)
    bench.run()

    assert bench.output() == bench.expected() != Counter()
    early = [sum(r.rows_out for r in batch) for batch in bench.receipts[:-1]]
    assert sum(map(bool, early)) > 5, "most groups are final long before the inputs end"
    stored = [sum(r.state_rows for r in batch if r.unit < UNITS) for batch in bench.receipts]
    assert max(stored) < 600 < 12 * 20 * 4, "b is stored twice, and all of it for some minutes"
