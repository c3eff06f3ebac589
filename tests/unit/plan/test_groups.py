"""When groups come out, what the plan says of it, and what a checkpoint of groups can follow."""

import json
from dataclasses import replace

import pytest

from joinlib.errors import SqlError
from joinlib.model.fingerprint import compare, fingerprint
from joinlib.model.joins import Caching
from joinlib.model.stage import Pipeline
from joinlib.plan import JoinOptions, SourceInput, pipeline
from joinlib.plan.explain import explain
from joinlib.plan.explain.formats import render
from tests.unit.plan.test_build import HOUR, INPUTS

ON = "FROM orders o {} JOIN ships s ON o.id = s.order_id"
NEAR = f"{ON} AND s.at BETWEEN o.at AND o.at + INTERVAL 1 HOUR"
DAY = "SELECT CAST(o.at AS DATE) AS d, count(*) AS n {} GROUP BY CAST(o.at AS DATE)"


def plan(sql: str, changelog: bool = False, **more: SourceInput) -> Pipeline:
    return pipeline(
        sql, {**INPUTS, **more}, JoinOptions(units=8), mode="changelog" if changelog else "append"
    )


@pytest.mark.parametrize(
    ("sql", "behind"),
    [
        (DAY.format(NEAR), HOUR),
        (DAY.replace("o.at", "s.at").format(NEAR), 0),
        (DAY.replace("CAST(o.at AS DATE)", "o.at + INTERVAL 1 DAY").format(NEAR), HOUR),
        (DAY.replace("CAST(o.at AS DATE)", "date_trunc('week', o.at)").format(NEAR), HOUR),
        (DAY.replace("CAST(o.at AS DATE)", "month(o.at)").format(NEAR), None),
        (DAY.format(ON), None),
        (DAY.format(NEAR.format("LEFT")), None),
        (DAY.replace("CAST(o.at AS DATE)", "o.customer").format(NEAR), None),
    ],
)
def test_a_group_is_final_when_its_time_has_passed(sql: str, behind: int | None) -> None:
    """Only where its key rises with an event time that is bounded in the join."""
    found = plan(sql.replace("{}", ""))

    assert found.grouping is not None
    assert (found.grouping.release and found.grouping.release.behind_us) == behind
    assert found.final_close


def test_nulls_of_the_result_are_texts() -> None:
    """Where nothing gives them a type; within a query they need one, as what they meet depends on it."""
    found = plan(
        "SELECT o.customer, NULL AS a, max(NULL) AS b, sum(NULL) AS c FROM orders o GROUP BY o.customer", True
    )
    assert [str(field.type) for field in found.last.schema][1:] == ["string", "string", "double"]
    within = "WITH q AS (SELECT NULL AS a, count(*) AS n FROM orders o) SELECT coalesce(a, 1) AS a, n FROM q"
    with pytest.raises(
        SqlError, match=r"line 1, column 30: an output column has no type; write CAST\(NULL AS"
    ):
        plan(within, True)


def test_rows_behind_the_watermark_are_late_where_groups_are_final() -> None:
    """Also where nothing is stored: a stream with a table."""
    cities = SourceInput(INPUTS["untimed"].schema, role="table")
    found = plan(DAY.format("FROM orders o JOIN cities c ON o.id = c.id"), cities=cities)

    assert found.stages[0].timed
    assert found.stages[0].inputs[0].time == "o.at"
    early = plan(DAY.format("FROM orders o JOIN cities c ON o.id = c.id"), True, cities=cities)
    assert not early.stages[0].timed


def test_the_plan_says_the_two_phases() -> None:
    """And warns of what grows, or never comes out."""
    text = explain(plan(DAY.format(NEAR).replace("{}", "")))
    assert "phase 1 each unit of the join makes one partial" in text
    assert "out     once, when the watermark, 1h behind, has passed all of its CAST(o.at AS DATE)" in text
    assert json.loads(told_as(DAY, "json"))["stages"][-1]["groups"]["by"] == ["CAST(o.at AS DATE)"]
    assert "groups by CAST(o.at AS DATE)" in told_as(DAY, "mermaid")
    assert "are emitted only when the inputs are closed" in explain(plan(DAY.format(ON).replace("{}", "")))
    assert "every group is kept forever, state grows with" in explain(
        plan(DAY.format(ON).replace("{}", ""), True)
    )


def told_as(sql: str, form: str) -> str:
    return render(plan(sql.format(NEAR).replace("{}", "")), form)


def test_other_groups_need_a_new_checkpoint() -> None:
    """Other aggregates or another mode: partials that are stored would lack something."""
    sql = DAY.format(NEAR).replace("{}", "")
    one = fingerprint(plan(sql))

    assert compare(one, fingerprint(plan(sql))) == []
    for other in (plan(sql, True), plan(sql.replace("count(*)", "max(o.at)"))):
        assert any("groups" in why for why in compare(one, fingerprint(other)))


TABLE = (
    "SELECT o.customer AS k, count(*) AS n FROM orders o {} JOIN cities c ON o.id = c.id GROUP BY o.customer"
)


def test_tables_that_grouped_rows_have_met_need_a_new_checkpoint_if_they_change() -> None:
    """What was counted without them, as older versions did, or by another condition, stays counted so."""
    cities = SourceInput(INPUTS["untimed"].schema, role="table")
    one = fingerprint(plan(TABLE.format(""), cities=cities))
    asked = replace(cities, caching=Caching("incremental", budget=1000))

    assert compare(json.loads(json.dumps(one)), fingerprint(plan(TABLE.format(""), cities=asked))) == []
    other = fingerprint(plan(TABLE.format("SEMI"), cities=cities))
    assert any("were joined with other tables" in why for why in compare(other, one))


def test_a_table_that_is_asked_may_have_changed_when_a_task_is_run_again() -> None:
    """The plan warns where partials of two attempts may differ."""
    cities = SourceInput(INPUTS["untimed"].schema, role="table")
    asked = replace(cities, caching=Caching("incremental"))

    assert "cache: full" in explain(plan(TABLE.format(""), True, cities=asked))
    assert "cache: full" not in explain(plan(TABLE.format(""), True, cities=cities))
    assert "a row counts as it met the tables" in explain(plan(TABLE.format(""), cities=cities))
