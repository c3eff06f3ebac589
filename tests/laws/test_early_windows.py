"""Law: windows that come out early are corrected until the watermark has passed them, and then forgotten.

What comes for them later is late: it is counted and dropped, by DuckDB as well, which is told what the watermark was.
"""

import datetime as dt
import random
from pathlib import Path

import pytest

from joinlib.model.tuning import Tuning
from joinlib.state.manifests import Manifests
from tests.laws.harness import state_of
from tests.laws.product import Course, Product
from tests.laws.test_windows import BEGIN, Rows, contents, document, expected, folder  # noqa: F401 - a fixture

COURSE = Course((2, 1), frozenset({2}), frozenset({3}), 1)
DELAY = dt.timedelta(seconds=60)  # of the inputs of `document`
SIZE, SLIDE = 40, 20
CALLS = "count(*) AS n, max(v) AS m, count(DISTINCT v) AS d"
FLINK = f"SELECT k, window_end AS e, {CALLS} FROM {{}}(a, ts, {{}}INTERVAL '40' SECONDS) GROUP BY k, window_start, window_end"
CASES = {
    "tumble": (FLINK.format("TUMBLE", ""), SIZE),
    "hop": (FLINK.format("HOP", f"INTERVAL '{SLIDE}' SECONDS, "), SLIDE),
    "window()": (f"SELECT k, window.end AS e, {CALLS} FROM a GROUP BY k, window(ts, '40 seconds')", SIZE),
}


def drawn(draw: random.Random, batches: int) -> list[Rows]:
    """Time goes on by more than a window in each batch, and some rows are far behind it."""
    found: list[Rows] = []
    for number in range(batches):
        now = BEGIN + dt.timedelta(seconds=60 * number)
        times = [now - dt.timedelta(seconds=draw.choice([0, 5, 30, 55, 70, 130, 300])) for _ in range(8)]
        found.append([(draw.choice([1, 2, None]), draw.choice([1, 2, 3, None]), at, None) for at in times])
    return found


def in_time(files: list[Rows], slide: int) -> tuple[list[tuple[object, ...]], int]:
    """Rows of windows, (k, v, end, None), without those behind the watermark before their batch; and how many are."""
    found: list[tuple[object, ...]] = []
    late, watermark = 0, dt.datetime.min.replace(tzinfo=dt.UTC)
    for rows in files:
        for k, v, at, _ in rows:
            assert isinstance(at, dt.datetime)
            first = (int(at.timestamp()) - SIZE) // slide * slide + slide
            for start in range(first, int(at.timestamp()) + 1, slide):
                end = dt.datetime.fromtimestamp(start + SIZE, dt.UTC)
                late += end <= watermark
                found += [(k, v, end, None)] if end > watermark else []
        watermark = max(watermark, *(at - DELAY for _, _, at, _ in rows if isinstance(at, dt.datetime)))
    return found, late


def stored(run: Product, batch: int) -> int:
    """How many groups, and values of them, are kept after a batch."""
    task = run.plan.join
    count = run._partitions
    known = [Manifests(task.states, 0, n, count).after(batch) for n in range(count)]
    sides = [side for some in known for saved in some.values() for side in state_of(saved).sides]
    return sum(segment.rows for side in sides for segment in side.segments)


@pytest.mark.parametrize("name", CASES)
def test_contents_and_state(name: str, folder: Path) -> None:  # noqa: F811
    sql, slide = CASES[name]
    files = drawn(random.Random(name), 10)
    run = Product(document(folder, sql, "changelog", {"a": files}), Tuning(), COURSE)
    sizes = []
    for batch in run.batches():
        rows, late = in_time(files[: batch + 1], slide)
        assert contents(folder) == expected(f"SELECT k, ts AS e, {CALLS} FROM a GROUP BY k, ts", {"a": rows})
        assert sum(run.figures.late) == late
        sizes.append(stored(run, batch))
    assert late > 5
    assert sizes[-1] <= max(sizes[:5])
