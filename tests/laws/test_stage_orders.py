"""The law of orders: inner joins by several keys give the same answer in whichever order they become stages."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joinlib.model.order import Shape, StageOrder
from joinlib.model.stage import Pipeline
from joinlib.plan import JoinOptions, SourceInput, pipeline
from joinlib.plan.order import Decide
from joinlib.sql.order import InnerGroup
from tests.laws.cases import SECOND, Case, cases
from tests.laws.test_graphs import INNER, MIXED, graphs
from tests.laws.test_stages import graphs as timed_graphs
from tests.laws.test_stages import holds


def drawn(random: Random) -> Decide:
    """Decide by chance: of what is left, some parts that share a key become one, until one is left."""

    def decide(group: InnerGroup, *_: object) -> StageOrder:
        graph = group.known.graph
        parts: list[tuple[Shape, frozenset[int]]] = [(n, graph.of(at)) for at, n in enumerate(group.names)]
        while len(parts) > 1:
            met = [[part for part in parts if key in part[1]] for key in range(len(graph.classes))]
            some = random.choice([sharing for sharing in met if len(sharing) > 1])
            some = random.sample(some, random.randint(2, len(some)))
            joined = tuple(shape for shape, _ in some), frozenset().union(*(held for _, held in some))
            parts = [*(part for part in parts if part not in some), joined]
        assert group.fits(parts[0][0])
        return StageOrder(parts[0][0], "by chance")

    return decide


def planned(case: Case, seed: int) -> Pipeline:
    source = SourceInput(case.schema, "t", case.delay_s * SECOND)
    options = JoinOptions(units=case.units)
    return pipeline(case.query.sql, dict.fromkeys(case.rows, source), options, decide=drawn(Random(seed)))


@pytest.mark.slow
@settings(max_examples=60)
@given(cases(graphs(INNER, 3), cuts=(2, 5), units=(1, 4), most=8, least=3), st.integers(0, 999))
def test_inner_joins(case: Case, seed: int) -> None:
    """Trees and cycles; keys of several columns and of what is computed; conditions on two inputs."""
    holds(case, planned(case, seed))


@pytest.mark.slow
@settings(max_examples=60)
@given(cases(graphs(MIXED, 3), cuts=(1, 3), units=(1, 4), most=6, least=2), st.integers(0, 999))
def test_parts_that_are_other_joins(case: Case, seed: int) -> None:
    """Outer, semi and anti joins among what is joined."""
    holds(case, planned(case, seed))


@pytest.mark.slow
@settings(max_examples=40)
@given(cases(timed_graphs(), cuts=(2, 5), units=(1, 4), most=8), st.integers(0, 999))
def test_time_bounds(case: Case, seed: int) -> None:
    """A bound is decided where both of its inputs are."""
    holds(case, planned(case, seed))
