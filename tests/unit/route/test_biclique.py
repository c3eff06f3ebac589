"""Where rows of join-biclique lie, and whom they visit: two that match meet in one unit, whatever the rules were."""

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinlib.expr import Expr, Ref
from joinlib.model.inputs import Biclique, Cells
from joinlib.plan.operator import halves, shared
from joinlib.route.biclique import BOTH, PROBE, STORE, Rules, Sent, decode, homes, routed, subgroup
from joinlib.route.cells import own, reached
from joinlib.route.hash import key_hash, spread

KEYS = [int(h) for h in spread(2, 1)]
HOT = [int(h) for h in key_hash([pa.array([-1, 0, 1])])]  # of cells
POWERS = st.sampled_from([1, 2, 4, 8, 16])


@st.composite
def routes(draw: st.DrawFn) -> Biclique:
    units = draw(st.sampled_from([16, 8, 2, 1]))
    return draw(st.sampled_from([*(shared(units, d) for d in (16, 4, 2, 1)), halves(units)]))


@st.composite
def histories(draw: st.DrawFn, keys: Sequence[int] = tuple(KEYS)) -> list[Rules]:
    hot = st.dictionaries(st.sampled_from(keys), st.sampled_from([1, 2, 4]), max_size=2)
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


WHOLE = [-(2**63), -(2**63) + 1, 2**63 - 2, 2**63 - 1]
DOUBLES = [
    -0.0,
    2.0,
    -1.2e-16,
    0.1,
    0.3,
    1e17,
    1e17 + 16,
    -1e17,
    1e308,
    5e-324,
    float("inf"),
    float("-inf"),
    float("nan"),
]


@given(
    st.sampled_from(["whole", "doubles"]),
    st.data(),
    histories(HOT),
    st.sampled_from([(16, 16), (8, 2), (4, 1)]),
    st.integers(0, 9),
)
def test_partners_of_a_band_meet_once(
    kind: str, data: st.DataObject, history: list[Rules], units: tuple[int, int], seed: int
) -> None:
    """Whatever was hot: a row visits the home of each of its partners exactly once, also at the ends of the numbers."""
    type, odd = (pa.int64(), WHOLE) if kind == "whole" else (pa.float64(), DOUBLES)
    values = st.integers(-20, 20) if kind == "whole" else st.sampled_from([n / 10 for n in range(-99, 99)])
    stored, probing = ([*odd, *data.draw(st.lists(values, max_size=9))] for _ in "ab")
    low = data.draw(st.integers(-3, 3))
    high = low + data.draw(st.integers(0, 3))
    read = tuple(Expr(n, (n,), type, Ref(n)) for n in ("a.v", "b.v"))
    width = 1 << (4 * (high - low)).bit_length()
    cells = Cells(read, low, high, width)
    if kind == "doubles":  # as the planner has them: rounded outwards
        cells = Cells(read, math.nextafter(low, -math.inf), math.nextafter(high, math.inf), float(width))
    route = replace(shared(*units), cells=cells)

    def sent(number: int, rows: list[float], by: Rules) -> list[Sent]:
        block = pa.record_batch(
            [pa.array([0] * len(rows), pa.uint64()), pa.array(rows, type), pa.array(range(len(rows)))],
            ["$hash", f"{'ab'[number]}.v", "row"],
        )
        return list(routed(block, route, number, by, seed))

    for at, stored_by in enumerate(history):
        home = {
            r: s.unit
            for s in sent(0, stored, stored_by)
            if s.role != PROBE
            for r in s.rows["row"].to_pylist()
        }
        assert len(home) == len(stored)
        for probed_by in history[at:]:
            visits = [
                (r, s.unit)
                for s in sent(1, probing, probed_by)
                if s.role != STORE
                for r in s.rows["row"].to_pylist()
            ]
            assert len(visits) == len(set(visits))
            for i, j in product(range(len(stored)), range(len(probing))):
                if _within(stored[i], probing[j], low, high):
                    assert (j, home[i]) in visits


def _within(one: float, other: float, low: int, high: int) -> bool:
    """Whether SQL finds the pair, in whose order NaN equals itself; differences round otherwise than sums."""
    return (one != one and other != other) or low <= one - other <= high or other + low <= one <= other + high


@pytest.mark.parametrize(
    ("value", "cell", "first", "last"),
    [
        (7, 0, 0, 1),
        (8, 1, 0, 1),
        (9, 1, 1, 1),
        (0, 0, -1, 0),
        (-1, -1, -1, 0),
        (-8, -1, -2, -1),
        (2**63 - 1, 2**60 - 1, 2**60 - 1, 2**60 - 1),
        (-(2**63), -(2**60), -(2**60), -(2**60)),
        (7.0, 0, 0, 1),
        (8.5, 1, 0, 1),
        (-0.5, -1, -1, 0),
        (-0.0, 0, -1, 0),
        (-8.5, -2, -2, -1),
        (math.inf, 2**62, 2**62, 2**62),
        (math.nan, 2**62, 2**62, 2**62),
        (-math.inf, -(2**62), -(2**62), -(2**62)),
    ],
)
def test_cells_of_a_band(value: float, cell: int, first: int, last: int) -> None:
    """Eight wide, of rows that reach by one; at the ends of the numbers, too."""
    type, one = (pa.int64(), 1.0) if isinstance(value, int) else (pa.float64(), math.nextafter(1, 2))
    read = tuple(Expr(n, (n,), type, Ref(n)) for n in ("a.v", "b.v"))
    cells, rows = Cells(read, -one, one, 8), pa.record_batch([pa.array([value], type)], ["a.v"])
    low, high = reached(cells, 0, rows)
    assert (own(cells, 0, rows)[0], low[0], high[0]) == (cell, first, last)


@pytest.mark.parametrize(("type", "width"), [(pa.int64(), 1), (pa.float64(), 1.0)])
def test_rows_without_a_value_have_a_cell(type: pa.DataType, width: float) -> None:
    """Nobody's: and those beside them keep theirs, exactly."""
    read = tuple(Expr(n, (n,), type, Ref(n)) for n in ("a.v", "b.v"))
    cells = Cells(read, 0, 0, width)
    rows = pa.record_batch([pa.array([None, 2**53, -1], type)], ["a.v"])
    more = pa.record_batch([pa.array([2**60 + 1, None], pa.int64()).cast(type, safe=False)], ["a.v"])
    assert own(cells, 0, rows).tolist() == [0, 2**53, -1]
    assert own(cells, 0, more).tolist() == [2**60 + (type == pa.int64()), 0]


def test_a_band_sends_few_copies() -> None:
    """About one row of four reaches a second cell, and of those nearly all another unit."""
    read = tuple(Expr(n, (n,), pa.int64(), Ref(n)) for n in ("a.v", "b.v"))
    route = replace(shared(16, 16), cells=Cells(read, -1, 1, 8))
    rows = pa.record_batch([pa.array(spread(4000, 1)), pa.array(range(0, 40_000, 10))], ["$hash", "a.v"])
    sent = list(routed(rows, route, 0, Rules(), 0))

    assert sum(s.rows.num_rows for s in sent) <= 1.25 * 4000
    assert max(s.rows.num_rows for s in sent) < 2 * 4000 / 16


def test_one_copy_where_both_sides_share_a_unit() -> None:
    """A cold key of a shared group is stored and probes in the one unit that it is sent to."""
    sent = list(routed(block(KEYS), shared(4, 4), 0, Rules(), 0))

    assert {s.role for s in sent} == {BOTH}
    assert sum(s.rows.num_rows for s in sent) == len(KEYS)


def test_random_routing_costs_what_equation_5_says() -> None:
    """(n / e + 1) copies of each row of R."""
    sent = list(routed(block(KEYS * 10), halves(16), 0, Rules(), 0))

    assert sum(s.rows.num_rows for s in sent) == (8 + 1) * len(KEYS * 10)
