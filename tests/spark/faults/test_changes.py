"""Kill anything at any moment while rows are changed and deleted: what comes out sums up to the answer, and nothing is doubled.

`orders` sends changes, `payments` is upserted by v. STREAMJOIN_FAULT_SEED: which moments.
"""

import random
import time
from collections import Counter
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.laws.changelog import Changelog
from tests.spark.faults.drawn import SEED, drawn
from tests.spark.faults.scenario import FILES, QUERIES, ROWS, START, Scenario, scenario

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]


class Changing(Scenario):
    """Both inputs say what their rows are, and the output is a changelog."""

    schema: ClassVar[str] = Scenario.schema + ", op STRING"

    def _drawn(self, seed: int, name: str) -> list[tuple[Any, ...]]:
        draw = random.Random(seed)
        return _upserts(draw) if name == "payments" else _changes(draw)

    def _spec(self) -> dict[str, Any]:
        made = super()._spec()
        for given in made["spec"]["inputs"].values():
            given["changes"] = {"op": "op"}
            del given["eventTime"]
        made["spec"]["inputs"]["payments"]["upsert"] = {"key": ["v"]}
        made["spec"]["output"] |= {"mode": "changelog"} | ({"key": ["s"]} if self.kind == "totals" else {})
        return made

    @property
    def expected(self) -> Counter[tuple[Any, ...]]:
        there = {name: _there(rows, upserted=name == "payments") for name, rows in self.rows.items()}
        return self.trial.expected(QUERIES[self.kind], **there)

    def check_output(self, like: Scenario) -> None:
        seen, calm = (_read(s.folder / "out", self.kind) for s in (self, like))
        assert seen == calm, "each batch says what it says undisturbed"
        total: Counter[tuple[Any, ...]] = Counter()
        for batch in seen.values():
            total.update(batch)
        assert {row: n for row, n in total.items() if n} == self.expected != Counter()


def _read(out: Path, kind: str) -> dict[int, Counter[tuple[Any, ...]]]:
    """What each batch adds, by row. No row is ever there less than no time."""
    log = Changelog(out, (0,) if kind == "totals" else ())
    found, before = {}, Counter[tuple[Any, ...]]()
    for number in sorted(int(folder.name[6:]) for folder in out.glob("batch=*")):
        log.batch(number, units_apart=False)
        found[number] = Counter({r: n for r in {*log.answer, *before} if (n := log.answer[r] - before[r])})
        before = log.answer.copy()
    return found


def _row(draw: random.Random, v: int) -> tuple[Any, ...]:
    return (draw.choice([None, *range(6)]), v, draw.choice(["ape", "bee", None]), START)


def _changes(draw: random.Random) -> list[tuple[Any, ...]]:
    """Few keys, rows that are there several times, updates that move between keys."""
    there: list[tuple[Any, ...]] = []
    events: list[tuple[Any, ...]] = []
    while len(events) < FILES * ROWS:
        if there and draw.random() < 0.45:
            old = there.pop(draw.randrange(len(there)))
            events.append((*old, "-U" if (update := draw.random() < 0.6) else "-D"))
            if not update:
                continue
        new = _row(draw, draw.randrange(4))
        there.append(new)
        events.append((*new, "+U" if events and events[-1][-1] == "-U" else "+I"))
    return events[: FILES * ROWS]


def _upserts(draw: random.Random) -> list[tuple[Any, ...]]:
    there: set[int] = set()
    events: list[tuple[Any, ...]] = []
    for _ in range(FILES * ROWS):
        v = draw.randrange(40)
        if v in there and draw.random() < 0.3:
            there.remove(v)
            events.append((None, v, None, None, "delete"))
        else:
            there.add(v)
            events.append((*_row(draw, v), "insert"))
    return events


def _there(events: list[tuple[Any, ...]], upserted: bool) -> list[tuple[Any, ...]]:
    if upserted:
        last = {event[1]: event for event in events}
        return [event for event in last.values() if event[-1] != "delete"]
    bag: Counter[tuple[Any, ...]] = Counter()
    for event in events:
        bag[event[:-1]] += 1 if event[-1][0] == "+" else -1
    return [(*row, "") for row in bag.elements()]


@pytest.mark.parametrize("kind", drawn("changes", ["changing", "totals"], 1))
def test_any_process_at_any_moment(kind: str, tmp_path: Path) -> None:
    """Two deaths of everything or of one process, at random moments; then the end."""
    print(f"STREAMJOIN_FAULT_SEED={SEED}")
    draw = random.Random(f"{SEED} {kind}")
    with (
        scenario(tmp_path / "calm", kind, Changing) as calm,
        scenario(tmp_path / "job", kind, Changing) as job,
    ):
        calm.finish()
        calm.check(calm)
        for _ in range(2):
            run = job.begin()
            run.until_batches(draw.randrange(1, 3))
            time.sleep(0.3 * draw.random())
            victim = draw.choice(["worker", "driver", "jvm", None])
            print(victim or "everything")
            assert run.kill(victim) if victim else run.kill_all()
            run.kill_all()
            assert run.end() != 0, "the run was over before it could be killed"
        job.finish()
        job.check(like=calm)
