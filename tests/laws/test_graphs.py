"""Join graphs at random: two to six inputs, trees and cycles, joins of every kind, several key classes; DuckDB answers."""

from itertools import combinations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.laws.cases import Case, cases
from tests.laws.oracle import Condition, Query, Tree, differ, missing, next_to, same, unsure
from tests.laws.test_stages import holds, planned

INNER = ("inner",)
MIXED = ("inner", "inner", "inner", "left", "right", "full", "semi", "anti")


@st.composite
def edges(draw: st.DrawFn, left: str, right: str) -> Condition:
    """An equality: of two keys, or of a key and what is computed of the other."""
    column = draw(st.sampled_from("kkjjvv+"))
    if column == "+":
        return next_to(f"{left}.v", f"{right}.v")
    return same(f"{left}.{column}", f"{right}.{column}")


@st.composite
def graphs(draw: st.DrawFn, kinds: tuple[str, ...], least: int = 2, most: int = 6) -> Query:
    """Each input is equal in something to one before it; more equalities, in ON or WHERE, close cycles."""
    names = "abcdef"[: draw(st.integers(least, most))]
    tree: Tree = "a"
    seen = "a"  # those whose columns can be named
    for name in names[1:]:
        on = [draw(edges(draw(st.sampled_from(seen)), name))]
        if draw(st.integers(0, 2)) == 0:
            on.append(draw(edges(draw(st.sampled_from(seen)), name)))
        if draw(st.integers(0, 4)) == 0:
            on.append(differ(f"{draw(st.sampled_from(seen))}.v", f"{name}.v"))
        kind = draw(st.sampled_from(kinds))
        tree = (kind, tree, name, tuple(on))
        seen += "" if kind in ("semi", "anti") else name
    where: list[Condition] = []
    pairs = list(combinations(seen, 2))
    if pairs and draw(st.integers(0, 2)) == 0:
        where.append(draw(edges(*draw(st.sampled_from(pairs)))))
    if kinds != INNER and draw(st.integers(0, 5)) == 0:
        where.append(missing(f"{draw(st.sampled_from(seen))}.v"))
    return Query(tuple(f"{x}.{c}" for x in seen for c in "vt"), tree, tuple(where))


@st.composite
def between(draw: st.DrawFn) -> Query:
    """Inner joins below and above one or two others, each of which reads one input of those below."""
    tree: Tree = ("inner", "a", "b", (draw(edges("a", "b")),))
    seen = "ab"
    for name in "cd"[: draw(st.integers(1, 2))]:
        kind, one = draw(st.sampled_from(("left", "left", "semi", "anti"))), draw(st.sampled_from("ab"))
        on = (draw(edges(one, name)), *draw(st.sampled_from(((), (differ(f"{one}.v", f"{name}.v"),)))))
        tree = (kind, tree, name, on)
        seen += name if kind == "left" else ""
    tree = ("inner", tree, "e", (draw(edges(draw(st.sampled_from(seen)), "e")),))
    pairs = [(f"{x}.v", f"{y}.v") for x, y in product("ab", f"{seen}e"[2:])]
    where = [unsure(*draw(st.sampled_from(pairs))) for _ in range(draw(st.sampled_from((0, 1, 2))))]
    return Query(tuple(f"{x}.{c}" for x in f"{seen}e" for c in "vt"), tree, tuple(where))


@pytest.mark.slow
@settings(max_examples=30)
@given(cases(graphs(INNER, 3), cuts=(2, 5), units=(1, 4), most=8, least=3))
def test_inner_joins(case: Case) -> None:
    """Cycles among them: an equality that an earlier stage cannot decide is decided in a later one."""
    holds(case, planned(case))


@pytest.mark.slow
@settings(max_examples=40)
@given(cases(graphs(MIXED), cuts=(1, 3), units=(1, 4), most=6, least=2))
def test_joins_of_every_kind(case: Case) -> None:
    """Inner joins below, between and above outer ones."""
    holds(case, planned(case))


@pytest.mark.slow
@settings(max_examples=30)
@given(cases(between(), cuts=(1, 3), units=(1, 4), most=6, least=2))
def test_joins_between_inner_ones(case: Case) -> None:
    """Where it makes an operator larger, these go below the inner joins."""
    holds(case, planned(case))
