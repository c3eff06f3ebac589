"""The search finds what trying every path finds; the equations are those of the paper."""

import math
from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinlib.join.order.policy import star
from joinlib.path.cost import FILTERED, PathCosts, SearchedRun, search_cost
from joinlib.path.graph import (
    Arrangement,
    JoinGraph,
    Path,
    Probe,
    every_path,
    next_probes,
    possible_arrangements,
)
from joinlib.path.search import cheapest_few, cheapest_paths, search, searchable, stepwise
from tests.unit.path.graphs import costs, join_graphs


@given(st.data())
def test_the_search_is_brute_force(data: st.DataObject) -> None:
    """Algorithm 3 over algorithm 4: no path is cheaper, whichever arrangements there are and however many legs it may have."""
    graph = data.draw(join_graphs())
    every = possible_arrangements(graph)
    arrangements = [a for a in every if data.draw(st.integers(0, 5))]
    model = data.draw(costs(graph.inputs, arrangements))
    legs = data.draw(st.sampled_from([None, 1, 2, 3]))
    find = search(graph, arrangements, model, legs)
    for start in range(graph.inputs):
        paths = every_path(graph, arrangements, start)
        allowed = [p for p in paths if legs is None or len(p.legs(arrangements)) <= legs]
        found = find(start)
        if found is None:
            assert not allowed
            continue
        assert found in allowed
        least = min(model.cost(p, arrangements) for p in allowed)
        assert model.cost(found, arrangements) == pytest.approx(least)


@given(st.data())
def test_the_few_cheapest_are_those_of_all(data: st.DataObject) -> None:
    """In the order of their cost, each once, and no other path is cheaper than the last of them."""
    graph = data.draw(join_graphs(most=4))
    arrangements = possible_arrangements(graph)
    model = data.draw(costs(graph.inputs, arrangements))
    most, legs = data.draw(st.integers(1, 6)), data.draw(st.sampled_from([None, 2]))
    every = [
        p for p in every_path(graph, arrangements, 0) if legs is None or len(p.legs(arrangements)) <= legs
    ]
    found = cheapest_few(graph, arrangements, model, 0, most, legs)
    least = sorted(model.cost(path, arrangements) for path in every)[:most]

    assert len(set(found)) == len(found)
    assert set(found) <= set(every)
    assert [model.cost(path, arrangements) for path in found] == pytest.approx(least)


@given(st.data())
def test_one_key(data: st.DataObject) -> None:
    """A star of one class: paths are the permutations of the other inputs, and the row's own key asks all of them."""
    n = data.draw(st.integers(2, 5))
    graph, arrangements = star(n).graph, star(n).arrangements
    model = data.draw(costs(n, arrangements))
    for start in range(n):
        others = [i for i in range(n) if i != start]
        every = {Path(start, tuple(Probe(start, i) for i in p)) for p in permutations(others)}
        found = search(graph, arrangements, model)(start)

        assert set(every_path(graph, arrangements, start)) == every
        assert found in every
        assert model.cost(found, arrangements) == pytest.approx(
            min(model.cost(path, arrangements) for path in every)
        )


@given(st.data())
def test_step_by_step(data: st.DataObject) -> None:
    """The greedy path is one of all, takes the least at each step, and is missing only where no path is short enough."""
    graph = data.draw(join_graphs(most=4))
    arrangements = possible_arrangements(graph)
    figures = {a: data.draw(st.integers(0, 3)) for a in range(len(arrangements))}
    legs = data.draw(st.sampled_from([None, 1, 2]))
    found = stepwise(graph, arrangements, lambda probe, _: figures[probe.arrangement], legs)(0)
    allowed = [
        path
        for path in every_path(graph, arrangements, 0)
        if legs is None or len(path.legs(arrangements)) <= legs
    ]
    if found is None:
        assert not allowed
        return
    assert found in allowed
    for at, probe in enumerate(found.probes if legs is None else ()):
        bound = found.visits(arrangements)[: at + 1]
        least = min(
            (figures[p.arrangement], p.arrangement) for p in next_probes(graph, arrangements, bound, 0)
        )
        assert (figures[probe.arrangement], probe.arrangement) == least


def test_too_many_sets_are_not_looked_at() -> None:
    """Up to 11 inputs of one key all sets are searched; from 12 on, also of chains, the greedy path is taken."""
    for n, all_of_them in ((7, True), (11, True), (12, False)):
        graph, arrangements = star(n).graph, star(n).arrangements
        rate = ((*(1.0 - i / 100 for i in range(n)),),) * n
        model = PathCosts(((1.0,) * n,) * n, 1.0, rate, ((1.0,) * n,) * n)
        greedy = stepwise(graph, arrangements, lambda probe, _: -probe.arrangement)

        assert searchable(graph, arrangements) == all_of_them
        assert search(graph, arrangements, model)(0) == greedy(0)
        assert len(cheapest_few(graph, arrangements, model, 0, 2)) == 1 + all_of_them
    for n, all_of_them in ((11, True), (12, False)):
        chain = JoinGraph(n, tuple(frozenset([i, i + 1]) for i in range(n - 1)))
        assert searchable(chain, possible_arrangements(chain)) == all_of_them


CHAIN = JoinGraph(3, (frozenset([0, 1]), frozenset([1, 2])))
FOUR = (Arrangement(0, (0,)), Arrangement(1, (0,)), Arrangement(1, (1,)), Arrangement(2, (1,)))
EVEN = PathCosts(((1.0,) * 4,) * 3, 1.0, ((1.0,) * 4,) * 3, ((1.0,) * 4,) * 3)
TO_BOTH = Path(1, (Probe(1, 0), Probe(1, 3)))


def test_equation_8() -> None:
    """Worked by hand: q + γ (αm μ + C), with C of the second probe 3 + 0.5 (2 · 4 + 0) = 7."""
    model = PathCosts(
        ((5.0, 0.0, 0.0, 3.0),) * 3,
        2.0,
        ((0.0,) * 4, (0.25, 0.0, 0.0, 0.5), (0.0,) * 4),
        ((4.0,) * 4,) * 3,
        fanned=False,
    )

    assert model.cost(TO_BOTH, FOUR) == 5 + 0.25 * (2 * 4 + 7)
    assert replace(model, fanned=True).cost(TO_BOTH, FOUR) == 5 + 0.25 * (2 * 4 + 4 * 7)
    assert replace(model, exchange=10.0).cost(TO_BOTH, FOUR) == 5 + 0.25 * (2 * 4 + 7 + 10)
    assert model.found(TO_BOTH) == (1.0, 2.0)


def test_equations_2_and_3() -> None:
    """A path without probes costs nothing."""
    assert EVEN.cost(Path(0, ()), FOUR) == 0


def test_equations_5_and_6() -> None:
    """Hash chains: c + κ / 2m a run. Sorted runs: log κ where the filter lets a probe pass, and a page from the disk."""
    assert search_cost([SearchedRun(8, 8)], 1.0) == 1.5
    assert search_cost([SearchedRun(8, 8)] * 3, 1.0) == 4.5
    assert search_cost([SearchedRun(1024)], 1.0, basic=0.0) == 10
    assert search_cost([SearchedRun(1024, cached=0.0)], 1.0, basic=0.0, read=50.0) == 60
    assert search_cost([SearchedRun(1024)], 0.0, basic=1.0) == pytest.approx(1 + FILTERED * 10)
    many = search_cost([SearchedRun(1024)] * 10, 1.0, basic=0.0)
    assert many == pytest.approx(10 * (0.1 + 0.9 * FILTERED) * math.log2(1024))
    large, small = (
        SearchedRun(3072, cached=0.5),
        SearchedRun(1024, 1024),
    )  # three quarters are found in the large one
    passes = 0.75 * 0.4 + (1 - 0.75 * 0.4) * FILTERED
    assert search_cost([large, small], 0.4, read=50.0) == pytest.approx(
        1 + passes * (math.log2(3072) + 25) + 1.5
    )


def test_what_finds_little_comes_first() -> None:
    """Orders ask the input in which half of them find nothing; a tie keeps the order of the inputs."""
    assert cheapest_paths(CHAIN, FOUR, EVEN) is not None
    rate = ((1.0,) * 4, (1.0, 1.0, 1.0, 0.5), (1.0,) * 4)
    for model, order in ((EVEN, (1, 0, 2)), (replace(EVEN, rate=rate), (1, 2, 0))):
        found = search(CHAIN, FOUR, model)(1)
        assert found is not None
        assert found.visits(FOUR) == order


def test_an_exchange_is_worth_a_detour() -> None:
    """a-b and a-d by 0, b-c by 1: c is left to the end so that tuples move once, although it finds less than d."""
    graph = JoinGraph(4, (frozenset([0, 1, 3]), frozenset([1, 2])))
    every = possible_arrangements(graph)
    c, d = every.index(Arrangement(2, (1,))), every.index(Arrangement(3, (0,)))
    line = [1.0] * len(every)
    line[c], line[d] = 0.1, 0.6
    model = PathCosts(((1.0,) * len(every),) * 4, 0.0, (tuple(line),) * 4, ((1.0,) * len(every),) * 4)
    orders = []
    for exchange in (0.0, 10.0):
        found = search(graph, every, replace(model, exchange=exchange))(0)
        assert found is not None
        orders.append(found.visits(every))

    assert orders == [(0, 1, 2, 3), (0, 3, 1, 2)]


def test_paths_may_be_missing() -> None:
    """Without orders by orderkey no path of lineitem begins; with one leg no path ends."""
    assert cheapest_paths(CHAIN, FOUR[:2] + FOUR[3:], EVEN) is None
    assert cheapest_paths(CHAIN, FOUR, EVEN, legs=1) is None
    assert [p.arrangement for p in next_probes(CHAIN, FOUR, [2], 2)] == [2]
