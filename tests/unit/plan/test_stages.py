"""Joins by several keys: which stages, in which order, with which columns, for how long, and what is refused."""

import json
import pickle
from itertools import product
from pathlib import Path

import pyarrow as pa
import pytest

from joinlib.errors import SpecError, SqlError
from joinlib.expr.bound import Bound
from joinlib.model.fingerprint import compare, fingerprint
from joinlib.plan import JoinOptions, Pipeline, SourceInput, build, pipeline, pipeline_of
from joinlib.plan.explain import explain
from joinlib.plan.explain.formats import render
from joinlib.plan.forward import forward
from joinlib.spec import load

MANIFESTS = sorted((Path(__file__).parents[3] / "manifests").glob("[0-9]*.yaml"))
HOUR = 3_600_000_000
TIMED = SourceInput(
    pa.schema([("k", pa.int64()), ("j", pa.int64()), ("v", pa.int64()), ("t", pa.timestamp("us", "UTC"))]),
    "t",
)
INPUTS = dict.fromkeys("abcd", TIMED)


def plan(sql: str, **more: object) -> Pipeline:
    return pipeline(sql, INPUTS, JoinOptions(units=4, **more))  # type: ignore[arg-type]


def joined(found: Pipeline) -> list[str]:
    """The inputs of each stage."""
    return [" ".join(i.alias for i in stage.inputs) for stage in found.stages]


# The joins of TPC-H, without their subqueries on aggregates, which no stream can answer: Q2 and Q18 lose those, Q15 its view;
# Q21's EXISTS and NOT EXISTS stay.
TPCH = {
    "part": "p_partkey",
    "supplier": "s_suppkey s_nationkey",
    "partsupp": "ps_partkey ps_suppkey",
    "nation": "n_nationkey n_regionkey",
    "region": "r_regionkey",
    "customer": "c_custkey c_nationkey",
    "orders": "o_orderkey o_custkey",
    "lineitem": "l_orderkey l_partkey l_suppkey",
}
QUERIES = {
    "Q2": (("part, partsupp, supplier, nation, region WHERE p_partkey = ps_partkey AND s_suppkey = ps_suppkey"
           " AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey"),
           ["part partsupp", "$0 supplier", "$1 nation", "$2 region"]),
    "Q3": (("customer, orders, lineitem WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey"),
           ["customer orders", "$0 lineitem"]),
    "Q5": (("customer, orders, lineitem, supplier, nation, region WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey"
           " AND l_suppkey = s_suppkey AND c_nationkey = s_nationkey AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey"),
           ["customer orders", "$0 lineitem", "$1 supplier", "$2 nation", "$3 region"]),
    "Q7": (("supplier, lineitem, orders, customer, nation n1, nation n2 WHERE s_suppkey = l_suppkey AND o_orderkey = l_orderkey"
           " AND c_custkey = o_custkey AND s_nationkey = n1.n_nationkey AND c_nationkey = n2.n_nationkey"),
           ["supplier lineitem", "$0 orders", "$1 customer", "$2 n1", "$3 n2"]),
    "Q8": (("part, supplier, lineitem, orders, customer, nation n1, nation n2, region WHERE p_partkey = l_partkey"
           " AND s_suppkey = l_suppkey AND l_orderkey = o_orderkey AND o_custkey = c_custkey AND c_nationkey = n1.n_nationkey"
           " AND n1.n_regionkey = r_regionkey AND s_nationkey = n2.n_nationkey"),
           ["part lineitem", "$0 supplier", "$1 orders", "$2 customer", "$3 n1", "$4 n2", "$5 region"]),
    "Q9": (("part, supplier, lineitem, partsupp, orders, nation WHERE s_suppkey = l_suppkey AND ps_suppkey = l_suppkey"
           " AND ps_partkey = l_partkey AND p_partkey = l_partkey AND o_orderkey = l_orderkey AND s_nationkey = n_nationkey"),
           ["part lineitem partsupp", "$0 supplier", "$1 orders", "$2 nation"]),
    "Q10": (("customer, orders, lineitem, nation WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey"
            " AND c_nationkey = n_nationkey"),
            ["customer orders", "$0 lineitem", "$1 nation"]),
    "Q11": (("partsupp, supplier, nation WHERE ps_suppkey = s_suppkey AND s_nationkey = n_nationkey"),
            ["partsupp supplier", "$0 nation"]),
    "Q15": ("supplier, lineitem WHERE s_suppkey = l_suppkey", ["supplier lineitem"]),
    "Q18": (("customer, orders, lineitem WHERE c_custkey = o_custkey AND o_orderkey = l_orderkey"),
            ["customer orders", "$0 lineitem"]),
    "Q21": (("supplier, lineitem l1, orders, nation WHERE s_suppkey = l1.l_suppkey AND o_orderkey = l1.l_orderkey"
            " AND s_nationkey = n_nationkey AND EXISTS (SELECT 1 FROM lineitem l2 WHERE l2.l_orderkey = l1.l_orderkey"
            " AND l2.l_suppkey <> l1.l_suppkey) AND NOT EXISTS (SELECT 1 FROM lineitem l3 WHERE l3.l_orderkey = l1.l_orderkey"
            " AND l3.l_suppkey <> l1.l_suppkey)"),
            ["supplier l1", "$0 orders", "$1 nation", "$2 l2 l3"]),
}  # fmt: skip


@pytest.mark.parametrize("query", QUERIES)
def test_stages_of_tpch(query: str) -> None:
    """Inner joins are cut into stages by their keys."""
    text, expected = QUERIES[query]
    inputs = {n: SourceInput(pa.schema([(c, pa.int64()) for c in cs.split()])) for n, cs in TPCH.items()}
    found = pipeline(f"SELECT 1 AS one FROM {text}", inputs, JoinOptions(units=4))

    assert joined(found) == expected
    assert pickle.loads(pickle.dumps(found)) == found


def test_a_stage_takes_all_that_shares_its_key() -> None:
    """d comes last in the text, but by the first key: it needs no third stage."""
    found = plan("SELECT a.v, c.v AS w FROM a, b, c, d WHERE a.k = b.k AND b.j = c.j AND a.k = d.k")

    assert joined(found) == ["a b d", "$0 c"]


def test_no_input_is_taken_before_what_would_hold_it_back() -> None:
    """c shares a's key, but by it alone each row of c would meet all rows of a: it is for b and d to say which."""
    text = "SELECT a.v FROM a, b, d, c WHERE a.k = b.k AND b.j = d.j AND d.v = c.v AND c.k = a.k"

    assert joined(plan(text)) == ["a b", "$0 d", "$1 c"]
    assert plan(text).last.inputs[0].keys == ("d.v", "a.k")


def test_a_composite_key_is_not_given_up() -> None:
    """For an input that shares a part of it."""
    found = plan("SELECT a.v FROM a, b, c, d WHERE a.v = b.v AND b.k = c.k AND b.j = c.j AND d.k = c.k")

    assert joined(found) == ["a b", "$0 c", "$1 d"]


def test_only_what_later_stages_need_goes_on() -> None:
    """Keys, conditions and results; a key that was used goes no further."""
    found = plan(
        "SELECT a.v, d.v AS w FROM a, b, c, d WHERE a.k = b.k AND b.j = c.j AND c.v = d.v + 1 AND b.v < c.k"
    )

    assert [[c.name for c in stage.select] for stage in found.stages] == [
        ["a.v", "b.j", "b.v"],
        ["a.v", "c.v"],
        ["v", "w"],
    ]
    upstream = found.stages[1].inputs[0]
    assert (upstream.source, upstream.upstream, upstream.read) == ("$stage0", 0, ("a.v", "b.j", "b.v"))
    assert upstream.keys == ("b.j",)
    assert found.stages[2].inputs[1].keys == ("d.$key0",)


def test_a_key_may_be_computed_of_several_inputs() -> None:
    """Once they are joined."""
    found = plan("SELECT a.v FROM a, b, c WHERE a.k = b.k AND a.v + b.v = c.v")

    assert found.last.inputs[0].keys == ("$0.$key0",)
    assert found.last.inputs[0].read == ("a.v", "b.v")


def test_every_condition_is_decided_in_the_first_stage_that_sees_its_inputs() -> None:
    """Later ones see fewer rows."""
    found = plan(
        "SELECT a.v FROM a, b, c WHERE a.k = b.k AND b.j = c.j AND a.v < b.v AND a.v < c.v AND c.k > 0"
    )
    predicates = [stage.tree.predicate.sql for stage in found.stages]  # type: ignore[union-attr]

    assert predicates == ["(a.v < b.v)", "(a.v < c.v)"]
    assert found.last.inputs[1].filter.sql == "(c.k > 0)"  # type: ignore[union-attr]


def test_rows_wait_for_those_that_a_stage_holds_back() -> None:
    """b may come an hour after a; so (a, b) comes out with a's time an hour ago, and c waits for it."""
    found = plan("SELECT a.v, c.v AS w FROM a, b, c WHERE a.k = b.k AND b.j = c.j", retention_us=HOUR)
    upstream = found.last.inputs[0]

    assert (upstream.time, upstream.delay_us, upstream.idle_us) == ("a.t", 0, None)
    assert upstream.behind == (("a.t", HOUR), ("b.t", HOUR))
    assert found.last.tree.bounds == (Bound("a.t", "c.t", -HOUR, HOUR), Bound("b.t", "c.t", -HOUR, HOUR))
    assert all(stage.timed for stage in found.stages)


def test_nothing_is_said_of_a_time_without_bound() -> None:
    """b may come at any time after a: what waits for a's time waits forever."""
    found = plan(
        "SELECT a.v FROM a, b, c WHERE a.k = b.k AND b.j = c.j AND c.t BETWEEN a.t AND a.t + INTERVAL 1 HOUR"
    )

    assert found.last.inputs[0].behind == ()
    assert [i.time for i in found.stages[0].inputs] == ["a.t", None]
    assert "c is kept forever" in explain(found)


@pytest.mark.parametrize("low", [-5, 0, 3, None])
@pytest.mark.parametrize("high", [4, 9, None])
def test_no_row_is_later_than_is_said(low: int | None, high: int | None) -> None:
    """Of all rows that the bounds let through when the part that came last is not late; and some are as late as that."""
    names = ["a.t", "b.t", "d.t"]
    bounds = [Bound("a.t", "b.t", low, high), Bound("b.t", "d.t", -1, 2)]
    said = forward([[name] for name in names], bounds, dict.fromkeys(names, 0))
    span = range(-20, 12)
    through = [
        dict(zip(names, times))
        for times in product(span, span, span)
        if max(times) >= 0 and all(_within(b, dict(zip(names, times))) for b in bounds)
    ]

    for name in names:
        latest = -min(row[name] for row in through)
        assert latest == said.get(name, 20)


def _within(bound: Bound, row: dict[str, int]) -> bool:
    apart = row[bound.right] - row[bound.left]
    return (bound.low_us is None or bound.low_us <= apart) and (
        bound.high_us is None or apart <= bound.high_us
    )


REFUSED = [
    ("SELECT j FROM a JOIN b ON a.k = b.k JOIN c ON a.j = c.j", (1, 8), "column j is ambiguous; write a.j or b.j or c.j"),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "at", "said"), REFUSED)
def test_what_cannot_be_joined_is_refused_at_its_place(sql: str, at: tuple[int, int], said: str) -> None:
    """With what to write instead."""
    with pytest.raises(SqlError) as refused:
        plan(sql)

    assert said in str(refused.value)
    assert (refused.value.line, refused.value.column) == at


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a.v FROM a, b, c WHERE a.k = b.k",
        "SELECT a.v FROM a, b, c WHERE a.k = b.k AND b.j < c.j",
        "SELECT a.v FROM a JOIN b ON a.k = b.k LEFT JOIN c ON a.t < c.t",
    ],
)
def test_what_no_equality_relates_meets_in_one_unit(sql: str) -> None:
    """With a warning, since this does not scale."""
    said = explain(plan(sql))

    assert (
        "the result of stage 0 and c are joined without an equality: all their rows meet in one of the units"
        in said
    )


def test_what_an_outer_join_keeps_back_is_known() -> None:
    """Rows without a partner come out an hour late at most; b's time may be NULL, and says nothing."""
    sql = "SELECT a.v FROM a LEFT JOIN b ON a.k = b.k JOIN c ON a.j = c.j"
    left, c = plan(sql, retention_us=HOUR).last.inputs

    assert joined(plan(sql)) == ["a b", "$0 c"]
    assert (left.behind, c.behind) == ((("a.t", HOUR),), ())
    full = sql.replace("JOIN c", "LEFT JOIN c").replace("LEFT JOIN b", "FULL JOIN b")
    assert plan(full, retention_us=HOUR).last.inputs[0].behind == ()
    assert "a.t up to 1h behind" in explain(plan(sql, retention_us=HOUR))
    more = sql.replace("JOIN c", "LEFT JOIN c").replace("c.j", "c.j AND c.t >= b.t")
    assert [(b.left, b.right) for b in plan(more, retention_us=HOUR).last.tree.bounds] == [("a.t", "c.t")]


@pytest.mark.parametrize(
    "more", [{"strategy": "biclique"}, {"strategy": "inequality"}, {"subgroups": 2}, {"window_rows": 5}]
)
def test_what_several_stages_cannot_do(more: dict[str, object]) -> None:
    """Other ways of joining are for one key, or two inputs."""
    with pytest.raises(SpecError, match=r"write auto|bound the time instead"):
        plan("SELECT a.v FROM a, b, c WHERE a.k = b.k AND b.j = c.j", **more)


def test_the_plan_is_told() -> None:
    """The joins of each stage, and what is stored in between."""
    told = explain(
        plan("SELECT a.v, c.v AS w FROM a, b, c, d WHERE a.k = b.k AND b.j = c.j + 1 AND a.k = d.k")
    )

    assert told.startswith(
        "result: final rows\n"
        "└─ inner join on b.j = c.j + 1    stage 1\n"
        "   ├─ inner join a ⋈ b ⋈ d on k   stage 0\n"
        "   │  ├─ a\n"
        "   │  ├─ b\n"
        "   │  └─ d\n"
        "   └─ c\n"
    )
    assert "      stores  b.j, BIGINT: key\n              a.v, BIGINT: result\n" in told
    assert "keeps   the result of stage 0 forever" in told
    assert "Stage 1\n  Inputs\n    the result of stage 0" in told


def test_one_stage_is_told_as_ever() -> None:
    """Whoever asks."""
    sql = "SELECT a.v FROM a JOIN b ON a.k = b.k"
    one = build(sql, INPUTS, JoinOptions(units=4))

    assert explain(plan(sql)) == explain(one)
    assert fingerprint(plan(sql)) == fingerprint(one)


def test_checkpoints_are_compared_stage_by_stage() -> None:
    """Of what changed it is said where."""
    texts = [
        "SELECT a.v FROM a, b WHERE a.k = b.k",
        "SELECT a.v FROM a, b, c WHERE a.k = b.k AND b.j = c.j",
        "SELECT a.v FROM a, b, c WHERE a.k = b.k AND b.j = c.j AND a.v < c.v",
    ]
    one, two, three = (fingerprint(plan(text)) for text in texts)

    assert compare(two, two) == []
    assert compare(one, two) == ["the query ran in 1 stage and would run in 2; this needs a new checkpoint"]
    assert all(why.startswith("stage 1: ") for why in compare(two, three))
    assert compare(two, three)


def test_the_plan_for_programs_and_pictures() -> None:
    """All stages, their inputs and what goes from one to the next; quotes in the SQL break neither."""
    found = plan("""SELECT a.v, concat('<"x">', 'y') AS `q"` FROM a, b, c WHERE a.k = b.k AND b.j = c.j""")
    document = json.loads(render(found, "json"))
    chart = render(found, "mermaid")

    assert [len(stage["inputs"]) for stage in document["stages"]] == [2, 2]
    assert document["stages"][1]["inputs"][0]["source"] == "$stage0"
    assert document["stages"][0]["select"] == {"a.v": ["a.v", "BIGINT"], "b.j": ["b.j", "BIGINT"]}
    assert 'stage0["stage 0<br>INNER by a.k = b.k"]' in chart
    assert 'stage0 -->|"a.v, b.j"| stage1' in chart
    assert 'stage1 --> result(["v, q#quot;"])' in chart
    assert render(found, "text") == explain(found)


@pytest.mark.parametrize("form", ["json", "mermaid"])
@pytest.mark.parametrize("path", MANIFESTS, ids=[p.stem for p in MANIFESTS])
def test_every_example_has_every_format(path: Path, form: str) -> None:
    """Joins without a key, and lookups, too."""
    text = render(pipeline_of(load(path)), form)

    assert json.loads(text)["stages"] if form == "json" else text.startswith("flowchart LR")


@pytest.mark.parametrize("kind", ["", "LEFT ", "SEMI ", "ANTI "])
def test_a_time_that_is_only_selected_is_a_column_like_any_other(kind: str) -> None:
    """The first stage bounds it; the second keeps its rows forever, and needs no word of how late they may be."""
    found = plan(
        f"SELECT a.t, c.v FROM a {kind}JOIN b ON a.k = b.k AND b.t BETWEEN a.t AND a.t + INTERVAL 1 HOUR"
        " LEFT JOIN c ON a.j = c.j"
    )

    assert (found.last.inputs[0].time, found.last.inputs[0].behind) == (None, ())
    assert "a.t" in found.last.inputs[0].read
