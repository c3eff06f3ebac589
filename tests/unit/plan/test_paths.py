"""Plans of joins by paths: every leg reads what its tuples carry, and every route ends in the last level."""

import pickle
from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pytest

from joinlib.model.inputs import HASH, WEIGHT, InputPlan
from joinlib.model.paths import Hop, Leg
from joinlib.model.stage import GroupStage, HopStage, PathStage, Pipeline, Stage
from joinlib.plan import JoinOptions, SourceInput, pipeline
from joinlib.plan.explain.formats import render
from joinlib.plan.explain.pipeline import explain
from joinlib.spec import ddl
from tests.laws.any_paths import any_paths
from tests.queries.corpus import query, schemas
from tests.unit.plan.test_tsc import TABLE_3

INT, TIME = pa.int64(), pa.timestamp("us", "UTC")
BY_PATHS = ("q2", "q3", "q5", "q7", "q8", "q9", "q10", "q11", "q18", "q21")


def tpch(name: str, strategy: str = "paths") -> Pipeline:
    """The plan of a query of TPC-H."""
    inputs = {
        table: SourceInput(ddl.parse(", ".join(" ".join(column) for column in columns)))
        for table, columns in schemas("tpch").items()
    }
    text = query(f"tpch-{name}").streamed
    return pipeline(text, inputs, JoinOptions(units=4, strategy=strategy), mode="changelog")


def stores(plan: Pipeline) -> Iterator[tuple[int, PathStage]]:
    """The joins by paths of a plan."""
    return ((n, stage) for n, stage in enumerate(plan.stages) if isinstance(stage, PathStage))


def legs(plan: Pipeline, number: int, route: int) -> Iterator[tuple[InputPlan, Leg]]:
    """The legs of a route, each with the input as which its rows come."""
    stage = plan.stages[number]
    assert isinstance(stage, PathStage)
    yield stage.inputs[stage.homes[stage.paths[route].start]], stage.legs[route]
    while (found := plan.next_leg(number, route)) is not None:
        number, given = found
        later = plan.stages[number]
        assert isinstance(later, HopStage)
        yield given, later.legs[given.number]
    last = plan.stages[number]
    assert isinstance(last, HopStage)
    assert last.last, "a route ends where results are made"


def check(hop: Hop, stage: PathStage, known: pa.Schema, key: tuple[str, ...]) -> pa.Schema:
    """Check one probe of tuples that lie by `key`; return their columns after it."""
    mine, theirs = hop.operator.sides
    stored = stage.sides[hop.side]
    assert mine.schema.names == [HASH, *known.names]
    assert theirs.schema == stored.schema
    assert theirs.keys[: len(stored.keys)] == stored.keys, "it asks by the key of the arrangement"
    kinds = [known.field(name).type for name in mine.keys]
    assert kinds == [theirs.schema.field(name).type for name in theirs.keys]
    assert [known.field(name).type for name in key] == kinds[: len(key)], "tuples lie where they ask"
    both = pa.schema([*known, *stored.schema.remove(0)])
    read = {c for b in hop.operator.bounds for c in (b.left, b.right)}
    read |= set(hop.operator.residual.columns) if hop.operator.residual is not None else set()
    assert read <= set(both.names)
    return both


def sound(plan: Pipeline, number: int, stage: PathStage) -> None:
    """Check all routes of a join by paths."""
    assert all(stage.inputs[home].stored or not stage.inputs[home].changes for home in stage.homes)
    for route, path in enumerate(stage.paths):
        seen = [path.start]
        for given, leg in legs(plan, number, route):
            known = given.schema
            for hop in leg.hops:
                one = stage.arrangements[hop.side].input
                known = check(hop, stage, known, given.keys)
                shared = stage.graph.held(seen) & stage.graph.of(one)
                assert len(hop.operator.sides[1].keys) == len(shared), (
                    "all classes are compared where inputs meet"
                )
                assert hop.after == (one < path.start)
                assert one not in seen
                seen.append(one)
            assert leg.route == route
            cut = [name for name in leg.schema.names if name != WEIGHT]
            weight = [pa.field(WEIGHT, INT)] if stage.changes else []
            assert leg.schema == pa.schema([*(known.field(name) for name in cut), *weight])
        assert sorted(seen) == list(range(stage.graph.inputs)), "it joins all inputs"


@pytest.mark.parametrize("name", BY_PATHS)
def test_all_routes_of_tpch_read_what_they_carry(name: str) -> None:
    plan = tpch(name)

    assert pickle.loads(pickle.dumps(plan)) == plan
    found = list(stores(plan))
    assert found
    for number, stage in found:
        sound(plan, number, stage)


INPUTS = {
    "c": SourceInput(pa.schema([("k", INT), ("seg", pa.string())])),
    "o": SourceInput(pa.schema([("k", pa.int32()), ("c", INT), ("t", TIME), ("prio", INT)]), "t"),
    "l": SourceInput(pa.schema([("o", INT), ("price", INT), ("t", TIME)]), "t"),
}
Q3 = "SELECT c.seg, o.prio, l.price FROM c JOIN o ON c.k = o.c JOIN l ON l.o = o.k"


def plan(sql: str, **options: object) -> tuple[PathStage, list[HopStage]]:
    """The stages of a query over `INPUTS`."""
    found = pipeline(sql, INPUTS, JoinOptions(units=4, strategy="paths", **options))  # type: ignore[arg-type]
    first, *rest = found.stages
    assert isinstance(first, PathStage)
    sound(found, 0, first)
    return first, [stage for stage in rest if isinstance(stage, HopStage)]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("name", ["q5", "q9"])
def test_any_paths_read_what_they_carry(name: str, seed: int) -> None:
    """Cycles that a key leaves to be compared, keys by which nothing is stored, rows that wait."""
    with any_paths(seed):
        found = tpch(name)
    for number, stage in stores(found):
        sound(found, number, stage)


CYCLE = "SELECT a.v FROM a JOIN b ON a.k = b.k JOIN c ON b.v = c.v AND a.j = c.j"
HUB = (
    "SELECT a.v FROM a JOIN b ON a.k = b.k JOIN c ON a.k = c.k JOIN d ON a.k = d.k"
    " JOIN e ON a.j = e.j JOIN f ON a.v = f.v JOIN g ON g.k = a.k JOIN h ON h.j = a.j"
)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("sql", [CYCLE, HUB])
def test_any_paths_of_rows_that_may_go(sql: str, seed: int) -> None:
    """Where they come in they are stored; routes differ by several legs."""
    kind = pa.schema([(name, INT) for name in "kjv"])
    given = {name: SourceInput(kind, changes=True) for name in "abcdefgh"}
    with any_paths(seed):
        found = pipeline(sql, given, JoinOptions(strategy="paths"), mode="changelog")

    ((number, stage),) = stores(found)
    sound(found, number, stage)


def test_each_input_is_stored_by_each_key_that_a_path_asks_for() -> None:
    first, (last,) = plan(Q3)

    assert [(i.alias, i.keys, i.again) for i in first.inputs] == [
        ("c", ("c.k",), None),
        ("o", ("o.c",), None),
        ("o", ("o.$key1",), 1),
        ("l", ("l.o",), None),
    ]
    assert [i.keys for i in last.inputs] == [("o.$key1",), ("o.$key1",), ("o.c",)]
    assert last.select == plan(Q3)[1][0].select


def test_rows_that_match_nothing_do_not_come() -> None:
    first, _ = plan(f"{Q3} AND l.t > o.t")

    assert [i.filter and i.filter.sql for i in first.inputs][
        3
    ] == "((NOT (l.o IS NULL)) AND (NOT (l.t IS NULL)))"


def test_bounds_along_a_chain_bound_the_state() -> None:
    """Of c no time is known, so all is kept; by a retention, c has none either: it is refused."""
    times = "SELECT a.v, x.v, y.v FROM a JOIN x ON a.k = x.k AND x.t BETWEEN a.t AND a.t + INTERVAL 1 HOUR "
    sql = times + "JOIN y ON x.j = y.j AND y.t BETWEEN x.t AND x.t + INTERVAL 2 HOURS"
    kind = pa.schema([("k", INT), ("j", INT), ("v", INT), ("t", TIME)])
    inputs = {name: SourceInput(kind, "t") for name in "axy"}
    first = pipeline(sql, inputs, JoinOptions(units=4, strategy="paths")).stages[0]
    assert isinstance(first, PathStage)
    hour = 3_600_000_000

    assert {(s.keys, s.time, s.hold_us) for s in first.sides} == {
        (("a.k",), "a.t", 3 * hour),
        (("x.k",), "x.t", 2 * hour),
        (("x.j",), "x.t", 2 * hour),
        (("y.j",), "y.t", 0),
    }


def test_a_condition_that_may_fail_is_asked_of_whole_tuples_only() -> None:
    first, (last,) = plan(f"{Q3} WHERE o.prio / l.price > 1 AND o.prio > l.price")

    for leg in first.legs:
        assert all(
            "/" not in (hop.operator.residual.sql if hop.operator.residual else "") for hop in leg.hops
        )
    assert all(leg.hops[-1].operator.residual is not None for leg in last.legs)


def test_one_key_is_one_operator() -> None:
    kind = pa.schema([("k", INT)])
    found = pipeline(
        "SELECT a.k FROM a JOIN x ON a.k = x.k JOIN y ON x.k = y.k",
        {name: SourceInput(kind) for name in "axy"},
        JoinOptions(strategy="paths"),
    )

    assert len(found.stages) == 1


def told(sql: str) -> str:
    """What `plan` prints of a query over `INPUTS`."""
    return explain(pipeline(sql, INPUTS, JoinOptions(units=4, strategy="paths")))


def test_plan_prints_what_is_stored_and_a_line_for_each_path() -> None:
    text = told(Q3)

    assert "└─ join by paths of c ⋈ o ⋈ l on c.k = o.c and CAST(o.k AS BIGINT) = l.o" in text
    assert "    c by k, kept forever\n    o by k, kept forever\n    o by o, kept forever\n" in text
    assert "    c ─k► o │ ─o► l\n    o ─k► c │ ─o► l\n    l ─o► o │ ─k► c\n" in text
    assert "join by paths of c, o, l: c and o and l are kept forever" in text


@pytest.mark.parametrize("form", ["text", "json", "mermaid"])
@pytest.mark.parametrize("name", ["q2", "q8", "q9", "q18"])
def test_every_form_of_plan_has_paths(name: str, form: str) -> None:
    assert render(tpch(name), form)


def changing(**more: object) -> dict[str, SourceInput]:
    """`INPUTS`, of which the orders change."""
    return {**INPUTS, "o": replace(INPUTS["o"], changes=True, time=None, **more)}  # type: ignore[arg-type]


def test_an_upsert_in_front_is_one_for_all_keys() -> None:
    found = pipeline(
        Q3,
        changing(upsert=("k",)),
        JoinOptions(units=4, strategy="paths"),
        mode="upsert",
        key=("seg", "prio", "price"),
    )
    _, first, last, keyed = found.stages

    assert isinstance(first, PathStage)
    assert isinstance(last, HopStage)
    assert [i.upstream for i in first.inputs] == [None, 0, 0, None]
    assert [side.mutable for side in first.sides] == [False, True, True, False]
    assert {i.upstream for i in last.inputs} == {1}
    assert first.changes
    assert last.changes
    assert keyed.inputs[0].upstream == 2, "results of one value may leave several units"


def test_deletions_without_a_row_may_be_skipped() -> None:
    found = pipeline(
        Q3, changing(skip_unknown=True), JoinOptions(units=4, strategy="paths"), mode="changelog"
    )

    assert [i.skip_unknown for i in found.stages[0].inputs] == [False, True, True, False]


def test_a_lookup_is_asked_for_whole_tuples() -> None:
    table = SourceInput(pa.schema([("id", INT), ("name", pa.string())]), role="table")
    found = pipeline(
        f"{Q3.replace('c.seg', 'r.name')} JOIN r ON r.id = o.prio",
        {**INPUTS, "r": table},
        JoinOptions(strategy="paths"),
    )

    assert [len(stage.lookups) for stage in found.stages] == [0, 1]
    assert found.emitted.names == ["name", "prio", "price"]


def test_groups_read_what_paths_find() -> None:
    found = pipeline(
        "SELECT c.seg, sum(l.price) AS s FROM c JOIN o ON c.k = o.c JOIN l ON l.o = o.k GROUP BY c.seg",
        INPUTS,
        JoinOptions(strategy="paths"),
        mode="changelog",
    )

    assert [type(stage) for stage in found.stages] == [PathStage, HopStage, GroupStage]
    assert found.levels == ((0,), (1,), (2,))
    assert found.stages[2].inputs[0].upstream == 1


def test_paths_read_what_joins_below_find() -> None:
    """An outer join within the FROM is a stage of its own, and its rows an input of the paths."""
    found = pipeline(
        "SELECT c.seg, o.prio, l.price FROM o LEFT JOIN p ON p.o = o.k JOIN c ON c.k = o.c JOIN l ON l.o = o.k",
        {**INPUTS, "p": SourceInput(pa.schema([("o", INT)]))},
        JoinOptions(strategy="paths"),
        mode="changelog",
    )
    below, first, _ = found.stages

    assert isinstance(below, Stage)
    assert isinstance(first, PathStage)
    assert {i.upstream for i in first.inputs} == {0, None}
    sound(found, 1, first)


@pytest.mark.parametrize("name", BY_PATHS)
def test_all_groups_that_two_step_convert_finds_become_paths(name: str) -> None:
    """Those of three inputs or more: the logical graph and what is planned say the same."""
    found = tpch(name)
    inputs = [len(join.inputs) for join in found.joined.joins if join.became == "paths"]

    assert len(inputs) == len(list(stores(found)))
    assert sorted(inputs) == sorted(len(group) for group in TABLE_3[name] if len(group) > 2)
