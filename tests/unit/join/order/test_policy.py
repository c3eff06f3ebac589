"""dpPick and its peers do what their papers say, on the graph of one key."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinlib.join.order.policy import RULES, OrderPolicy, policy_of, star
from joinlib.model.tuning import Tuning
from joinlib.path.cost import PathCosts
from joinlib.path.graph import Path, Probe
from tests.unit.path.graphs import costs

ONES = ((1.0,) * 4,) * 4
EVEN = PathCosts(ONES, 1.0, ONES, ONES)


def order(name: str, model: PathCosts) -> list[int]:
    return [probe.arrangement for probe in RULES[name].paths(star(4), model)[0].probes]


@given(st.data())
def test_no_peer_is_cheaper(data: st.DataObject) -> None:
    """Every rule gives every input a path; what auto takes costs least."""
    n = data.draw(st.integers(3, 5))
    choices = star(n)
    model = data.draw(costs(n, choices.arrangements))
    best = OrderPolicy(fanned=model.fanned).paths(choices, model)
    for rule in RULES.values():
        paths = rule.paths(choices, model)
        assert [path.start for path in paths] == list(range(n))
        for path, own in zip(paths, best, strict=True):
            least = choices.cost(own, model)
            assert least <= choices.cost(path, model) + 1e-9 * least


@given(st.data())
def test_cost(data: st.DataObject) -> None:
    """Equation 8 as a sum over the steps, each weighted by the chance that it is reached (and by the tuples that reach it)."""
    n = data.draw(st.integers(2, 5))
    arrangements = star(n).arrangements
    model = data.draw(costs(n, arrangements))
    sequence = [Probe(0, i) for i in data.draw(st.permutations(range(1, n)))]
    total, reach = 0.0, 1.0
    for l, r in ((probe.asker, probe.arrangement) for probe in sequence):  # noqa: E741
        total += reach * (model.query[l][r] + model.rate[l][r] * model.match * model.per_hit[l][r])
        reach *= model.rate[l][r] * (model.per_hit[l][r] if model.fanned else 1.0)

    assert model.cost(Path(0, tuple(sequence)), arrangements) == pytest.approx(total)


@pytest.mark.parametrize("name", RULES)
def test_ties(name: str) -> None:
    """Where nothing speaks for one order, all keep that of the inputs."""
    assert order(name, EVEN) == [1, 2, 3]


def test_peers_differ() -> None:
    """Each looks at its own figure: the match rate, the cost of the next step, or all that follows."""
    rate = ((1.0, 0.5, 0.4, 1.0),) * 4
    per_hit = ((1.0, 1.0, 50.0, 1.0),) * 4
    model = replace(EVEN, query=((1.0, 2.0, 1.0, 0.5),) * 4, rate=rate, per_hit=per_hit)

    assert order("fixed", model) == [1, 2, 3]
    assert order("selectivity", model) == [2, 1, 3]  # 0.4 < 0.5 < 1
    assert order("greedy", model) == [3, 1, 2]  # 0.5 + 1 < 2 + 0.5 < 1 + 20
    assert order("auto", model) == [1, 3, 2]  # what passes 1 is halved before 3 and the 50 of 2


def test_seven_inputs_are_searched() -> None:
    """The cheap probe of each step leads to the dear one, which six others could have thinned out first."""
    n = 8
    choices = star(n)
    query = ((1.0, 1.0, *(1.5,) * (n - 2)),) * n
    rate = ((1.0, 1.0, *(0.5,) * (n - 2)),) * n
    model = PathCosts(query, 0.0, rate, ((1.0, 9.0, *(1.0,) * (n - 2)),) * n)
    (greedy, best) = (RULES[name].paths(choices, model)[0] for name in ("greedy", "auto"))

    assert (greedy.probes[0].arrangement, best.probes[-1].arrangement) == (1, 1)
    assert choices.cost(best, model) < choices.cost(greedy, model) / 2


def test_what_settings_say() -> None:
    """Rule, cycle and history are the job's."""
    tuning = Tuning(probe_order="greedy", probe_cycle=3, probe_history=9)
    assert policy_of(tuning) == OrderPolicy("greedy", cycle=3, history=9)
    assert policy_of(Tuning()) == OrderPolicy()
