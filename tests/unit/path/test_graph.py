"""Paths reach every input once, by keys that their tuples hold; no other order does."""

from itertools import pairwise, permutations

import pytest
from hypothesis import given

from joinlib.path.graph import (
    Arrangement,
    JoinGraph,
    Path,
    Probe,
    every_path,
    next_probes,
    possible_arrangements,
    undecided,
)
from tests.unit.path.graphs import join_graphs

CHAIN = JoinGraph(3, (frozenset([0, 1]), frozenset([1, 2])))  # customer, orders, lineitem
FOUR = (Arrangement(0, (0,)), Arrangement(1, (0,)), Arrangement(1, (1,)), Arrangement(2, (1,)))


def test_the_chain_of_the_design() -> None:
    """Q3: orders are stored twice, the others once; each input has one path, and orders have two."""
    assert possible_arrangements(CHAIN) == FOUR
    paths = {start: [path.visits(FOUR) for path in every_path(CHAIN, FOUR, start)] for start in range(3)}

    assert paths == {0: [(0, 1, 2)], 1: [(1, 0, 2), (1, 2, 0)], 2: [(2, 1, 0)]}
    (of_lineitem,) = every_path(CHAIN, FOUR, 2)
    assert of_lineitem.legs(FOUR) == ((Probe(2, 2),), (Probe(1, 0),))


def test_inputs_of_one_key_are_one_leg() -> None:
    """The four tables of TPC-DS share a key: one arrangement each, one leg, and every order is a path."""
    graph = JoinGraph(4, (frozenset(range(4)),))
    arrangements = possible_arrangements(graph)
    paths = list(every_path(graph, arrangements, 0))

    assert arrangements == tuple(Arrangement(one, (0,)) for one in range(4))
    assert {path.visits(arrangements) for path in paths} == {(0, *p) for p in permutations((1, 2, 3))}
    assert all(len(path.legs(arrangements)) == 1 for path in paths)


def test_a_cycle_is_closed_by_what_the_key_leaves() -> None:
    """a-b by 0, b-c by 1, c-a by 2: whoever comes last is asked by one class, and the other is compared."""
    graph = JoinGraph(3, (frozenset([0, 1]), frozenset([1, 2]), frozenset([0, 2])))
    by_one = Arrangement(2, (1,))

    assert undecided(graph, by_one, [0, 1]) == (2,)
    assert undecided(graph, by_one, [1]) == ()
    assert undecided(graph, Arrangement(2, (1, 2)), [0, 1]) == ()


def test_two_classes_that_two_inputs_share_are_one_key() -> None:
    """Q9: partsupp is found by supplier and part together, which lineitem holds and part alone does not."""
    graph = JoinGraph(3, (frozenset([0, 1]), frozenset([0, 1, 2])))  # lineitem, partsupp, part
    both = Arrangement(1, (0, 1))

    assert both in possible_arrangements(graph)
    assert Arrangement(1, (0,)) in possible_arrangements(graph)  # for tuples that hold one of them
    assert list(next_probes(graph, [both], [0], 0)) == [Probe(0, 0)]
    assert list(next_probes(graph, [both], [2], 2)) == []
    assert list(next_probes(graph, [both], [0, 2], 2)) == [Probe(0, 0)]


@given(join_graphs())
def test_paths_reach_all(graph: JoinGraph) -> None:
    """With all arrangements there is a path from everywhere, and every path is sound."""
    arrangements = possible_arrangements(graph)
    assert graph.connected
    for start in range(graph.inputs):
        paths = list(every_path(graph, arrangements, start))
        assert paths
        assert len(set(paths)) == len(paths)
        for path in paths:
            _sound(graph, arrangements, path)


def _sound(graph: JoinGraph, arrangements: tuple[Arrangement, ...], path: Path) -> None:
    visits = path.visits(arrangements)
    assert sorted(visits) == list(range(graph.inputs))
    for at, probe in enumerate(path.probes):
        assert probe.asker in visits[: at + 1]
        assert graph.held(visits[: at + 1]).issuperset(arrangements[probe.arrangement].key)
    legs = path.legs(arrangements)
    assert tuple(probe for leg in legs for probe in leg) == path.probes
    for one, two in pairwise(legs):
        assert arrangements[one[-1].arrangement].key != arrangements[two[0].arrangement].key


def test_what_hangs_apart_is_told() -> None:
    assert not JoinGraph(3, (frozenset([0, 1]),)).connected


@pytest.mark.parametrize("inputs", [2, 3, 6])
def test_stars_of_several_keys(inputs: int) -> None:
    """A fact table with a key for each dimension is stored once for each of them, a dimension once."""
    graph = JoinGraph(inputs, tuple(frozenset([0, one]) for one in range(1, inputs)))

    assert len(possible_arrangements(graph)) == 2 * (inputs - 1)
