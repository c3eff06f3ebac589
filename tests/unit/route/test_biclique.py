"""Where rows of join-biclique lie, and whom they visit: two that match meet in one unit, whatever the rules were."""

import json

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from joinlib.model.inputs import Biclique
from joinlib.plan.operator import halves, shared
from joinlib.route.biclique import BOTH, PROBE, STORE, Rules, decode, homes, routed, subgroup
from joinlib.route.hash import spread

KEYS = [int(h) for h in spread(2, 1)]
POWERS = st.sampled_from([1, 2, 4, 8, 16])


@st.composite
def routes(draw: st.DrawFn) -> Biclique:
    units = draw(st.sampled_from([16, 8, 2, 1]))
    return draw(st.sampled_from([*(shared(units, d) for d in (16, 4, 2, 1)), halves(units)]))


@st.composite
def histories(draw: st.DrawFn) -> list[Rules]:
    hot = st.dictionaries(st.sampled_from(KEYS), st.sampled_from([1, 2, 4]), max_size=2)
    rules = [Rules()]
    for stored in draw(st.lists(st.tuples(hot, hot), min_size=1, max_size=4)):
        rules.append(rules[-1].then(stored))
    return rules


def block(hashes: list[int]) -> pa.RecordBatch:
    return pa.record_batch(
        [pa.array(hashes, pa.uint64()), pa.array(range(len(hashes)))], names=["$hash", "row"]
    )


@given(routes(), histories(), st.lists(st.sampled_from(KEYS), min_size=1, max_size=20), st.integers(0, 99))
def test_a_row_is_stored_once_and_found_under_every_later_rule(
    route: Biclique, history: list[Rules], hashes: list[int], seed: int
) -> None:
    """Each row has one home; whoever has its key visits that home exactly once, now and under every rule to come."""
    for at, stored_by in enumerate(history):
        sent = list(routed(block(hashes), route, 0, stored_by, seed))
        home = {r: s.unit for s in sent if s.role != PROBE for r in s.rows.column("row").to_pylist()}
        assert sum(s.rows.num_rows for s in sent if s.role != PROBE) == len(hashes) == len(home)
        for probed_by in history[at:]:
            visits = list(routed(block(hashes), route, 1, probed_by, seed))
            for row in range(len(hashes)):
                met = [s for s in visits if s.role != STORE and row in s.rows.column("row").to_pylist()]
                assert [s.unit for s in met].count(home[row]) == 1
                assert len(met) == len({s.unit for s in met})


@given(routes(), st.lists(st.sampled_from(KEYS), min_size=1, max_size=20), st.integers(0, 99))
def test_the_same_rows_go_the_same_ways(route: Biclique, hashes: list[int], seed: int) -> None:
    """A batch that is run again is routed as it was: copies, roles and order."""
    one, two = (list(routed(block(hashes), route, 1, Rules(), seed)) for _ in range(2))

    assert [(s.unit, s.role, s.rows.to_pydict()) for s in one] == [
        (s.unit, s.role, s.rows.to_pydict()) for s in two
    ]


@given(histories())
def test_rules_ride_in_the_offset(history: list[Rules]) -> None:
    """What comes back from JSON is what went in."""
    for rules in history:
        assert decode(json.loads(json.dumps(rules.encode()))) == rules
    assert decode(None) == Rules()


@given(POWERS, st.sampled_from([1, 2, 4]), st.sampled_from(KEYS))
def test_subgroups_nest(units: int, fewer: int, key: int) -> None:
    """The units of a key under a rule with fewer subgroups contain those under one with more."""
    group = shared(units, units).groups[0]
    first, width = subgroup(group, np.array([key], np.uint64), {key: min(fewer, units)})
    home = homes(group, np.array([key], np.uint64), {}, 0)

    assert first[0] <= home[0] < first[0] + width[0]
    assert width[0] == units // min(fewer, units)


def test_one_copy_where_both_sides_share_a_unit() -> None:
    """A cold key of a shared group is stored and probes in the one unit that it is sent to."""
    sent = list(routed(block(KEYS), shared(4, 4), 0, Rules(), 0))

    assert {s.role for s in sent} == {BOTH}
    assert sum(s.rows.num_rows for s in sent) == len(KEYS)


def test_random_routing_costs_what_equation_5_says() -> None:
    """(n / e + 1) copies of each row of R."""
    sent = list(routed(block(KEYS * 10), halves(16), 0, Rules(), 0))

    assert sum(s.rows.num_rows for s in sent) == (8 + 1) * len(KEYS * 10)
