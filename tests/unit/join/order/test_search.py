"""The search finds what trying every sequence finds; its peers do what their papers say."""

from collections.abc import Collection, Iterator
from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinlib.join.order.cost import CostModel, Pair, hashed
from joinlib.join.order.policy import RULES, SEARCHED, choose, star
from joinlib.join.order.search import Sequence, exact, possible


@st.composite
def models(draw: st.DrawFn, least: int = 2, most: int = 5) -> CostModel:
    n = draw(st.integers(least, most))
    seconds = st.sampled_from([0.0, 1.0, 2.0, 7.0, 1e3])

    def table(of: list[float]) -> tuple[tuple[float, ...], ...]:
        return tuple(tuple(draw(st.sampled_from(of)) for _ in range(n)) for _ in range(n))

    return CostModel(
        tuple(draw(seconds) for _ in range(n)),
        draw(seconds),
        table([0.0, 0.1, 0.5, 1.0]),
        table([1.0, 1.5, 20.0]),
        draw(st.booleans()),
    )


@st.composite
def graphs(draw: st.DrawFn, n: int) -> frozenset[Pair]:
    """Connected: a random tree, and perhaps more edges; each leads both ways."""
    edges = {(draw(st.integers(0, i - 1)), i) for i in range(1, n)}
    edges |= draw(st.sets(st.sampled_from(list(permutations(range(n), 2))), max_size=3))
    return frozenset(edges | {(b, a) for a, b in edges})


def sequences(edges: Collection[Pair], start: int) -> Iterator[Sequence]:
    """Every sequence that begins at `start` and reaches all inputs (algorithm 4)."""
    inputs = {i for edge in edges for i in edge} | {start}

    def walk(bound: frozenset[int], done: Sequence) -> Iterator[Sequence]:
        if len(bound) == len(inputs):
            yield done
        for edge in possible(edges, bound):
            yield from walk(bound | {edge[1]}, (*done, edge))

    return walk(frozenset([start]), ())


@given(st.data())
def test_exact_is_brute_force(data: st.DataObject) -> None:
    """On any join graph: no sequence of algorithm 4 is cheaper than that of the search."""
    model = data.draw(models())
    edges = data.draw(graphs(len(model.query)))
    start = data.draw(st.integers(0, len(model.query) - 1))
    every = list(sequences(edges, start))
    found = exact(model, edges, start)

    assert found in every and model.cost(found) == pytest.approx(min(map(model.cost, every)))


@given(models(least=3))
def test_one_key_class(model: CostModel) -> None:
    """Sequences of a star are the permutations of the other inputs; auto takes the cheapest, and no peer a cheaper one."""
    n = len(model.query)
    for start in range(n):
        edges = star(start, n)
        others = [i for i in range(n) if i != start]
        every = {tuple((start, i) for i in p) for p in permutations(others)}

        assert set(sequences(edges, start)) == every
        least = min(map(model.cost, every))
        assert model.cost(choose("auto", model, edges, start)) == pytest.approx(least)
        for rule in RULES.values():
            assert rule.choose(model, edges, start) in every


@given(models(), st.data())
def test_cost(model: CostModel, data: st.DataObject) -> None:
    """Equation 8 as a sum over the steps, each weighted by the chance that it is reached (and by the tuples that reach it)."""
    n = len(model.query)
    sequence = [(0, i) for i in data.draw(st.permutations(range(1, n)))]
    total, reach = 0.0, 1.0
    for l, r in sequence:  # noqa: E741
        total += reach * (model.query[r] + model.rate[l][r] * model.match * model.per_hit[l][r])
        reach *= model.rate[l][r] * (model.per_hit[l][r] if model.fanned else 1.0)

    assert model.cost(sequence) == pytest.approx(total)


ONES = ((1.0,) * 4,) * 4
EVEN = CostModel((1.0,) * 4, 1.0, ONES, ONES)


def order(name: str, model: CostModel, edges: Collection[Pair] = star(0, 4)) -> list[int]:
    return [r for _, r in RULES[name].choose(model, edges, 0)]


@pytest.mark.parametrize("name", RULES)
def test_ties(name: str) -> None:
    """Where nothing speaks for one order, all keep that of the inputs."""
    assert order(name, EVEN) == [1, 2, 3]


def test_peers_differ() -> None:
    """Each looks at its own figure: the match rate, the cost of the next step, or all that follows."""
    rate = ((1.0, 0.5, 0.4, 1.0),) * 4
    per_hit = ((1.0, 1.0, 50.0, 1.0),) * 4
    model = replace(EVEN, query=(1.0, 2.0, 1.0, 0.5), rate=rate, per_hit=per_hit)

    assert order("fixed", model) == [1, 2, 3]
    assert order("selectivity", model) == [2, 1, 3]  # 0.4 < 0.5 < 1
    assert order("greedy", model) == [3, 1, 2]  # 0.5 + 1 < 2 + 0.5 < 1 + 20
    assert order("auto", model) == [1, 3, 2]  # what passes 1 is halved before 3 and the 50 of 2


def test_many_inputs() -> None:
    """Beyond the limit of the search, auto is greedy."""
    n = SEARCHED + 1
    table = tuple(tuple(1.0 / (1 + r) for r in range(n)) for _ in range(n))
    model = CostModel((1.0,) * n, 1.0, table, ((1.0,) * n,) * n)
    edges = star(0, n)

    assert choose("auto", model, edges, 0) == choose("greedy", model, edges, 0)


def test_query_cost() -> None:
    """Equation 5."""
    assert hashed(0, 8) == 1 and hashed(8, 8) == 1.5 and hashed(8, 8, 3) == 3.5
