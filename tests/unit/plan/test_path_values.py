"""The values of a path join: how its stages hang together, and what of them a checkpoint depends on."""

import json
import pickle
from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa
import pytest

from joinlib.expr.bound import Bound
from joinlib.model.fingerprint import compare, fingerprint
from joinlib.model.inputs import WEIGHT
from joinlib.model.stage import HopStage, NamedResult, PathStage, Pipeline, selected
from joinlib.path.graph import Arrangement
from tests.unit.plan.three import three


def parts(plan: Pipeline) -> tuple[PathStage, HopStage]:
    """The two stages of the plan."""
    first, last = plan.stages
    assert isinstance(first, PathStage)
    assert isinstance(last, HopStage)
    return first, last


def moved(plan: Pipeline, by: int) -> Pipeline:
    """The same plan with its first stage that many times more in front, as upserts are."""
    first, last = parts(plan)
    tuples = tuple(i.of_stage(by) for i in last.inputs)
    return Pipeline((*[first] * by, first, replace(last, inputs=tuples)))


def test_it_crosses_processes() -> None:
    plan = three()

    assert pickle.loads(pickle.dumps(plan)) == plan


def test_each_exchange_is_a_level() -> None:
    plan = three()

    assert plan.levels == ((0,), (1,))
    assert plan.last is plan.stages[1]


def test_the_state_of_a_hop_is_that_of_the_paths_below() -> None:
    assert [three().store_of(n) for n in (0, 1)] == [0, 0]
    assert [moved(three(), 2).store_of(n) for n in range(4)] == [0, 1, 2, 2]


@pytest.mark.parametrize("by", [0, 2])
def test_a_route_finds_its_next_leg(by: int) -> None:
    plan = moved(three(), by)
    for route in range(3):
        found = plan.next_leg(by, route)
        assert found is not None
        assert (found[0], found[1].number) == (by + 1, route)
        assert plan.next_leg(by + 1, route) is None


def test_a_waiting_row_goes_past_a_level() -> None:
    """Its next leg is two stages up: both stages are levels of their own all the same."""
    first, last = parts(three())
    middle = replace(last, last=False, select=(), legs=last.legs[:1], inputs=last.inputs[:1])
    tuples = (last.inputs[0].of_stage(1), *last.inputs[1:])
    plan = Pipeline((first, middle, replace(last, inputs=tuples)))

    assert plan.levels == ((0,), (1,), (2,))
    assert [found[0] for route in range(3) if (found := plan.next_leg(0, route))] == [1, 2, 2]
    assert plan.store_of(2) == 0


def test_figures_count_each_row_once() -> None:
    assert [p.alias for _, p in three().numbered_inputs] == ["c", "o", "o", "l"]
    assert [(n, p.number) for n, p in three().counted_inputs] == [(0, 0), (0, 1), (0, 3)]


def test_what_one_output_needs_stays_whole() -> None:
    plan = replace(moved(three(), 2), named=(NamedResult("a", 3),))

    assert plan.below(NamedResult("a", 3)).stages == three().stages


def test_changes_end_with_their_weights() -> None:
    _, last = parts(three())

    assert last.emitted.names == ["c.name", "o.k", "l.t"]
    assert replace(last, changes=True).emitted.names[-1] == WEIGHT
    assert last.reads == {"c.name", "o.k", "l.t"}


def test_only_the_last_has_a_select_list() -> None:
    first, last = parts(three())

    assert [name for name, _ in selected(last)] == ["c.name", "o.k", "l.t"]
    assert selected(first) == ()
    assert first.emitted == pa.schema([])


def test_routes_are_numbered_through_all_inputs() -> None:
    first, _ = parts(three())
    more = replace(first, paths=(*first.paths, first.paths[1]), legs=(*first.legs, first.legs[1]))

    assert [more.routes(one) for one in range(3)] == [(0,), (1, 3), (2,)]


def other(change: Callable[[PathStage], PathStage]) -> list[str]:
    """Why a checkpoint of the plan cannot serve one whose first stage is changed."""
    first, last = parts(three())
    old, new = (fingerprint(Pipeline((s, last))) for s in (first, change(first)))
    return compare(json.loads(json.dumps(old)), json.loads(json.dumps(new)))


def test_a_checkpoint_serves_other_routes() -> None:
    assert other(lambda s: replace(s, orders=(0, 1, 1), paths=s.paths[::-1], legs=s.legs[::-1])) == []


def test_a_checkpoint_serves_other_later_legs() -> None:
    first, last = parts(three())
    fewer = replace(last, inputs=last.inputs[:2], legs=last.legs[:2])
    old, new = (fingerprint(Pipeline((first, s))) for s in (last, fewer))

    assert compare(old, new) == []


STORED: dict[str, Callable[[PathStage], PathStage]] = {
    "arrangements": lambda s: replace(s, arrangements=(*s.arrangements[:3], Arrangement(2, (0,)))),
    "homes": lambda s: replace(s, homes=(0, 2, 3)),
    "inputs": lambda s: replace(s, inputs=s.inputs[:3]),
    "classes": lambda s: replace(s, graph=replace(s.graph, classes=s.graph.classes[:1])),
    "bounds": lambda s: replace(s, tree=replace(s.tree, bounds=(Bound("o.t", "l.t", 0, 9),))),
}


@pytest.mark.parametrize("what", STORED)
def test_a_checkpoint_does_not_serve_what_is_stored_otherwise(what: str) -> None:
    assert other(STORED[what])


def test_a_checkpoint_of_stages_does_not_serve_paths() -> None:
    """Nor the other way round: the number of stages may be the same."""
    first, last = parts(three())
    plain = {k: v for k, v in fingerprint(first).items() if k != "paths"}
    old = {"version": plain["version"], "units": 4, "stages": [plain, plain]}

    assert compare(old, fingerprint(Pipeline((first, last))))
    assert compare(fingerprint(Pipeline((first, last))), old)
