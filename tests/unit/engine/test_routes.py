"""Routes of a path join change from batch to batch: the answer does not, and what is counted is what happened."""

import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from joinlib.engine.task import JoinTask
from joinlib.join.hop import walked
from joinlib.join.order.orders import Orders
from joinlib.join.order.policy import OrderPolicy
from joinlib.join.order.routes import Routes, choices_of
from joinlib.join.order.statistics import Statistics
from joinlib.join.rows import Tuples
from joinlib.model.paths import Leg
from joinlib.model.stage import PathStage
from joinlib.state.manifest import decode
from tests.unit.engine.bench import UNITS, Bench, Sent

SCHEMAS = {
    "a": "x BIGINT, v BIGINT",
    "b": "y BIGINT, v BIGINT",
    "f": "x BIGINT, y BIGINT, z BIGINT",
    "c": "z BIGINT, v BIGINT",
}
SQL = (
    "SELECT a.v AS av, b.v AS bv, c.v AS cv, f.x AS x FROM a JOIN f ON a.x = f.x JOIN b ON b.y = f.y"
    " JOIN c ON c.z = f.z WHERE a.v <= b.v + c.v"
)
NAMES = "afbc"  # in the order of the text


class Snowflake(Bench):
    """Facts with three dimensions, by paths."""

    def __init__(self, folder: Path, **join: object) -> None:
        super().__init__(folder, SCHEMAS, False, SQL, join={"strategy": "paths", **join})

    @property
    def store(self) -> PathStage:
        (found,) = [s for s in self.plan.pipeline.stages if isinstance(s, PathStage)]
        return found

    def fill(self, files: range, keys: int = 6) -> None:
        """A file of each input for each number."""
        for file in files:
            draw = random.Random(file)
            some = partial(draw.choice, [None, *range(keys)])
            for name in "abc":
                self.write(name, file, [(some(), draw.randrange(9)) for _ in range(8)])
            self.write("f", file, [(some(), some(), some()) for _ in range(40)])

    def orders(self, unit: int) -> Orders:
        """As a unit has saved them."""
        return Orders(**decode(self.saved[0, unit]).probes[0])


class Shuffled(Snowflake):
    """Before every batch somebody else's routes are in the manifests."""

    draw = random.Random(1)

    def _stage(
        self, task: JoinTask, sent: list[Sent], saved: dict[tuple[int, int], bytes]
    ) -> tuple[list[Sent], list[str], list[object]]:
        if task.number == 0:
            for key in [key for key in self.saved if key[0] == 0]:
                manifest = decode(self.saved[key])
                probes = tuple({**p, "orders": self._drawn()} for p in manifest.probes)
                self.saved[key] = replace(manifest, probes=probes).encode()
        return super()._stage(task, sent, saved)  # type: ignore[return-value]

    def _drawn(self) -> list[list[int]]:
        stage = self.store
        drawn = [self.draw.choice(stage.routes(one)) for one in range(4)]
        return [[p.arrangement for p in stage.paths[number].probes] for number in drawn]


def test_the_plan_has_routes_to_choose_from(tmp_path: Path) -> None:
    """Two or more of every input; the first ones are the planner's, and all of an input begin at its home."""
    bench = Snowflake(tmp_path)
    stage = bench.store
    assert all(len(stage.routes(one)) > 1 for one in range(4))
    assert stage.orders == (0, 1, 2, 3)
    assert len(set(stage.paths)) == len(stage.paths)
    homes, levels = choices_of(stage).homes, len(bench.plan.pipeline.stages)
    for path in stage.paths:
        first, *_ = legs = path.legs(stage.arrangements)
        away = stage.arrangements[first[0].arrangement].key != homes[path.start]
        assert len(legs) + away <= levels


def test_any_route(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Routes at random in each unit and batch, with levels that run twice: the answer is DuckDB's."""
    gone = set[int]()

    def noted(leg: Leg, *more: Any) -> Iterator[Tuples]:
        gone.add(leg.route)
        return walked(leg, *more)

    monkeypatch.setattr("joinlib.join.paths.walked", noted)
    bench = Shuffled(tmp_path)
    bench.fill(range(7))
    bench.run(twice=frozenset({(1, 0), (2, 1), (4, 0), (5, 2)}))

    assert bench.output() == bench.expected() != Counter()
    assert gone == set(range(len(bench.store.paths)))


def test_figures_are_a_recount(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All levels and units together have counted what a nested loop counts, over several batches."""
    monkeypatch.setattr(Orders, "length", lambda *_: 1000)
    monkeypatch.setattr(Orders, "every", lambda *_: 1)
    bench = Snowflake(tmp_path)
    bench.fill(range(4))
    bench.run(twice=frozenset({(1, 0), (2, 1), (3, 2)}))
    stage, width = bench.store, len(bench.store.arrangements)
    counted: dict[tuple[int, int], Counter[str]] = defaultdict(Counter)
    for data in bench.saved.values():
        for probes in decode(data).probes:
            for name, figures in zip(("asked", "hit", "found"), probes["counts"], strict=False):
                for at, figure in enumerate(figures):
                    counted[divmod(at, width)][name] += figure

    assert {k: dict(v) for k, v in counted.items() if any(v.values())} == recount(bench, stage)


def recount(bench: Snowflake, stage: PathStage) -> dict[tuple[int, int], dict[str, int]]:
    """The same, by trying all rows; rows with NULL in a key come nowhere."""
    keys = {"a": "x", "b": "y", "c": "z", "f": "xyz"}
    known: dict[str, list[dict[str, int]]] = {name: [] for name in NAMES}
    found: dict[tuple[int, int], Counter[str]] = defaultdict(Counter)
    for file in range(4):
        before = {name: list(rows) for name, rows in known.items()}
        new = {}
        for name in NAMES:
            rows = bench.db.sql(f"FROM '{bench.folder / name}/{file:03d}.parquet'")
            whole = [dict(zip(rows.columns, row, strict=True)) for row in rows.fetchall()]
            new[name] = [row for row in whole if None not in [row[k] for k in keys[name]]]
            known[name] = before[name] + new[name]
        for origin, route in enumerate(stage.orders):
            tuples = [{NAMES[origin]: row} for row in new[NAMES[origin]]]
            for probe in stage.paths[route].probes:
                aim = NAMES[stage.arrangements[probe.arrangement].input]
                there = (known if NAMES.index(aim) < origin else before)[aim]
                tuples = extended(tuples, aim, there, found[probe.asker, probe.arrangement])
    return {pair: dict(count) for pair, count in found.items() if any(count.values())}


def extended(
    tuples: list[dict[str, dict[str, int]]], aim: str, there: Sequence[dict[str, int]], count: Counter[str]
) -> list[dict[str, dict[str, int]]]:
    """Tuples with each row that they match."""
    longer = []
    for one in tuples:
        matching = [row for row in there if all(_meet(aim, row, name, own) for name, own in one.items())]
        count.update(asked=1, hit=bool(matching), found=len(matching))
        longer += [{**one, aim: row} for row in matching]
    return longer


def _meet(aim: str, row: dict[str, int], name: str, own: dict[str, int]) -> bool:
    shared = (set(row) & set(own)) - {"v"}
    return all(row[key] == own[key] for key in shared)


def test_what_finds_little_is_asked_first(tmp_path: Path) -> None:
    """All find b, few find c, though it has more keys: only later levels see that. Facts and rows of a go to c first."""
    bench = Snowflake(tmp_path, cycle=2)
    bench.write("b", 0, [(key, 9) for key in range(20)])
    bench.write("c", 0, [(key, 9) for key in (0, *range(1000, 2000))])
    bench.write("a", 0, [(99, 0)])
    bench.write("f", 0, [(99, 0, 0)])
    for file in range(1, 12):
        bench.write("f", file, [(key, key, key) for key in range(20)])
        bench.write("a", file, [(key, 0) for key in range(20)])
        bench.write("b", file, [(100, 0)])
        bench.write("c", file, [(100 + file, 0)])
    bench.run()

    assert bench.output() == bench.expected() != Counter()
    assert any(receipt.probes for receipts in bench.receipts for receipt in receipts)
    for unit in range(UNITS):
        orders = bench.orders(unit)
        known = Statistics.read(orders.known)
        visits = [
            [NAMES[bench.store.arrangements[number].input] for number in order] for order in orders.orders
        ]
        assert visits[0].index("c") < visits[0].index("b")
        assert visits[0][0] == "f"
        assert sum(t is not None for line in known.rate for t in line) > 3


def test_fixed_routes_count_nothing(tmp_path: Path) -> None:
    """With probeOrder fixed nothing is kept, and the planner's routes are taken."""
    bench = Snowflake(tmp_path, probeOrder="fixed")
    bench.fill(range(3))
    bench.run()

    assert bench.output() == bench.expected() != Counter()
    assert {decode(data).probes for data in bench.saved.values()} == {()}


def test_a_route_that_the_plan_does_not_have(tmp_path: Path) -> None:
    """Saved by a run with other statistics: the plan's first one is taken instead."""
    stage = Snowflake(tmp_path).store
    orders = [[p.arrangement for p in stage.paths[number].probes] for number in stage.orders]
    saved = Orders([orders[0][::-1], *orders[1:]], [[], [], [], None, None])
    routes = Routes.of(stage, (saved.plain(),), OrderPolicy(), list)

    assert [routes.taken(one) for one in range(4)] == list(stage.orders)
