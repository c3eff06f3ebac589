"""Estimates are the textbook's, and what is chosen is no dearer than anything else that was tried."""

from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given

from joinlib.path.choice import by_paths, by_stages, price
from joinlib.path.estimate import Prices, Sizes, StagePlan, inputs_of, merged_sizes, path_work, staged
from joinlib.path.graph import JoinGraph, possible_arrangements
from joinlib.path.search import cheapest_paths
from tests.unit.path.graphs import QUERIES, join_graphs, sizes, spoken

PRICES = Prices()
FOUR = JoinGraph(4, (frozenset(range(4)),))


def even(graph: JoinGraph, rows: float, keys: float) -> Sizes:
    distinct = tuple(
        tuple(keys if one in members else 0.0 for members in graph.classes) for one in range(graph.inputs)
    )
    return Sizes(graph, (rows,) * graph.inputs, (50,) * graph.inputs, distinct)


def test_tuples_of_a_set() -> None:
    """10 rows of 5 keys in each: 20 pairs, 40 triples, whichever they are."""
    known = even(FOUR, 10, 5)

    assert [known.tuples(range(n)) for n in (1, 2, 3, 4)] == [10, 20, 40, 80]
    assert sizes("Q3").tuples([0, 1]) == pytest.approx(150_000 * 0.2 * 1_500_000 * 0.49 / 150_000)


def test_conditions_let_a_share_of_tuples_through() -> None:
    """Wherever all that they read is joined; of a part they are known already."""
    known = replace(even(FOUR, 10, 5), conditions=((frozenset((0, 2)), 0.5), (frozenset((0, 1, 3)), 0.1)))

    assert [known.tuples(of) for of in ([0, 1], [0, 2], [0, 1, 3], range(4))] == [20, 10, 4, 4]
    merged = merged_sizes(known, [frozenset((0, 2)), frozenset((1,)), frozenset((3,))])
    assert merged.rows == (10, 10, 10)
    assert merged.conditions == ((frozenset((0, 1, 2)), 0.1),)
    assert merged.tuples(range(3)) == pytest.approx(4)


def test_columns_of_one_key_hang_together() -> None:
    """Q9: 6 million lineitems have the 800 000 pairs of supplier and part that partsupp has, 7.5 lineitems each."""
    known = sizes("Q9")
    names = list(QUERIES["Q9"][0])
    lineitem, partsupp = names.index("lineitem"), names.index("partsupp")

    assert known.keys(lineitem, (0, 1)) == known.keys(partsupp, (0, 1)) == 800_000
    assert known.tuples([lineitem, partsupp]) == 6_000_000
    pairs = [a for a in possible_arrangements(known.graph) if a.key == (0, 1)]
    costs = known.costs(pairs, PRICES)
    of_lineitem = [a.input for a in pairs].index(lineitem)
    assert costs.rate[partsupp][of_lineitem] * costs.per_hit[partsupp][of_lineitem] == 7.5


def test_parts_have_what_they_join_to() -> None:
    """Customer and nation as one part: their classes with others stay, the one between them has one member."""
    known = sizes("Q10")  # customer, orders, lineitem, nation; custkey, orderkey, nationkey
    merged = merged_sizes(known, [frozenset([1]), frozenset([2]), frozenset([0, 3])])

    assert merged.graph == JoinGraph(3, (frozenset([0, 2]), frozenset([0, 1]), frozenset([2])))
    assert merged.rows == (57_000, 1_500_000, 150_000)
    assert merged.widths == (60, 60, 120)
    assert merged.tuples([0, 2]) == known.tuples([0, 1, 3])


def test_one_key_is_what_tradeoff_says() -> None:
    """A row in each of four inputs: an n-way join makes 7 1/3 queries and 4 1/3 matches for a key, of which 1 is a result."""
    plan = by_paths(even(FOUR, 1, 1), PRICES)
    assert plan is not None
    assert len(plan.arrangements) == 4
    assert plan.work.queries == pytest.approx(4 * (1 + 1 / 2 + 1 / 3))
    assert plan.work.matches == pytest.approx(4 * (1 / 2 + 1 / 3 + 1 / 4))
    assert plan.work.levels == 1
    assert plan.work.exchanged == 0
    assert by_stages(even(FOUR, 1, 1), PRICES) == staged(even(FOUR, 1, 1), [0, 1, 2, 3])


@pytest.mark.parametrize("query", QUERIES)
def test_queries_of_tpch(query: str) -> None:
    """Both plans join everything; paths store inputs only, each at least once."""
    known = sizes(query)
    paths, stages = by_paths(known, PRICES), by_stages(known, PRICES)
    assert paths is not None
    assert stages is not None
    assert stages.inputs == frozenset(range(known.graph.inputs))
    assert {a.input for a in paths.arrangements} == stages.inputs
    assert [path.start for path in paths.paths] == sorted(stages.inputs)


def test_q3() -> None:
    """As in the design: orders are stored by both keys."""
    plan = by_paths(sizes("Q3"), PRICES)
    assert plan is not None
    assert [spoken("Q3", a) for a in plan.arrangements] == [
        "customer by custkey", "orders by custkey", "orders by orderkey", "lineitem by orderkey"
    ]  # fmt: skip
    assert plan.work.levels == 2


def test_who_stores_less() -> None:
    """Where a join finds few rows, stages store little more than the inputs; where it finds many, paths store far less."""
    chain = JoinGraph(3, (frozenset([0, 1]), frozenset([1, 2])))
    rows, all_keys = 100_000.0, (100_000.0, 100_000.0)
    filtered = Sizes(chain, (1_000.0, rows, rows), (50, 50, 50), ((1_000.0, 0.0), all_keys, (0.0, rows)))
    for known, less in ((filtered, "stages"), (even(chain, rows, 1_000.0), "paths")):
        paths, stages = by_paths(known, PRICES), by_stages(known, PRICES)
        assert paths is not None
        assert stages is not None
        assert (paths.work.bytes < stages.work.bytes) == (less == "paths")
        assert (price(paths.work, PRICES) < price(stages.work, PRICES)) == (less == "paths")


@given(join_graphs(most=4))
def test_fewer_arrangements_are_no_dearer(graph: JoinGraph) -> None:
    """Than all that could be wanted; where state costs nothing, none is left out for its bytes alone."""
    known = even(graph, 100, 20)
    every = possible_arrangements(graph)
    paths = cheapest_paths(graph, every, known.costs(every, PRICES))
    plan = by_paths(known, PRICES)
    assert paths is not None
    assert plan is not None
    assert price(plan.work, PRICES) <= price(path_work(known, every, paths), PRICES) * (1 + 1e-9)
    assert {p.arrangement for path in plan.paths for p in path.probes} == set(range(len(plan.arrangements)))


@given(join_graphs(most=4))
def test_stages_are_no_dearer_than_left_deep_ones(graph: JoinGraph) -> None:
    known = even(graph, 100, 20)
    best = by_stages(known, PRICES)
    assert best is not None
    part: StagePlan | int = 0
    while inputs_of(part) != frozenset(range(graph.inputs)):
        held = graph.held(inputs_of(part))
        more = next(o for o in range(graph.inputs) if o not in inputs_of(part) and graph.of(o) & held)
        part = staged(known, [part, more])
    assert isinstance(part, StagePlan)
    assert price(best.work, PRICES) <= price(part.work, PRICES) * (1 + 1e-9)


def test_state_is_weighed_against_time() -> None:
    """Q5: where bytes are dear, lineitem is stored once, and paths take longer; that is less than stages store."""
    known = sizes("Q5")
    cheap, dear, stages = (
        by_paths(known, PRICES),
        by_paths(known, PRICES, byte=1e-7),
        by_stages(known, PRICES),
    )
    assert cheap is not None
    assert dear is not None
    assert stages is not None
    lineitem = list(QUERIES["Q5"][0]).index("lineitem")
    assert [sum(a.input == lineitem for a in plan.arrangements) for plan in (cheap, dear)] == [2, 1]
    assert dear.work.bytes < stages.work.bytes < cheap.work.bytes
    assert dear.work.seconds(PRICES) > cheap.work.seconds(PRICES)


def test_time_of_a_plan() -> None:
    """Each level is paid in each batch."""
    plan = by_paths(sizes("Q3"), PRICES)
    assert plan is not None
    assert plan.work.seconds(PRICES, 100) - plan.work.seconds(PRICES) == pytest.approx(100 * 2 * PRICES.level)
    assert replace(plan.work, levels=9).seconds(PRICES) == plan.work.seconds(PRICES)


def test_what_hangs_apart_has_no_plan() -> None:
    known = Sizes(JoinGraph(2, ()), (1.0, 1.0), (8, 8), ((), ()))

    assert by_stages(known, PRICES) is None
    assert by_paths(known, PRICES) is None


def test_many_inputs_are_first_made_fewer() -> None:
    """A chain of 12, whose ends have few rows: all are joined, and the ends are not joined last."""
    classes = tuple(frozenset((at, at + 1)) for at in range(11))
    rows = tuple(10.0 if at in (0, 11) else 1e6 for at in range(12))
    distinct = tuple(tuple(1e5 if at in c else 0.0 for c in classes) for at in range(12))
    chain = Sizes(JoinGraph(12, classes), rows, (50,) * 12, distinct)
    plan = by_stages(chain, PRICES)

    assert plan is not None
    assert plan.inputs == frozenset(range(12))
    assert sorted(_inputs(plan)) == list(range(12))
    assert {frozenset((0, 1)), frozenset((10, 11))} <= _sets(plan)
    assert price(plan.work, PRICES) < 11


def _inputs(plan: StagePlan | int) -> list[int]:
    return [plan] if isinstance(plan, int) else [one for part in plan.parts for one in _inputs(part)]


@given(join_graphs(3, 6))
def test_stages_are_the_cheapest_of_all(graph: JoinGraph) -> None:
    """No dearer than whatever is made by uniting parts in some order, and any set may be forbidden."""
    known = even(graph, 100, 10)
    best = by_stages(known, PRICES)
    assert best is not None
    for plan in _all_binary(known, list(range(graph.inputs))):
        assert price(best.work, PRICES) <= price(plan.work, PRICES) * (1 + 1e-9)
    pair = frozenset((0, 1))
    other = by_stages(known, PRICES, allowed=lambda of: of != pair)
    assert other is None or pair not in _sets(other)


def _all_binary(known: Sizes, parts: list[StagePlan | int]) -> list[StagePlan]:
    if len(parts) == 1 and isinstance(parts[0], StagePlan):
        return [parts[0]]
    found = []
    for one, two in combinations(range(len(parts)), 2):
        left, right = (known.graph.held(inputs_of(parts[at])) for at in (one, two))
        if left & right:
            rest = [part for at, part in enumerate(parts) if at not in (one, two)]
            found += _all_binary(known, [*rest, staged(known, [parts[one], parts[two]])])
    return found


def _sets(plan: StagePlan) -> set[frozenset[int]]:
    below = [_sets(part) for part in plan.parts if isinstance(part, StagePlan)]
    return {plan.inputs}.union(*below)
