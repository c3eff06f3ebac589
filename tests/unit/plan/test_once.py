"""Self-joins that store their stream once: which do, what they store and where, what `plan` says, how checkpoints go on."""

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from joinlib.checkpoint.identity import identify
from joinlib.checkpoint.planned import plan_of
from joinlib.expr import ref
from joinlib.model.fingerprint import compare, fingerprint
from joinlib.model.inputs import Biclique, Cells, Group
from joinlib.model.stage import Stage
from joinlib.plan import JoinOptions, SourceInput, build
from joinlib.plan.explain.stage import explain
from joinlib.plan.once import alike
from joinlib.plan.operator import Choice
from joinlib.plan.spec import pipeline_of
from joinlib.spec import parse

SCHEMA = pa.schema([("k", pa.int64()), ("x", pa.int64()), ("y", pa.int64()), ("t", pa.timestamp("us"))])
STREAM = SourceInput(SCHEMA, "t", 1_000_000)


def plan(sql: str, source: SourceInput = STREAM, units: int = 8, **options: object) -> Stage:
    return build(sql, {"s": source, "r": source}, JoinOptions(units=units, **options))  # type: ignore[arg-type]


def once(stage: Stage) -> bool:
    return [side.of for side in stage.sides] == [None, 0]


@pytest.mark.parametrize(
    "on",
    [
        "a.k = b.k",
        "a.k = b.k AND a.x < b.y",
        "b.k + 1 = a.k + 1",
        "a.x < b.x AND a.y > b.y",
        "ABS(a.x - b.x) <= 2",
        "a.x - b.x BETWEEN -2 AND 2",
        "a.x BETWEEN b.x - 2 AND b.x + 2 AND a.y < b.y",
        "(a.x + b.x) % 2 = 1",
        "a.k = b.k AND b.t BETWEEN a.t AND a.t + INTERVAL 5 SECONDS",
    ],
)
def test_inputs_that_are_alike_are_stored_once(on: str) -> None:
    """But for their names: read, filtered, keyed and compared alike, in the same units."""
    assert once(plan(f"SELECT a.k AS ak, b.k AS bk FROM s a JOIN s b ON {on}"))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a.k AS x FROM s a JOIN r b ON a.k = b.k",
        "SELECT a.k AS x FROM s a LEFT JOIN s b ON a.k = b.k",
        "SELECT a.k AS x FROM s a LEFT SEMI JOIN s b ON a.k = b.k",
        "SELECT a.k AS x FROM s a JOIN s b ON a.k = b.x",
        "SELECT a.k AS x FROM s a JOIN s b ON a.k + 1 = b.k",
        "SELECT a.k AS x FROM s a JOIN s b ON a.k = b.k WHERE a.x > 2",
        "SELECT a.k AS x FROM s a JOIN s b ON a.x < b.y AND a.y > b.x",
        "SELECT a.k AS x FROM s a JOIN s b ON b.x BETWEEN a.x AND a.x + 5",  # x + 5 may not be NULL, of one only
        "SELECT a.k AS x FROM s a JOIN s b ON a.k = b.k JOIN s c ON a.k = c.k",
    ],
)
def test_others_are_stored_twice(sql: str) -> None:
    """Whatever makes one name's rows, or the way to them, differ from the other's."""
    assert all(side.of is None for side in plan(sql).sides)


def test_a_band_that_is_wider_to_one_side_would_be_stored_twice() -> None:
    """A row's partners of one name would lie in other cells than those of the other name."""
    cells = Cells((ref("a.x", pa.int64()), ref("b.x", pa.int64())), -2, 2, 16)
    groups = (Group(0, 8, 8),) * 2
    stage = plan("SELECT a.x AS ax, b.x AS bx FROM s a JOIN s b ON a.k = b.k")

    assert alike(stage.inputs, Choice(Biclique(groups, cells)))
    assert not alike(stage.inputs, Choice(Biclique(groups, replace(cells, low=0))))
    assert not alike(
        stage.inputs,
        Choice(Biclique(groups, replace(cells, values=(cells.values[0], ref("b.k", pa.int64()))))),
    )


def test_rows_that_are_deleted_are_stored_twice() -> None:
    """A deletion would have to find its row as either of two."""
    stage = plan("SELECT a.k AS x FROM s a JOIN s b ON a.k = b.k", replace(STREAM, changes=True))
    assert all(side.of is None for side in stage.sides)


def test_both_store_what_one_of_them_needs_for_as_long_as_one_needs_it() -> None:
    """The columns of both, the longer time."""
    on = "a.k = b.k AND b.t BETWEEN a.t AND a.t + INTERVAL 5 SECONDS"
    stage = plan(f"SELECT a.x AS x, b.y AS y FROM s a JOIN s b ON {on}")
    one, other = stage.sides

    assert one.schema.names == ["$hash", "a.k", "a.x", "a.y", "a.t"]
    assert other.schema.names == ["$hash", "b.k", "b.x", "b.y", "b.t"]
    assert (one.time, one.hold_us) == ("a.t", 5_000_000)
    assert [i.twin for i in stage.inputs] == [None, 0]


def test_rows_at_random_are_stored_in_half_of_the_units() -> None:
    """So that a row, which asks as either name, asks no more units than with two copies; cells and keys are as they were."""

    def groups(on: str, units: int, **options: object) -> set[tuple[int, int, int]]:
        route = plan(f"SELECT a.k AS x FROM s a JOIN s b ON {on}", units=units, **options).route
        assert route is not None and route.once
        return {(g.first, g.units, g.subgroups) for g in route.groups}

    assert [groups("a.x < b.x", units) for units in (1, 4, 8)] == [{(0, 1, 1)}, {(0, 2, 1)}, {(0, 4, 1)}]
    assert groups("ABS(a.x - b.x) <= 2", 8) == {(0, 8, 8)}
    assert groups("a.k = b.k", 8, strategy="biclique", subgroups=2) == {(0, 8, 2)}


def test_of_two_units_each_stores_the_rows_of_one_name() -> None:
    """Where rows lie at random: both would have to search for either name."""

    def twins(on: str) -> list[int | None]:
        return [i.twin for i in plan(f"SELECT a.k AS x FROM s a JOIN s b ON {on}", units=2).inputs]

    assert twins("a.x < b.x") == [None, None]
    assert twins("a.k = b.k") == twins("ABS(a.x - b.x) <= 2") == [None, 0]


def test_a_plan_says_so() -> None:
    """In the inputs, the route, and why; each column for what either name needs it."""
    text = explain(plan("SELECT a.x AS x, b.k AS y FROM s a JOIN s b ON a.x < b.x"), None, "To files")

    assert "stores  nothing: its rows are those of a, which are read and stored once for both" in text
    assert "stores  a.k, BIGINT: files" in text
    assert "b goes with a, whose rows it has" in text
    assert "state      a, not a + b (eq. 1)" in text
    assert "traffic    4 a (eq. 5)" in text
    assert "both inputs are one stream, stored once" in text


@pytest.mark.parametrize("on", ["a.k = b.k", "a.k < b.k"])
def test_a_checkpoint_that_stores_twice_goes_on_so(on: str, tmp_path: Path) -> None:
    """One of an earlier version; and none that stores once is taken for one that stores twice."""
    said = {
        "sql": f"SELECT a.k AS x, b.k AS y FROM s a JOIN s b ON {on}",
        "inputs": {"s": {"schema": "k BIGINT", "files": {"path": "s", "format": "parquet"}}},
        "output": {"noop": {}},
        "checkpoint": {"path": "checkpoint"},
    }
    head = {"apiVersion": "streamjoin.dev/v1alpha1", "kind": "StreamJoin", "metadata": {"name": "self"}}
    document = parse(json.dumps({**head, "spec": said}), "self.yaml", tmp_path)
    new, earlier = plan_of(document), pipeline_of(document, once=False)
    assert [side.of for side in new.last.sides] == [None, 0]
    assert [side.of for side in earlier.last.sides] == [None, None]

    (tmp_path / "checkpoint").mkdir()
    identify(tmp_path / "checkpoint", "self", earlier)
    assert plan_of(document) == earlier
    for one, other in ((earlier, new), (new, earlier)):
        reasons = compare(json.loads(json.dumps(fingerprint(one))), fingerprint(other))
        assert any("are stored once" in why for why in reasons)


def test_a_checkpoint_that_stores_once_goes_on_so(tmp_path: Path) -> None:
    """Also where the query reads fewer columns of both names than it did."""
    head = {"apiVersion": "streamjoin.dev/v1alpha1", "kind": "StreamJoin", "metadata": {"name": "self"}}

    def document(select: str) -> object:
        said = {
            "sql": f"SELECT {select} FROM s a JOIN s b ON a.k < b.k",
            "inputs": {"s": {"schema": "k BIGINT, v BIGINT", "files": {"path": "s", "format": "parquet"}}},
            "output": {"noop": {}},
            "checkpoint": {"path": "checkpoint"},
        }
        return parse(json.dumps({**head, "spec": said}), "self.yaml", tmp_path)

    (tmp_path / "checkpoint").mkdir()
    begun = plan_of(document("a.k AS x, b.v AS y"))  # type: ignore[arg-type]
    identify(tmp_path / "checkpoint", "self", begun)
    after = plan_of(document("a.k AS x, b.k AS y"))  # type: ignore[arg-type]
    identify(tmp_path / "checkpoint", "self", after)
    assert after.last.sides == begun.last.sides
