"""Runs of inequality joins against a nested loop: every comparison, ties, NaN, infinities, equality, expiry."""

import math
import tracemalloc
from dataclasses import dataclass, replace
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joinlib.index import fences, grids, permuted
from joinlib.index.comparisons import PreparedProbes, keys
from joinlib.index.inequality import Op, PermutedRun, build
from joinlib.index.neighbours import shared

INTEGERS = [-(2**63), -1, 0, 1, 2, 2**63 - 1]
HASHES = [-(2**63), 0, 7]
FLOATS = [-math.inf, -1.0, -0.0, 0.0, 5e-324, 1.0, math.inf, math.nan, -math.nan]
BIGGER = {Op.LT: (1,), Op.LE: (0, 1), Op.GT: (-1,), Op.GE: (-1, 0), Op.NE: (-1, 1)}  # sign of stored - probe
COSTS = {
    "cheapest": {},
    "scan": {"_FLIP": 1e18, "_BLOCK": 1e18},
    "sweep": {"_FLIP": 0.0, "_BLOCK": 0.0, "_CHECK": 1e-9},
}


def holds(x, op, y):
    """As SQL orders doubles: NaN is the greatest and equals itself."""
    a, b = (math.isnan(x), 0 if math.isnan(x) else x), (math.isnan(y), 0 if math.isnan(y) else y)
    return (b > a) - (b < a) in BIGGER[op]


def pairs(found, limit):
    frames = [(p.tolist(), r.tolist()) for p, r in found]
    assert all(0 < len(p) == len(r) <= limit for p, r in frames), "a frame is empty or too large"
    return sorted((i, row) for p, r in frames for i, row in zip(p, r))


@dataclass(frozen=True)
class Join:
    """Comparison i of column i of the probes with the stored column of[i]; with equality if `keyed`."""

    ops: list[Op]
    of: list[int]
    stored: list[np.ndarray]
    stored_hashes: np.ndarray
    probes: list[np.ndarray]
    probe_hashes: np.ndarray
    keyed: bool

    @property
    def rows(self):
        return len(self.stored_hashes)

    @property
    def asked(self):
        return self.probes, self.probe_hashes if self.keyed else None

    def given(self, rows=slice(None)):
        """Arguments of `build`: columns of one dimension are one array."""
        made = [column[rows] for column in self.stored]
        return [made[o] for o in self.of], self.stored_hashes[rows] if self.keyed else None

    def build(self):
        columns, equal = self.given()
        return build(columns, self.ops, equal)

    def matches(self, alive):
        """Pairs of every probe with the rows from alive[0] to alive[1], by a nested loop."""
        stored, probes = ([c.tolist() for c in columns] for columns in (self.stored, self.probes))
        return [
            (i, row)
            for i in range(len(self.probe_hashes))
            for row in range(*alive)
            if (not self.keyed or self.probe_hashes[i] == self.stored_hashes[row])
            and all(holds(p[i], op, stored[o][row]) for p, op, o in zip(probes, self.ops, self.of))
        ]


@st.composite
def joins(draw, rows=12):
    ops = draw(st.lists(st.sampled_from(Op), min_size=1, max_size=3))
    of = [draw(st.integers(0, i)) for i in range(len(ops))]
    of = [of.index(o) for o in of]
    domains = [draw(st.sampled_from([INTEGERS, FLOATS])) for _ in ops]

    def column(domain, size):
        drawn = draw(st.lists(st.sampled_from(domain), min_size=size, max_size=size))
        return np.array(drawn, type(domain[0]))

    many, few = draw(st.integers(0, rows)), draw(st.integers(0, 8))
    stored, probes = ([column(domains[o], size) for o in of] for size in (many, few))
    return Join(ops, of, stored, column(HASHES, many), probes, column(HASHES, few), draw(st.booleans()))


def cost(patch, name):
    for constant, value in COSTS[name].items():
        patch.setattr(permuted, constant, value)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(joins(), st.sampled_from([1, 2, 7, 1000]), st.sampled_from(list(COSTS)), st.data())
def test_a_run_finds_what_a_nested_loop_finds(join, limit, way, data):
    """Every comparison and mixture, any frame, scanned or swept, only of the rows that are alive."""
    alive = tuple(sorted(data.draw(st.lists(st.integers(0, join.rows), min_size=2, max_size=2))))
    alive = data.draw(st.sampled_from([(0, join.rows), alive]))
    run, want = join.build(), join.matches(alive)

    run.check()
    assert run.shape.dimensions == len(set(join.of)), "a band is one dimension"
    with pytest.MonkeyPatch.context() as patch:
        cost(patch, way)
        found = pairs(run.probe(*join.asked, limit, alive), limit)
        counts = run.count(*join.asked, alive).tolist()
    assert found == want
    assert counts == [sum(i == p for p, _ in want) for i in range(len(join.probe_hashes))]


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(joins(), st.integers(0, 3))
def test_no_row_outside_what_comparisons_reach(join, first):
    """Of plain runs and of runs with an equality, by any of the comparisons, in any order of rows."""
    run = join.build()
    asked = run.shape.prepare(*join.asked)
    chosen = range(min(first, len(join.ops)), len(join.ops))
    ops, of, probes = ([held[c] for c in chosen] for held in (join.ops, join.of, join.probes))
    part = replace(join, ops=ops, of=of, probes=probes)
    start, stop = run.reach(asked, chosen)
    assert 0 <= start <= stop <= run.rows
    if chosen:
        assert {row for _, row in part.matches((0, run.rows))} <= set(range(start, stop))


@pytest.mark.parametrize(
    ("late", "reached"),
    [
        pytest.param(0, (250, 500), id="rows in the order of time"),
        pytest.param(20, (230, 500), id="every other row 20 places late"),
    ],
)
def test_a_window_reaches_a_range_of_rows(late, reached):
    """The more generous end of all probes: these are of 300 to 449, and look 50 back and 50 ahead."""
    number = np.arange(1_000)
    time = number + np.where(number % 2, late, 0)
    run = build([number % 7, time, time], [Op.LT, Op.GE, Op.LE])
    probes = np.arange(300, 450)
    asked = run.shape.prepare([probes % 7, probes + 50, probes - 50])
    start, stop = run.reach(asked, range(1, 3))
    assert abs(start - reached[0]) <= 1 and abs(stop - reached[1]) <= 1


def test_a_run_that_is_in_the_window_is_reached_whole():
    number = np.arange(100)
    run = build([number % 7, number], [Op.LT, Op.LE])
    assert run.reach(run.shape.prepare([number % 7, number * 0 - 1]), range(1, 2)) == (0, 100)
    assert not run._ends, "and nothing is built to find that out"
    assert run.reach(run.shape.prepare([number % 7, number * 0 + 100]), range(1, 2)) == (0, 0)


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(joins(), st.integers(1, 3), st.sampled_from(list(COSTS)))
def test_the_first_comparisons_alone(join, count, way):
    """They find what a nested loop finds by them, of plain runs and of runs with an equality."""
    run, part = join.build(), replace(join, ops=join.ops[:count], of=join.of[:count])
    first = run.first(count)
    if first is None:
        assert set(join.of[:count]) & set(join.of[count:]), "they share a dimension"
        return
    first.check()
    asked = run.shape.prepare(*join.asked).first(count)
    with pytest.MonkeyPatch.context() as patch:
        cost(patch, way)
        assert pairs(first.probe(asked, limit=7), 7) == part.matches((0, join.rows))


@pytest.mark.parametrize(("width", "part"), [(1_000, 1.0), (100, 0.19), (1, 0.003)])
def test_what_a_window_keeps(width, part):
    """Of the rows of a run, by both of its ends together, estimated."""
    number = np.arange(1_000)
    run = build([number, number, number], [Op.NE, Op.GE, Op.LE])
    asked = run.shape.prepare([number, number + width, number - width])
    assert run.kept(asked, range(1, 3)) == pytest.approx(part, abs=0.02)


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(joins(rows=60), st.sampled_from([1, 2, 7, 50]), st.sampled_from([1, 3, 20]), st.data())
def test_neighbours_that_share_an_index_and_expiry_do_not_change_the_matches(join, most, batch, data):
    """Rows come in batches, small neighbours are indexed together, the oldest rows expire one by one: the window is exact."""
    cuts = list(pairwise(sorted({*range(0, join.rows, batch), join.rows})))
    together = shared([stop - start for start, stop in cuts], most)
    expired = data.draw(st.integers(0, join.rows))
    want = join.matches((expired, join.rows))

    found, count = [], 0
    for first, last in together:
        base, stop = cuts[first][0], cuts[last - 1][1]
        columns, equal = join.given(slice(base, stop))
        run = build(columns, join.ops, equal)
        alive = (max(expired - base, 0), run.rows)
        found += [(i, base + row) for i, row in pairs(run.probe(*join.asked, 7, alive), 7)]
        count += run.count(*join.asked, alive).sum()

    assert sorted(found) == want
    assert count == len(want)


@given(st.lists(st.integers(1, 9), max_size=30), st.integers(1, 40))
def test_what_shares_an_index(rows, most):
    """All segments, in order, each once; never more rows than allowed, and so few indexes that each has more rows than the next."""
    together = shared(rows, most)
    sizes = [sum(rows[start:stop]) for start, stop in together]

    assert [at for start, stop in together for at in range(start, stop)] == list(range(len(rows)))
    assert all(stop - start == 1 or size <= most for (start, stop), size in zip(together, sizes))
    assert all(one > two or one + two > most for one, two in pairwise(sizes))


@pytest.mark.parametrize("way", list(COSTS))
def test_blocks_of_bits_are_counted_and_passed_over(way, monkeypatch):
    """Runs of several blocks of the summary, with ties, two and three comparisons, some rows dead."""
    draw, rows = np.random.default_rng(1), 3000
    cost(monkeypatch, way)
    for ops in [*product(Op, Op), (Op.LT, Op.GT, Op.LE), (Op.GE, Op.NE, Op.LT)]:
        stored = [draw.integers(0, 40, rows) for _ in ops]
        probes = [draw.integers(-1, 41, 9) for _ in ops]
        match = np.ones((9, rows), bool)
        for p, op, s in zip(probes, ops, stored):
            match &= np.isin(np.sign(s[None, :] - p[:, None]), BIGGER[op])
        for alive in ((0, rows), (700, 2900)):
            live = match.copy()
            live[:, : alive[0]] = live[:, alive[1] :] = False
            run = build(stored, ops)

            assert run.count(probes, alive=alive).tolist() == live.sum(1).tolist()
            assert pairs(run.probe(probes, limit=1000, alive=alive), 1000) == list(
                zip(*(x.tolist() for x in np.nonzero(live)))
            )


@settings(max_examples=60, deadline=None)
@given(joins(rows=80), st.sampled_from([0, 1, 3]), st.sampled_from([1, 4]))
def test_fences_and_grids_of_any_size(join, step, few):
    """Arrays with fences on several levels, and grids down to single positions, find and count the same."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fences, "FEW", few)
        patch.setattr(grids, "shift", lambda rows: step)
        run, want = join.build(), join.matches((0, join.rows))

        assert run.count(*join.asked).tolist() == [
            sum(i == p for p, _ in want) for i in range(len(join.probe_hashes))
        ]
        assert pairs(run.probe(*join.asked, 50), 50) == want


@pytest.mark.parametrize("rows", [15, 16, 17, 255, 256, 4096, 4113, 70_000])
def test_fences_find_what_a_binary_search_finds(rows):
    """Full nodes, parts of nodes, ties over several nodes, values before, between and behind all others."""
    values = np.sort(np.random.default_rng(rows).integers(0, rows // 3, rows))
    x = np.array([-(2**63), 2**63 - 1, *range(-1, rows // 3 + 1, 1 + rows // 500)])
    above, by = fences.fences(values), np.argsort(x)

    for upper in (False, True):
        want = np.searchsorted(values, x, "right" if upper else "left").tolist()
        assert fences.find(values, above, by, x, upper).tolist() == want


@settings(max_examples=60, deadline=None)
@given(joins())
def test_probes_are_made_ready_once(join):
    """What one run has made of a batch serves every run of the same shape; both ends of a band share an order."""
    run, want = join.build(), join.matches((0, join.rows))
    asked = run.shape.prepare(*join.asked)
    again = PreparedProbes(asked.keys, asked.equal)

    assert pairs(run.probe(asked), 1 << 18) == pairs(join.build().probe(again), 1 << 18) == want
    for key, rank in zip(asked.keys, asked.ranks):
        order = [(0 if asked.equal is None else asked.equal[i], key[i]) for i in rank]
        assert order == sorted(order)


@given(st.lists(st.floats() | st.sampled_from(FLOATS), min_size=2, max_size=2))
def test_keys_are_in_the_order_of_doubles(numbers):
    """Comparing keys is comparing values, NaN and both zeros among them."""
    (x, y), (a, b) = numbers, keys(np.array(numbers), True).tolist()

    assert [op for op in Op if holds(x, op, y)] == [op for op in Op if (b > a) - (b < a) in BIGGER[op]]


def test_a_run_survives_in_files(tmp_path: Path):
    """What is written and mapped again is the same run, and probes it without a copy."""
    stored, equal = [np.array([3, 1, 2]), np.array([0.5, math.nan, -math.inf])], np.array([1, 2, 1])
    run = build(stored, [Op.LT, Op.NE], equal)
    for name, array in run.arrays().items():
        np.save(tmp_path / f"{name}.npy", array)
    mapped = PermutedRun.of({p.stem: np.load(p, mmap_mode="r") for p in tmp_path.iterdir()})
    asked = [np.array([0, 2]), np.array([0.5, 7.0])], np.array([1, 1])

    mapped.check()
    assert mapped.shape == run.shape
    assert np.may_share_memory(mapped.values, mapped.values.base)
    assert pairs(mapped.probe(*asked), 9) == pairs(run.probe(*asked), 9) == [(0, 2), (1, 0)]


def test_a_huge_output_takes_the_memory_of_a_frame():
    """A cross product of 4 M pairs comes in frames, none is made before it is asked for."""
    many = np.zeros(2000, np.int64)
    run = build([many, many.copy()], [Op.LE, Op.GE])
    next(run.probe([many, many], limit=1000))
    tracemalloc.start()
    found = sum(len(p) for p, _ in run.probe([many, many], limit=1000))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert found == 4_000_000
    assert peak < 1_000_000


def test_a_frame_that_is_held_is_not_written_again():
    """Readers may keep frames, or parts of them: each stays what it was, the others' memory is used again."""
    run = build([np.zeros(100, np.int64)], [Op.LE])
    slices = [(p[1:3], r[1:3]) for p, r in run.probe([np.zeros(4, np.int64)], limit=10)]
    homes = {r.__array_interface__["data"][0] for _, r in run.probe([np.zeros(4, np.int64)], limit=10)}

    assert [r.tolist() for _, r in slices] == [[at % 100 + 1, at % 100 + 2] for at in range(0, 400, 10)]
    assert [p.tolist() for p, _ in slices] == [[at // 100] * 2 for at in range(0, 400, 10)]
    assert len(homes) == 2


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        (lambda run: build([np.zeros(1)], []), "one each"),
        (lambda run: list(run.probe([np.zeros(1)])), "2 comparisons are probed with 1"),
        (lambda run: run.count([np.zeros(1, np.int64), np.zeros(1)]), "cast one"),
        (lambda run: run.count([np.zeros(1), np.zeros(1)], np.zeros(1, np.int64)), "or for none"),
    ],
)
def test_misuse_is_loud(mistake, message):
    """Columns that do not fit the comparisons."""
    with pytest.raises((TypeError, ValueError), match=message):
        mistake(build([np.zeros(3), np.ones(3)], [Op.LT, Op.GT]))


def test_one_index_answers_mirrored_comparisons() -> None:
    """As the two names of a self-join ask: the same arrays, the same run for the same question."""
    draw = np.random.default_rng(3)
    columns = [draw.integers(0, 9, 50), draw.integers(0, 9, 50)]
    run, mirrored = build(columns, [Op.LT, Op.GE]), build(columns, [Op.GT, Op.LE])
    asked = run.asked([Op.GT, Op.LE])

    def pairs(of: PermutedRun) -> set[tuple[int, int]]:
        return {pair for x, y in of.probe(columns) for pair in zip(x.tolist(), y.tolist(), strict=True)}

    assert pairs(asked) == pairs(mirrored) != pairs(run)
    assert asked.order is run.order and asked.values is run.values
    assert run.asked([Op.GT, Op.LE]) is asked and run.asked([Op.LT, Op.GE]) is run
