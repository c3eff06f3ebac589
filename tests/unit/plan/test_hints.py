"""Hints and join.strategy say how joins are done; one that cannot be followed is told, with why."""

from dataclasses import replace

import pyarrow as pa
import pytest

from joinlib.errors import SqlError
from joinlib.model.stage import PathStage, Pipeline
from joinlib.plan import JoinOptions, SourceInput, pipeline
from joinlib.plan.explain.pipeline import explain
from joinlib.plan.order import cheapest
from joinlib.plan.source import InputStatistics

KIND = pa.schema([(name, pa.int64()) for name in ("k", "j", "v")])
INPUTS = {name: SourceInput(KIND) for name in "abcd"}
CHAIN = "a.v FROM a JOIN b ON a.k = b.k JOIN c ON b.j = c.j"


def plan(sql: str, strategy: str = "auto") -> Pipeline:
    """A plan over four inputs."""
    return pipeline(sql, INPUTS, JoinOptions(units=4, strategy=strategy), mode="changelog")


def by_paths(found: Pipeline) -> list[str]:
    """The inputs of each join by paths."""
    stages = [stage for stage in found.stages if isinstance(stage, PathStage)]
    return ["".join(dict.fromkeys(i.alias for i in stage.inputs)) for stage in stages]


@pytest.mark.parametrize(
    ("hint", "strategy", "paths"),
    [
        ("", "auto", []),
        ("", "stages", []),
        ("", "paths", ["abc"]),
        ("/*+ PATHS(a, b, c) */", "auto", ["abc"]),
        ("/*+ paths(A, C) */", "auto", ["abc"]),
        ("/*+ PATHS(a, b, c) */", "stages", ["abc"]),
        ("/*+ STAGES(a, b, c) */", "auto", []),
        ("/*+ STAGES(a, b, c) */", "paths", []),
    ],
)
def test_hints_go_before_the_strategy(hint: str, strategy: str, paths: list[str]) -> None:
    found = plan(f"SELECT {hint} {CHAIN}", strategy)

    assert by_paths(found) == paths
    assert found.notes == ()


def test_each_join_has_its_own() -> None:
    """What the two SELECTs have below their groups is told apart by the names of inputs."""
    one = "SELECT {} x.k, count(*) AS n FROM a x JOIN b y ON x.k = y.k JOIN c z ON y.j = z.j GROUP BY x.k"
    two = "SELECT {} o.k, count(*) AS n FROM a o JOIN b p ON o.k = p.k JOIN c q ON p.j = q.j GROUP BY o.k"
    sql = f"SELECT u.n FROM ({one.format('/*+ PATHS(x, y, z) */')}) u JOIN ({two.format('')}) w ON u.k = w.k"

    assert by_paths(plan(sql)) == ["xyz"]


def test_inputs_of_one_key_have_no_paths() -> None:
    """The SEMI JOIN is decided below b, in a stage of its own; what is left shares a key."""
    sql = "SELECT a.v FROM a JOIN b ON a.k = b.k LEFT SEMI JOIN d ON d.j = b.j JOIN c ON c.k = a.k AND c.k = b.k"

    assert by_paths(plan(sql, "paths")) == []


UNFOLLOWED = {
    f"SELECT /*+ PATHS(a, d) */ {CHAIN}": "PATHS(a, d) is not followed: no INNER JOIN by several equalities has a and d",
    f"SELECT /*+ STAGES(d) */ {CHAIN}": "STAGES(d) is not followed: no INNER JOIN by several equalities has d",
    "SELECT /*+ PATHS(a, b, c) */ a.v FROM a JOIN b ON a.k = b.k JOIN c ON a.k = c.k": (
        "PATHS(a, b, c) is not followed: these inputs share a key"
    ),
    "SELECT /*+ PATHS(a, b, c) */ a.v FROM a JOIN b ON a.k = b.k LEFT JOIN c ON b.j = c.j": (
        "PATHS(a, b, c) is not followed: no INNER JOIN by several equalities has a, b and c"
    ),
    "SELECT /*+ PATHS(a, b, c) */ a.v FROM a JOIN b ON a.k = b.k JOIN c ON b.j < c.j JOIN d ON b.v = d.v": (
        "PATHS(a, b, c) is not followed: no INNER JOIN by several equalities has a, b and c"
    ),
}


@pytest.mark.parametrize("sql", UNFOLLOWED)
def test_a_hint_that_cannot_be_followed_is_told(sql: str) -> None:
    found = plan(sql)

    assert by_paths(found) == []
    (note,) = found.notes
    assert note.startswith(f"the hint {UNFOLLOWED[sql]}")
    assert note in explain(found)


@pytest.mark.parametrize("hint", ["BROADCAST(a)", "PATHS(a), MERGE(b)", "MAPJOIN"])
def test_other_hints_are_refused_where_they_stand(hint: str) -> None:
    with pytest.raises(SqlError, match=r"hints are not read, but for PATHS\(a, b, c\)") as told:
        plan(f"SELECT b.v FROM b JOIN (\n  SELECT /*+ {hint} */ k FROM a) s ON b.k = s.k")
    assert "line 2" in str(told.value)


@pytest.mark.parametrize("hint", ["PATHS", "STAGES()"])
def test_a_hint_names_inputs(hint: str) -> None:
    with pytest.raises(SqlError, match=r"names the inputs that it is about; write (PATHS|STAGES)\(a, b, c\)"):
        plan(f"SELECT /*+ {hint} */ {CHAIN}")


def groups(found: Pipeline) -> list[tuple[str, str, str]]:
    """What each group of joins became, and why."""
    return [("".join(join.inputs), join.became, join.why) for join in found.joined.joins]


@pytest.mark.parametrize(
    ("sql", "strategy", "became"),
    [
        (f"SELECT {CHAIN}", "paths", ("abc", "paths", "join.strategy is paths")),
        (f"SELECT {CHAIN}", "stages", ("abc", "stages", "join.strategy is stages; join.order is text")),
        (f"SELECT /*+ PATHS(a) */ {CHAIN}", "stages", ("abc", "paths", "the hint PATHS(a)")),
        (
            f"SELECT /*+ STAGES(b, c) */ {CHAIN}",
            "paths",
            ("abc", "stages", "the hint STAGES(b, c); join.order is text"),
        ),
    ],
)
def test_plan_says_what_groups_of_joins_become(sql: str, strategy: str, became: tuple[str, str, str]) -> None:
    found = plan(sql, strategy)

    assert groups(found) == [became]
    text = explain(found)
    joins = "    join\n      join\n        scan a\n        scan b\n      scan c\n"
    assert f"Logical\n  project\n{joins}" in text
    assert "Converted\n  project\n    multi\n      scan a\n      scan b\n      scan c\n" in text
    assert (
        f"Groups\n  a, b, c: {became[1]}\n    key  a.k = b.k\n    key  b.j = c.j\n    why  {became[2]}"
        in text
    )


def test_one_key_needs_no_choice() -> None:
    found = plan("SELECT a.v FROM a JOIN b ON a.k = b.k JOIN c ON a.k = c.k JOIN d ON d.k = b.k")

    assert [(inputs, became) for inputs, became, _ in groups(found)] == [("abcd", "one operator")]


def test_two_inputs_are_no_group() -> None:
    found = plan("SELECT a.v FROM a JOIN b ON a.k = b.k")

    assert found.joined.joins == ()
    assert not {"Logical", "Converted"} & set(explain(found).splitlines())


def test_both_prices_are_told_where_something_is_known() -> None:
    """Each key is there 100 times on both sides: what stages store between is a hundred times their inputs."""
    known = InputStatistics(10_000, {"k": 100, "j": 100})
    inputs = {name: replace(given, statistics=known) for name, given in INPUTS.items()}
    found = pipeline(f"SELECT {CHAIN}", inputs, JoinOptions(units=4), mode="changelog", decide=cheapest())

    (join,) = found.joined.joins
    assert join.became == "stages"
    paths, stages = join.prices
    assert paths.startswith("paths, 4 times an input by a key: ")
    assert stages.startswith("stages: ")
    assert f"    cost {paths}\n    cost {stages}" in explain(found)
