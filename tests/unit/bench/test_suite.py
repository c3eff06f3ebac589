"""What benches share: outcomes are kept as they are had, and orders of tables are all that there are."""

import importlib
import json
import sys
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path
from types import ModuleType

import pytest

from joinlib.spec.model import JoinSettings

BENCH = Path(__file__).parents[3] / "bench"


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, ModuleType]]:
    """Scripts import each other by their bare names, which nobody else shall find."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(BENCH))
    monkeypatch.syspath_prepend(str(BENCH / "many_keys"))
    monkeypatch.syspath_prepend(str(BENCH / "nway"))
    yield {name: importlib.import_module(name) for name in ("suite", "outcome", "blocks", "limits")}
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(BENCH)):
            del sys.modules[name]


def test_a_suite_goes_on_where_it_was_interrupted(modules: dict[str, ModuleType], tmp_path: Path) -> None:
    """Systems take turns; what is there is not run again, a failure counts as a run and is told."""
    suite, outcome, ran = modules["suite"], modules["outcome"], []

    def one(query: str, system: str) -> object:
        ran.append(system)
        if system == "c":
            return outcome.Failure(system, "not done after 1 s")
        told = {"system": system, "rows": 10, "results": 1, "seconds_total": 2, "seconds_first_result": 1}
        return outcome.read({**told, "batches": []})

    made = suite.Suite(tmp_path / "raw.json", one)
    assert made.run({"q": ["a", "b"]}, 2)
    assert ran == ["a", "b", "a", "b"]
    assert not made.run({"q": ["a", "b", "c"]}, 2, go_on=True)
    assert ran[4:] == ["c", "c"]
    assert made.run({"q": ["a"]}, 1)
    known = json.loads((tmp_path / "raw.json").read_text())["queries"]["q"]
    assert {name: len(runs) for name, runs in known.items()} == {"a": 1, "b": 2, "c": 2}
    table = suite.matrix({"q": known}, ["a", "b", "c"])
    assert "| q | 0 K/s | 0 K/s | not done after 1 s |" in table


def test_orders_of_a_block_are_all_that_are_connected(modules: dict[str, ModuleType]) -> None:
    """Each table is related to one before it; the first two have no order of their own."""
    for block in modules["blocks"].BLOCKS.values():
        related = block.related
        connected = {
            (*sorted(order[:2]), *order[2:])
            for order in permutations(block.tables)
            if all(any(frozenset((t, s)) in related for s in order[:i]) for i, t in enumerate(order) if i)
        }
        found = [(*sorted(order[:2]), *order[2:]) for order in block.orders()]
        assert len(found) == len(set(found))
        assert set(found) == connected
        assert set(block.hands) | {block.peers or block.tables} <= set(permutations(block.tables))
        assert {(*sorted(o[:2]), *o[2:]) for o in (*block.hands, block.peers or block.tables)} <= connected


def test_settings_of_plans_are_settings_of_a_join(modules: dict[str, ModuleType]) -> None:
    """Those that this version has: a plan by hand keeps the order of its text."""
    plans = importlib.import_module("plans")
    settings = [plans.IN_ORDER, *plans.FORCED.values(), *plans.ONE_KEY.values()]
    assert all(JoinSettings(**some).model_fields_set == set(some) for some in settings)
    assert plans.IN_ORDER["order"] == "text"


def test_each_order_by_hand_is_a_plan_of_its_own(modules: dict[str, ModuleType], tmp_path: Path) -> None:
    """The planner makes other stages of each; which join comes first is that of `FROM`."""
    plans, block = importlib.import_module("plans"), modules["blocks"].BLOCKS["q3"]
    inputs = {
        "customer": "c_custkey BIGINT, c_mktsegment STRING",
        "orders": "o_orderkey BIGINT, o_custkey BIGINT, o_orderdate DATE, o_shippriority INT",
        "lineitem": "l_orderkey BIGINT, l_extendedprice DECIMAL(15, 2), l_discount DECIMAL(15, 2), l_shipdate DATE",
    }
    task = {"inputs": inputs, "rows": 0, "batches": 1, "results": 0}
    (tmp_path / "task.json").write_text(json.dumps(task))
    found = plans.plans(block, tmp_path)

    first = {name: set().union(*plans.planned(block, plan, tmp_path)[0]) for name, plan in found.items()}
    assert first["text"] == {"customer", "orders"}
    assert first["o l c"] == {"orders", "lineitem"}


def test_marks_become_steps_at_the_times_of_the_marks(modules: dict[str, ModuleType]) -> None:
    marks = [{"at": 100.0, "rows": 10, "results": 1}, {"at": 102.5, "rows": 30, "results": 4}]
    steps = [*modules["limits"]._steps(marks)]
    assert steps == [{"at": 100.0, "rows": 10, "results": 1}, {"at": 102.5, "rows": 20, "results": 3}]
