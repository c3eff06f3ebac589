"""Two-Step-Convert finds the trees of joins of a query, those of the paper's table 3 in their own texts."""

import pytest

from joinlib.plan.build import Request
from joinlib.plan.options import JoinOptions
from joinlib.plan.source import SourceInput
from joinlib.plan.tsc import JoinGroup, convert, drawn, groups, joins, projected
from joinlib.spec import ddl
from joinlib.sql.blocks import blocks
from joinlib.sql.logical import PlanKind, PlanNode, every_node, logical
from tests.queries.corpus import query, schemas


def scan(label: str) -> PlanNode:
    return PlanNode("scan", (), label)


def chain(*parts: str | PlanNode, kind: PlanKind = "join", project: bool = True) -> PlanNode:
    """Left-deep joins, each under a projection but the last."""
    first, *rest = (scan(p) if isinstance(p, str) else p for p in parts)
    for at, part in enumerate(rest):
        first = PlanNode(kind, (first, part))
        if project and at < len(rest) - 1:
            first = PlanNode("project", (first,))
    return first


def names(group: JoinGroup) -> list[str]:
    return [_name(node) for node in group.inputs]


def _name(node: PlanNode) -> str:
    return node.label if node.kind == "scan" else f"{node.kind} {node.label}".strip()


def read(sql: str) -> PlanNode:
    """The logical graph of a query over TPC-H."""
    inputs = {
        table: SourceInput(ddl.parse(", ".join(" ".join(column) for column in columns)))
        for table, columns in schemas("tpch").items()
    }
    return logical(blocks(sql, Request(inputs, JoinOptions()).tables))


TABLE_3 = {
    "q2": [
        ["part", "supplier", "partsupp", "nation", "region", "group $q1"],
        ["partsupp_2", "supplier_2", "nation_2", "region_2"],
    ],
    "q3": [["customer", "orders", "lineitem"]],
    "q5": [["customer", "orders", "lineitem", "supplier", "nation", "region"]],
    "q7": [["supplier", "lineitem", "orders", "customer", "n1", "n2"]],
    "q8": [["part", "supplier", "lineitem", "orders", "customer", "n1", "n2", "region"]],
    "q9": [["part", "supplier", "lineitem", "partsupp", "orders", "nation"]],
    "q10": [["customer", "orders", "lineitem", "nation"]],
    "q11": [
        ["group $q1", "group $q2"],
        ["partsupp", "supplier", "nation"],
        ["partsupp_2", "supplier_2", "nation_2"],
    ],
    "q15": [["supplier", "group $q1", "group $q2"]],
    "q18": [["customer", "orders", "lineitem"]],
    "q21": [["supplier", "l1", "orders", "nation"]],
}


@pytest.mark.parametrize("name", TABLE_3)
def test_the_queries_of_table_3(name: str) -> None:
    """Each in its own words converts: its binary joins are gone, and one operator of three or more inputs is there."""
    plan = read(query(f"tpch-{name}").streamed)
    found = sorted(map(names, groups(plan)))

    assert found == sorted(TABLE_3[name])
    after = list(every_node(convert(plan)))
    assert not any(node.kind == "join" for node in after)
    assert sorted(len(node.inputs) for node in after if node.kind == "multi") == sorted(map(len, found))
    assert max(map(len, found)) >= 3


def test_edges_stay_above_the_joins() -> None:
    """Q21: EXISTS and NOT EXISTS are joins of their own kind, which read the operator."""
    plan = convert(read(query("tpch-q21").streamed))
    (anti,) = (node for node in every_node(plan) if node.kind == "anti")

    assert [node.kind for node in anti.inputs] == ["semi", "scan"]
    assert [node.kind for node in anti.inputs[0].inputs] == ["multi", "scan"]


def test_projections_need_their_pattern() -> None:
    """Algorithm 2's own pattern sees joins only; the one of section 4.3 sees through projections."""
    plain, mixed = chain("a", "b", "c", project=False), chain("a", "b", "c")

    assert [names(g) for g in groups(plain, joins)] == [["a", "b", "c"]]
    assert [names(g) for g in groups(mixed, joins)] == [["project", "c"], ["a", "b"]]
    assert [names(g) for g in groups(mixed, projected)] == [["a", "b", "c"]]


def test_a_join_that_two_groups_read_is_its_own() -> None:
    """Only a node whose outputs are all in one group goes into it (canBeInSameGroupWithOutputs)."""
    shared = chain("a", "b")
    plan = PlanNode("union", (chain(shared, "c"), chain(shared, "d")))
    converted = convert(plan)
    one, two = converted.inputs

    assert [names(g) for g in groups(plan)] == [["join", "c"], ["join", "d"], ["a", "b"]]
    assert one.inputs[0] is two.inputs[0]


def test_a_join_that_one_group_reads_twice_is_its_own() -> None:
    """It is computed once; as a member its inputs would be read twice."""
    shared = chain("a", "b")
    plan = PlanNode("join", (chain(shared, "c"), chain(shared, "d")))

    assert [names(g) for g in groups(plan)] == [["join", "c", "join", "d"], ["a", "b"]]


def test_bushy_joins_are_one_group() -> None:
    assert [names(g) for g in groups(chain(chain("a", "b"), chain("c", "d")))] == [["a", "b", "c", "d"]]


def test_other_joins_end_a_group() -> None:
    """Above and below a LEFT JOIN there are two groups."""
    plan = chain(chain(chain("a", "b"), "c", kind="left"), "d")

    assert [names(g) for g in groups(plan)] == [["left", "d"], ["a", "b"]]


def test_what_is_outside_of_groups_stays() -> None:
    """A plan without joins is the plan, node for node."""
    plan = PlanNode("group", (scan("a"),), "sum")

    assert convert(plan) is plan
    assert groups(plan) == ()


def test_a_drawing() -> None:
    """What `plan` prints before and after; a node of two readers is drawn once."""
    shared = chain("a", "b")
    plan = PlanNode("union", (chain(shared, "c"), shared))

    assert list(drawn(convert(plan))) == [
        "union", "  multi", "    multi", "      scan a", "      scan b", "    scan c", "  multi (as above)",
    ]  # fmt: skip
