"""`auto` takes paths where they are cheaper than stages by what is known; a checkpoint keeps what it began with."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joinlib.checkpoint.identity import identify, orders_of
from joinlib.checkpoint.planned import plan_of
from joinlib.model.fingerprint import compare, fingerprint
from joinlib.model.order import kept_of
from joinlib.model.stage import HopStage, PathStage, Pipeline
from joinlib.path.choice import BYTE, MOST_LEFT_OUT
from joinlib.plan import JoinOptions, SourceInput, pipeline
from joinlib.plan.explain.orders import alternatives
from joinlib.plan.explain.pipeline import explain
from joinlib.plan.explain.words import spoken
from joinlib.plan.order import KEPT, WORTH, Decide, as_written, cheapest, remembered
from joinlib.plan.source import InputStatistics
from joinlib.plan.spec import SCARCE
from joinlib.spec import parse
from tests.unit.plan.test_order import SPEC, files

KIND = pa.schema([(name, pa.int64()) for name in "kjv"])
FROM = "FROM a JOIN b ON a.k = b.k JOIN c ON b.j = c.j"
CHAIN = f"SELECT a.v {FROM}"
CYCLE = f"SELECT a.v {FROM} AND a.v = c.v JOIN d ON c.k = d.k"
FAR = "SELECT a.v FROM a LEFT JOIN d ON a.j = d.j JOIN b ON a.k = b.k JOIN c ON b.j = c.j WHERE a.v < c.v"
SINKS = "SELECT a.v FROM a JOIN c ON a.k = c.k LEFT JOIN b ON a.j = b.j JOIN d ON c.v = d.v"
EDGE = f"SELECT a.v, d.v AS w {FROM} LEFT JOIN d ON d.j = b.j AND d.v < b.v"
TWO = f"{CHAIN} WHERE a.j = 1 UNION ALL {CHAIN} WHERE c.k = 1"
QUERIES = CHAIN, CYCLE, FAR, SINKS, EDGE, TWO


def often(rows: int = 10_000, distinct: int = 100) -> dict[str, SourceInput]:
    """Inputs in all of which each key is there so often that joins find more than they read."""
    known = InputStatistics(rows, dict.fromkeys("kjv", distinct))
    return {name: SourceInput(KIND, statistics=known) for name in "abcd"}


def unknown() -> dict[str, SourceInput]:
    return {name: replace(one, statistics=InputStatistics()) for name, one in often().items()}


def planned(
    sql: str, inputs: Mapping[str, SourceInput], decide: Decide | None = None, strategy: str = "auto"
) -> Pipeline:
    """A plan where memory is limited, if nothing else is said."""
    options = JoinOptions(units=4, strategy=strategy)
    return pipeline(sql, inputs, options, mode="changelog", decide=decide or cheapest(SCARCE))


def by_paths(plan: Pipeline) -> list[str]:
    """The inputs of each join by paths."""
    stages = [stage for stage in plan.stages if isinstance(stage, PathStage)]
    return ["".join(dict.fromkeys(i.alias for i in stage.inputs)) for stage in stages]


def kept(plan: Pipeline) -> Decide:
    """What decides after a restart."""
    return remembered([kept_of(raw) for raw in json.loads(json.dumps([o.kept for o in plan.orders]))])


# --- the decision ---------------------------------------------------------------------------------------


def test_paths_are_taken_where_stages_would_store_much_more() -> None:
    plan = planned(CHAIN, often())

    assert by_paths(plan) == ["abc"]
    (join,) = plan.joined.joins
    assert (join.became, join.why) == ("paths", "they are expected to be cheaper than stages in any order")
    paths, stages = join.prices
    assert f"why  {join.why}\n    cost {paths}\n    cost {stages}" in explain(plan)
    assert "Order of joins" not in explain(plan)


def test_stages_are_taken_where_a_key_is_there_once() -> None:
    assert by_paths(planned(CHAIN, often(distinct=10_000))) == []


def test_bytes_are_dearer_where_memory_is_limited() -> None:
    inputs = often()

    assert by_paths(planned(CHAIN, inputs, cheapest(BYTE))) == []
    assert by_paths(planned(CHAIN, inputs, cheapest(SCARCE))) == ["abc"]


def test_results_are_no_part_of_the_comparison() -> None:
    """Every plan finds them: 10^12 of 10^6 rows take longer than all that differs."""
    inputs = often(1_000_000, 1000)
    plan = planned(CHAIN, inputs)

    assert by_paths(plan) == ["abc"]
    figures = {found.name: found for found in plan.orders[0].alternatives}
    paths, stages = figures["paths"], figures["cheapest stages"]
    assert paths.seconds + paths.bytes * SCARCE > WORTH * (stages.seconds + stages.bytes * SCARCE)


@pytest.mark.parametrize("decide", [as_written, cheapest(SCARCE), remembered([])])
def test_nothing_known_is_stages_in_the_order_of_the_text(decide: Decide) -> None:
    plan = planned(CHAIN, unknown(), decide)

    assert by_paths(plan) == []
    assert [order.shape for order in plan.orders] == [(("a", "b"), "c")]


def test_the_order_of_the_text_is_asked_for_as_stages() -> None:
    assert by_paths(planned(CHAIN, often(), as_written)) == []


@pytest.mark.parametrize("strategy", ["stages", "multiway", "binary"])
def test_a_strategy_goes_before_the_cost(strategy: str) -> None:
    assert by_paths(planned(CHAIN, often(), strategy=strategy)) == []


def test_hints_go_before_the_cost() -> None:
    assert by_paths(planned(CHAIN.replace("SELECT", "SELECT /*+ STAGES(a) */"), often())) == []
    rare = often(distinct=10_000)
    assert by_paths(planned(CHAIN.replace("SELECT", "SELECT /*+ PATHS(a) */"), rare)) == ["abc"]


def test_very_many_inputs_are_not_searched_for_paths() -> None:
    names = [f"t{n}" for n in range(MOST_LEFT_OUT + 1)]
    inputs = dict.fromkeys(names, often()["a"])
    pairs = list(pairwise(names))
    on = " AND ".join(f"{a}.{'kj'[n % 2]} = {b}.{'kj'[n % 2]}" for n, (a, b) in enumerate(pairs))
    plan = planned(f"SELECT t0.v FROM {', '.join(names)} WHERE {on}", inputs)

    assert by_paths(plan) == []
    assert "paths" not in {found.name for found in plan.orders[0].alternatives}


ONE_KEY = "a.v FROM a JOIN b ON a.k = b.k LEFT SEMI JOIN d ON d.j = b.j JOIN c ON c.k = a.k AND c.k = b.k"


def test_inputs_of_one_key_have_no_paths() -> None:
    """An operator of its own decides the SEMI JOIN; what is left shares a key."""
    plan = planned(f"SELECT {ONE_KEY}", often())

    assert by_paths(plan) == []
    assert "paths" not in {found.name for order in plan.orders for found in order.alternatives}
    (note,) = planned(f"SELECT /*+ PATHS(a) */ {ONE_KEY}", often()).notes
    assert note.startswith("the hint PATHS(a) is not followed: these inputs share a key")


def test_alternatives_have_a_line_for_paths() -> None:
    """Also where they are not taken."""
    head, line, stored, *_ = alternatives(spoken(planned(CHAIN, often())))
    assert head == "a, b, c: they are expected to be cheaper than stages in any order"
    assert line.startswith("* paths ")
    assert line.endswith(" of state, 2 levels")
    assert stored.strip() == "a by k; b by k; b by j; c by j"

    _, line, *_, chosen, _ = alternatives(
        spoken(planned(CHAIN, often(), strategy="stages", decide=as_written))
    )
    assert line.startswith("  paths ")
    assert chosen.startswith("* as many inputs as one key has")


def test_joins_sink_where_paths_are_taken() -> None:
    """As stages the LEFT JOIN stays where it is; by paths a, c, d are one join of the rows of a and b."""
    assert by_paths(planned(SINKS, unknown())) == []
    assert planned(SINKS, unknown()).orders == (), "what was asked of another form is forgotten"
    assert [len(order.inputs) for order in planned(SINKS, often()).orders] == [3]
    for found in (planned(SINKS, often()), planned(SINKS, unknown(), strategy="paths")):
        (inputs,) = by_paths(found)
        assert len(inputs.replace("$0", "0")) == 3
        assert [join.became for join in found.joined.joins] == ["paths"]


@pytest.mark.parametrize("kind", ["LEFT", "LEFT SEMI", "LEFT ANTI"])
def test_joins_at_the_edge_sink_where_paths_are_taken(kind: str) -> None:
    """So no join above the paths stores what they find; stages leave it where it is, for a smaller operator."""
    edge = EDGE.replace("d.v AS w", "a.k AS w").replace("LEFT", kind)
    for found in (planned(edge, often()), planned(edge, unknown(), strategy="paths")):
        below, first, last = found.stages
        assert [i.alias for i in below.inputs] == ["b", "d"]
        assert isinstance(first, PathStage)
        assert {i.upstream for i in first.inputs} == {0, None}
        assert isinstance(last, HopStage)
        assert [join.inputs for join in found.joined.joins] == [("a", "b", "c")]

    assert [i.alias for i in planned(edge, unknown()).stages[-1].inputs][-1] == "d"
    assert by_paths(planned(edge, often(distinct=10_000))) == []


def test_a_join_at_the_edge_sinks_or_no_paths_are_taken() -> None:
    """Half of b is left below the paths, which are no cheaper then: a checkpoint by the others would sink it."""
    edge = EDGE.replace("d.v AS w", "a.k AS w").replace("LEFT", "LEFT SEMI")
    given = {
        "a": (10_000, {"k": 9, "v": 90}),
        "b": (1_000, {"k": 4, "j": 2}),
        "d": (1_000_000, {"v": 16_000}),
    }
    known = {name: InputStatistics(rows, distinct) for name, (rows, distinct) in given.items()}
    inputs = {n: replace(one, statistics=known.get(n, one.statistics)) for n, one in unknown().items()}
    begun = planned(edge, inputs)

    assert by_paths(planned(CHAIN, inputs)) == ["abc"]
    assert by_paths(begun) == []
    assert planned(edge, unknown(), kept(begun)).stages == begun.stages


# --- the checkpoint -------------------------------------------------------------------------------------


def any_figures(random: Random) -> dict[str, SourceInput]:
    """What is known of the inputs, if anything."""

    def known() -> InputStatistics:
        if random.random() < 0.2:
            return InputStatistics()
        rows = 10 ** random.randint(3, 6)
        return InputStatistics(
            rows, {name: random.randint(2, rows // 50) for name in "kjv" if random.random() < 0.8}
        )

    return {name: replace(one, statistics=known()) for name, one in often().items()}


@given(st.sampled_from(QUERIES), st.sampled_from(["auto", "paths", "stages"]), st.sampled_from([BYTE, SCARCE]), st.randoms())  # fmt: skip
@settings(max_examples=50, deadline=None)
def test_a_restart_plans_the_same_whatever_is_known_then(
    sql: str, strategy: str, byte: float, random: Random
) -> None:
    begun = planned(sql, any_figures(random), cheapest(byte), strategy)
    again = planned(sql, any_figures(random), kept(begun), strategy)

    assert again.stages == begun.stages
    assert [order.kept for order in again.orders] == [order.kept for order in begun.orders]


def test_forced_paths_use_what_is_known() -> None:
    """Which routes a unit chooses from, and begins with, follows the figures; after a restart, those at its beginning."""
    few = {**often(), "c": replace(often()["c"], statistics=InputStatistics(5, {"j": 5}))}
    begun = planned(CYCLE, few, strategy="paths")

    assert begun.stages != planned(CYCLE, unknown(), strategy="paths").stages
    assert planned(CYCLE, unknown(), kept(begun), "paths").stages == begun.stages


def test_a_checkpoint_by_paths_that_are_not_kept_goes_on_with_inputs_alike() -> None:
    assert (
        planned(CHAIN, often(), remembered([]), "paths").stages
        == planned(CHAIN, unknown(), strategy="paths").stages
    )


@pytest.mark.parametrize("strategy", ["stages", "binary"])
def test_stages_are_no_paths_because_a_checkpoint_has_these(strategy: str) -> None:
    """It is refused then, and what is asked for is why."""
    plan = planned(CHAIN, often(), kept(planned(CHAIN, often())), strategy)

    assert by_paths(plan) == []
    assert compare(fingerprint(planned(CHAIN, often())), fingerprint(plan))


def test_another_query_does_not_take_the_paths() -> None:
    """The same inputs by other keys: the checkpoint is refused then."""
    plan = planned(
        CHAIN.replace("b.j = c.j", "b.j = c.k AND a.v = c.v"), often(), kept(planned(CHAIN, often()))
    )

    assert by_paths(plan) == []
    assert [order.why for order in plan.orders] == [KEPT]


def asked(folder: Path, join: str = "strategy: auto") -> Pipeline:
    """Plan as a job does."""
    text = SPEC.replace("AND a.j < c.j", "").replace(
        "  output:", f"  join: {{memory: 4Gi, {join}}}\n  output:"
    )
    return plan_of(parse(text, "orders.yaml", folder))


@pytest.mark.parametrize("words", [("auto", "paths"), ("paths", "auto")])
def test_files_that_grow_change_no_paths_of_a_checkpoint(tmp_path: Path, words: Sequence[str]) -> None:
    first, then = (f"strategy: {word}" for word in words)
    files(tmp_path, k=5, i=5)
    (tmp_path / "checkpoint").mkdir()
    begun = asked(tmp_path, first)
    assert by_paths(begun) == ["abc"]
    identify(tmp_path / "checkpoint", "orders", begun)

    files(tmp_path, k=1000, i=1000)
    again = asked(tmp_path, then)
    assert again.stages == begun.stages
    assert again.orders[0].why == KEPT
    identify(tmp_path / "checkpoint", "orders", again)
    assert orders_of(tmp_path / "checkpoint") == (again.orders[0].paths,)


def test_a_checkpoint_that_is_damaged_has_no_orders(tmp_path: Path) -> None:
    (tmp_path / "streamjoin.json").write_text('{"orders": [{"inputs": ["a"]}]}')

    assert orders_of(tmp_path) == ()


# --- what is printed ------------------------------------------------------------------------------------


def test_tests_for_null_are_not_told_as_conditions() -> None:
    """The planner asks them of keys; what the query asks is told."""
    plan = planned(f"{CHAIN} AND b.v > 1 AND b.k IS NOT NULL", unknown(), strategy="paths")
    text = explain(plan)

    assert "where   (b.v > 1) AND (b.k IS NOT NULL)" in text or "where   b.v > 1 AND b.k IS NOT NULL" in text
    assert text.count("IS NOT NULL") == 2  # in the drawing, and in the stage
    assert "rows with NULL in a key or a bounded time match nothing" in text
    (first, *_) = plan.stages
    assert all("IS NULL" in (given.filter.sql if given.filter else "") for given in first.inputs)
