"""Two-Step-Convert: what becomes one multi-way join, on the paper's queries and on odd plans."""

import pytest

from joinlib.plan.tsc import HASH, JOIN, MULTI, PROJECT, Group, Node, convert, groups, joins, projected, split


def scan(name: str) -> Node:
    return Node("scan", (), name)


def chain(*inputs: str | Node, project: bool = True) -> Node:
    """Joined from left to right, as Flink plans it: an exchange below each join, what is no longer needed dropped above it."""
    first, *rest = [scan(i) if isinstance(i, str) else i for i in inputs]
    for one in rest:
        joined = Node(JOIN, (Node(HASH, (first,)), Node(HASH, (one,))))
        first = Node(PROJECT, (joined,)) if project else joined
    return first


def aggregate(node: Node, name: str) -> Node:
    return Node("aggregate", (Node(HASH, (node,)),), name)


def names(group: Group) -> list[str]:
    return [_name(node) for node in group.inputs]


def _name(node: Node) -> str:
    return node.label if node.label or not node.inputs else _name(node.inputs[0])


_REVENUE = aggregate(scan("lineitem"), "revenue")  # Q15's view is read twice
_VALUE = chain("partsupp", "supplier", "nation")  # as Q11's join is

QUERIES = {
    "Q2": (
        chain(
            "part", "partsupp", "supplier", "nation", "region",
            aggregate(chain("partsupp", "supplier", "nation", "region"), "min"),
        ),
        [["part", "partsupp", "supplier", "nation", "region", "min"], ["partsupp", "supplier", "nation", "region"]],
    ),
    "Q3": (aggregate(chain("customer", "orders", "lineitem"), "sum"), [["customer", "orders", "lineitem"]]),
    "Q5": (
        aggregate(chain("customer", "orders", "lineitem", "supplier", "nation", "region"), "sum"),
        [["customer", "orders", "lineitem", "supplier", "nation", "region"]],
    ),
    "Q7": (
        aggregate(chain("supplier", "lineitem", "orders", "customer", "n1", "n2"), "sum"),
        [["supplier", "lineitem", "orders", "customer", "n1", "n2"]],
    ),
    "Q8": (
        aggregate(chain("part", "lineitem", "supplier", "orders", "customer", "n1", "region", "n2"), "sum"),
        [["part", "lineitem", "supplier", "orders", "customer", "n1", "region", "n2"]],
    ),
    "Q9": (
        aggregate(chain("part", "lineitem", "supplier", "partsupp", "orders", "nation"), "sum"),
        [["part", "lineitem", "supplier", "partsupp", "orders", "nation"]],
    ),
    "Q10": (
        aggregate(chain("customer", "orders", "lineitem", "nation"), "sum"),
        [["customer", "orders", "lineitem", "nation"]],
    ),
    "Q11": (
        chain(aggregate(_VALUE, "value"), aggregate(_VALUE, "total")),
        [["value", "total"], ["partsupp", "supplier", "nation"]],
    ),
    "Q15": (
        chain("supplier", _REVENUE, aggregate(_REVENUE, "max")),
        [["supplier", "revenue", "max"]],
    ),
    "Q18": (
        aggregate(chain("customer", "orders", aggregate(scan("lineitem"), "large"), "lineitem"), "sum"),
        [["customer", "orders", "large", "lineitem"]],
    ),
    "Q21": (
        aggregate(chain("supplier", "l1", "orders", "nation", "l2", "l3"), "count"),
        [["supplier", "l1", "orders", "nation", "l2", "l3"]],
    ),
}  # fmt: skip


@pytest.mark.parametrize("query", QUERIES)
def test_the_queries_of_the_paper(query: str) -> None:
    """Each of table 3 converts: its binary joins are gone, and a multi-way join reads what they read."""
    plan, expected = QUERIES[query]

    assert [names(g) for g in groups(plan, projected)] == expected
    converted = list(_all(convert(plan)))
    assert [[_name(i) for i in n.inputs] for n in converted if n.kind == MULTI] == expected
    assert not any(n.kind == JOIN for n in converted)


def _all(root: Node) -> list[Node]:
    found = [root]
    for node in found:
        found += [i for i in node.inputs if i not in found]
    return found


def test_projections_need_their_pattern() -> None:
    """Algorithm 2's own pattern sees joins and exchanges only; the extended one of section 4.3 sees through projections."""
    plain, mixed = chain("a", "b", "c", project=False), chain("a", "b", "c")

    assert [names(g) for g in groups(plain, joins)] == [["a", "b", "c"]]
    assert [names(g) for g in groups(mixed, joins)] == [["a", "c"], ["a", "b"]]
    assert [names(g) for g in groups(mixed, projected)] == [["a", "b", "c"]]


def test_a_join_that_two_groups_read_is_its_own() -> None:
    """Only a node whose outputs are all in one group goes into it (canBeInSameGroupWithOutputs)."""
    shared = chain("a", "b")
    plan = Node("union", (chain(shared, "c"), chain(shared, "d")))

    assert [names(g) for g in groups(plan)] == [["a", "c"], ["a", "d"], ["a", "b"]]
    assert len([n for n in _all(convert(plan)) if n.kind == MULTI]) == 3


def test_a_join_that_one_group_reads_twice_counts_twice() -> None:
    """Rows of (a, b, c) meet rows of (a, b, d): other rows of a and b each time."""
    shared = chain("a", "b")
    plan = Node(JOIN, (chain(shared, "c"), chain(shared, "d")))

    assert [names(g) for g in groups(plan)] == [["a", "b", "c", "a", "b", "d"]]


def test_bushy_joins_are_one_group() -> None:
    """The pattern asks what a node is, not on which side it stands."""
    assert [names(g) for g in groups(chain(chain("a", "b"), chain("c", "d")))] == [["a", "b", "c", "d"]]


def test_what_is_outside_of_groups_stays() -> None:
    """A plan without joins is the plan, node for node."""
    plan = aggregate(scan("a"), "sum")

    assert convert(plan) is plan
    assert groups(plan) == ()


def test_a_group_is_cut_where_keys_differ() -> None:
    """The second pass: each part keeps the exchanges between its own joins, and reads the parts below."""
    lower = chain("a", "b", "c")
    upper = chain(lower, "d", "e")
    keys = {node: "low" if node in _all(lower) else "high" for node in _all(upper) if node.kind == JOIN}
    (group,) = groups(upper)
    high, low = split(group, lambda one, two: keys[one] == keys[two])

    assert names(group) == ["a", "b", "c", "d", "e"]
    assert names(low) == ["a", "b", "c"]
    assert [_name(i) for i in high.inputs[1:]] == ["d", "e"]
    assert low.root in _all(high.inputs[0])
    assert split(group, lambda *_: True)[0].inputs == group.inputs
