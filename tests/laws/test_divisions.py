"""Law: a job goes on with more or fewer units (`join.units`) as if it had always had as many.

DuckDB answers after each batch, or where rows wait after all. Some batches run twice, some in new processes.
"""

from collections import Counter
from pathlib import Path
from random import Random

import pytest

from joinlib.model.stage import PathStage
from joinlib.spec import StreamJoin
from joinlib.state.manifest import Manifest, decode
from joinlib.state.manifests import everything
from tests.laws.harness import SMALL
from tests.laws.product import Course, Product, own_folder
from tests.laws.test_followed_groups import FILES, Row, World, answers, document, sent

NEAR = "b.ts BETWEEN a.ts - INTERVAL 20 SECONDS AND a.ts + INTERVAL 20 SECONDS"
AT_ONCE = {  # what comes out of each batch is how the answer changes
    "inner": "SELECT a.k, a.v, b.s FROM a JOIN b ON a.k = b.k",
    "left": "SELECT a.k, a.v, b.s FROM a LEFT JOIN b ON a.k = b.k AND a.v <> b.v",
    "full": "SELECT a.k, a.v, b.s FROM a FULL JOIN b ON a.k = b.k AND a.v <> b.v",
    "semi": "SELECT a.k, a.v FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.v > a.v)",
    "anti": "SELECT a.k, a.v FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.v > a.v)",
    "by two keys": "SELECT a.k, b.v, c.s FROM a JOIN b ON a.k = b.k JOIN a c ON b.v = c.v",
    "united": "SELECT k, v FROM a UNION SELECT k, v FROM b",
    "grouped": "SELECT k, count(*), count(DISTINCT v), sum(x), min(v), max(s) FROM a GROUP BY k",
    "grouped join": "SELECT a.s, count(*), sum(b.v), median(b.x) FROM a JOIN b ON a.k = b.k GROUP BY a.s",
    "one group": "SELECT count(*), sum(m), count(DISTINCT s) FROM a",
    "twice grouped": "SELECT n, count(*) FROM (SELECT k, v, count(*) AS n FROM a GROUP BY k, v) g GROUP BY n",
    "ranked": "SELECT k, v, rank() OVER (PARTITION BY k ORDER BY v DESC) AS r FROM a",
    "top": "SELECT k, v FROM (SELECT k, v, rank() OVER (PARTITION BY k ORDER BY v DESC) AS r FROM a) q WHERE r <= 2",
}
WAITING = {  # rows come out when they are final; so for DuckDB
    "left": (f"SELECT a.k, a.v, a.ts, b.s FROM a LEFT JOIN b ON a.k = b.k AND {NEAR}",) * 2,
    "full": (f"SELECT a.k, a.v, a.ts, b.s FROM a FULL JOIN b ON a.k = b.k AND {NEAR}",) * 2,
    "anti": (f"SELECT a.k, a.v FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE a.k = b.k AND {NEAR})",) * 2,
    "windows": (
        "SELECT window_start AS t, k, count(*), sum(x) FROM TUMBLE(a, ts, INTERVAL '1' MINUTE) GROUP BY 1, 2",
        "SELECT date_trunc('minute', ts) AS t, k, count(*), sum(x) FROM a GROUP BY 1, 2",
    ),
    "running": ("SELECT k, ts, sum(v) OVER (PARTITION BY k ORDER BY ts) AS r, lag(ts) OVER (PARTITION BY k ORDER BY ts) AS l FROM a",)
    * 2,
}  # fmt: skip
COURSES = ((1, {2: 4, 4: 2}), (8, {2: 2, 4: 1}), (2, {1: 8, 3: 4}))


def product(folder: Path, sql: str, mode: str, deleted: bool, course: int, strategy: str = "auto") -> Product:
    units, divided = COURSES[course]
    followed = Course((1, 2), frozenset({2, 3}), frozenset({4}), course, units=divided)
    return begun(document(folder, sql, mode, deleted), units, followed, strategy)


def begun(document: StreamJoin, units: int, course: Course, strategy: str = "auto") -> Product:
    join = document.spec.join.model_copy(update={"units": units, "strategy": strategy})
    spec = document.spec.model_copy(update={"join": join})
    return Product(document.model_copy(update={"spec": spec}), SMALL, course)


@pytest.mark.parametrize("course", range(len(COURSES)))
@pytest.mark.parametrize("deleted", [False, True], ids=["appended", "deleted"])
@pytest.mark.parametrize("name", AT_ONCE)
def test_answers_of_each_batch(name: str, deleted: bool, course: int) -> None:
    sql = AT_ONCE[name]
    with own_folder() as folder:
        world = World(folder, Random(f"{name} {course}"), "ab", deleted)
        told = Counter[Row]()
        run = product(folder, sql, "changelog", deleted, course)
        for batch in run.batches():
            answers(told, folder, batch, world, sql)
        assert run.plan.pipeline.units == [*COURSES[course][1].values()][-1]


@pytest.mark.parametrize("course", range(len(COURSES)))
@pytest.mark.parametrize("name", WAITING)
def test_rows_that_wait(name: str, course: int) -> None:
    ours, theirs = WAITING[name]
    with own_folder() as folder:
        world = World(folder, Random(f"{name} {course}"), "ab", deleted=False)
        run = product(folder, ours, "append", False, course)
        told = Counter(row for batch in run.batches() for row, _ in sent(folder, batch))
        assert told == world.answer(theirs, FILES - 1)
        assert run.plan.pipeline.units == [*COURSES[course][1].values()][-1]


@pytest.mark.parametrize("kind", ["JOIN", "FULL JOIN"])
@pytest.mark.parametrize("factor", range(1, 6))
def test_units_of_few_keys(factor: int, kind: str) -> None:
    """What lies beside the checkpoint stays, and a unit may hold nothing of what the one held that had its number."""
    a, b = (f"({name}.k + minute({name}.ts)) * {factor}" for name in "ab")
    sql = f"SELECT a.v, b.s FROM a {kind} b ON {a} = {b}"
    with own_folder() as folder:
        world = World(folder, Random(factor), "ab", deleted=False)
        told = Counter[Row]()
        course = Course(units={1: 4, 2: 8, 3: 2, 4: 16, 5: 8})
        for batch in begun(document(folder, sql, "changelog", False), 8, course).batches():
            answers(told, folder, batch, world, sql)


def test_figures_time_and_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are inserted three at a time, so that sides have runs, and merge them as in any batch."""
    monkeypatch.setattr("joinlib.checkpoint.divided._ROWS", 3)
    with own_folder() as folder:
        World(folder, Random(7), "ab", deleted=False)
        last = folder / "a" / f"{FILES - 1}.parquet"
        last.rename(folder / "a" / "00.parquet")  # comes second, so that later rows of a are late
        run = product(folder, f"SELECT a.k, b.v FROM a JOIN b ON a.k = b.k AND {NEAR}", "append", False, 0)
        for batch in run.batches():
            if batch == 4:
                break
        before = known(run)
        run.divide(8)
        many = known(run)
        run.divide(1)
        [one] = known(run)
        assert len(before) == 2 and len(many) == 8 and sum(m.late[0] for m in before) > 0
        for manifests in (before, many):
            assert summed(manifests) == summed([one])
            assert {(m.watermark, m.highest) for m in manifests} == {(one.watermark, one.highest)}
        for side in one.sides:
            assert len(side.runs) > 1 and all(run.sealed for run in side.runs[:-1])


def test_runs_of_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sides that tell what was there before a batch seal and merge their runs when the next one begins."""
    monkeypatch.setattr("joinlib.checkpoint.divided._ROWS", 3)
    with own_folder() as folder:
        World(folder, Random(7), "ab", deleted=False)
        run = product(folder, AT_ONCE["by two keys"], "append", False, 0, "paths")
        assert isinstance(run.plan.pipeline.stages[0], PathStage)
        for _ in zip(run.batches(), range(4), strict=False):
            pass
        run.divide(1)
        [one] = known(run)
        for side in one.sides:
            assert len(side.runs) > 1 and all(run.sealed for run in side.runs[:-1])


def known(run: Product) -> list[Manifest]:
    """The units of the first stage after the last batch."""
    return [decode(m) for m in everything(run.plan.join.states, run.batch - 1, 0).values()]


def summed(found: list[Manifest]) -> list[tuple[int, ...]]:
    """What units have counted together."""
    fields = ([getattr(m, name) for m in found] for name in ("rows", "late", "bad"))
    return [tuple(map(sum, zip(*own, strict=True))) for own in fields]
