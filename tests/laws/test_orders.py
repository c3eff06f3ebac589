"""The probe order changes the cost, never the answer; what is counted for it is what happened."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import orjson
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joinlib.join.order.orders import Orders, first, size
from joinlib.join.order.policy import RULES, OrderPolicy, star
from joinlib.join.order.smoothing import Trend
from joinlib.join.order.statistics import StateSize
from joinlib.join.order.watch import ProbeCounts, Watch
from joinlib.model.tuning import Tuning
from joinlib.model.watermark import Tick
from joinlib.plan.build import build
from joinlib.plan.options import JoinOptions
from joinlib.plan.source import SourceInput
from joinlib.state.manifest import decode
from joinlib.state.side import Side
from tests.laws.cases import Case, cases, holds, stars, trees
from tests.laws.harness import Batch, Flow

STAR = "SELECT a.v AS av, b.v AS bv, c.v AS cv FROM a JOIN b ON a.k = b.k JOIN c ON a.k = c.k"
SOURCE = SourceInput(pa.schema([("k", pa.int64()), ("v", pa.int64())]))


class Shuffled(Flow):
    """Before every batch, somebody else's orders are in the manifests."""

    random = Random(0)

    def batch(
        self, rows: Batch, closed: bool = False, idle: Sequence[str] = (), ticks: Sequence[Tick] = ()
    ) -> list[tuple[object, ...]]:
        for u, data in self.units.items():
            manifest = decode(data)
            probes = tuple({**raw, "orders": self._shuffled(raw["orders"])} for raw in manifest.probes)
            self.units[u] = replace(manifest, probes=probes).encode()
        return super().batch(rows, closed, idle, ticks)

    def _shuffled(self, orders: list[list[int]]) -> list[list[int]]:
        return [self.random.sample(order, len(order)) for order in orders]


@pytest.mark.slow
@settings(max_examples=20)
@given(
    cases(st.one_of(stars(), stars(timed=False)), cuts=(2, 7), units=(1, 2), most=8, least=4),
    st.randoms(use_true_random=False),
)
def test_any_order(case: Case, random: Random) -> None:
    """Orders at random, others in each batch and unit, with all troubles: the answer is the nested loop's."""
    Shuffled.random = random
    holds(case, runs=Shuffled)


@pytest.mark.slow
@settings(max_examples=20)
@given(
    cases(st.one_of(stars(), stars(timed=False)), cuts=(2, 7), units=(1, 2), most=8, least=4),
    st.sampled_from(list(RULES)),
    st.integers(1, 3),
)
def test_any_rule(case: Case, rule: str, cycle: int) -> None:
    """Whoever chooses, and however often."""
    holds(replace(case, tuning=replace(case.tuning, probe_order=rule, probe_cycle=cycle)))


@pytest.mark.parametrize("seed", range(3))
def test_results_whatever_the_order(seed: int, tmp_path: Path) -> None:
    """The same with many results: two keys, four inputs, five batches, orders at random in each."""
    random = Random(seed)
    rows = [{n: [random.randint(0, 1) for _ in range(2)] for n in "abcd"} for _ in range(5)]
    sql = STAR.replace("c.v AS cv", "c.v AS cv, d.v AS dv") + " JOIN d ON a.k = d.k"
    stage = build(sql, dict.fromkeys("abcd", SOURCE), JoinOptions(units=1))
    Shuffled.random = random
    fixed = Flow(stage, tmp_path / "1", Tuning(probe_order="fixed")).run([batch(**r) for r in rows])

    assert Shuffled(stage, tmp_path / "2").run([batch(**r) for r in rows]) == fixed
    keys = [sum(math.prod(sum(r[n].count(k) for r in rows) for n in "abcd") for k in (0, 1))]
    assert [fixed.total()] == keys and keys[0] > 100


@pytest.mark.slow
@settings(max_examples=15)
@given(cases(trees(), most=8))
def test_two_inputs_pay_nothing(case: Case) -> None:
    """Only inner joins of three inputs or more keep anything."""
    wide = [op for op in Flow(case.stage(), Path()).root.operators() if len(op.sides) > 2]

    def check(flow: Flow) -> None:
        assert {len(m.probes) for m in flow.manifests} == {sum(op.kind == "inner" for op in wide)}

    holds(case, check)


def batch(**keys: Sequence[int]) -> Batch:
    return {
        n: pa.record_batch([pa.array(v, pa.int64()) for v in (k, range(len(k)))], SOURCE.schema)
        for n, k in keys.items()
    }


def flow(folder: Path, **tuning: Any) -> Flow:
    stage = build(STAR, dict.fromkeys("abc", SOURCE), JoinOptions(units=1))
    return Flow(stage, folder, Tuning(**tuning))


def orders(flow: Flow) -> Orders:
    (raw,) = flow.manifests[0].probes
    return Orders(**raw)


def test_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """γ, μ and κ of a batch that can be counted by hand (equations 9 to 11)."""
    seen: list[ProbeCounts] = []
    after = Orders.after

    def noted(self: Orders, watch: Watch, *more: Any) -> Orders:
        seen.append(watch.counts)
        return after(self, watch, *more)

    monkeypatch.setattr(Orders, "after", noted)
    join = flow(tmp_path, probe_cycle=1)
    join.batch(batch(b=[1, 1, 2, 3], c=[1, 9]))  # b and c come first and find nothing in a
    # Of c, whose keys have fewer rows, 1 finds one; then one tuple asks b and finds two.
    join.batch(batch(a=[1, 2, 2, 7]))

    assert (seen[1].asked[:3], seen[1].hit[:3]) == ([0, 1, 4], [0, 1, 1])
    assert (seen[1].found[:3], seen[1].rows) == ([0, 2, 1], [4, 0, 0])
    known = orders(join).statistics
    assert known.rate[0][2] and known.rate[0][2].level == 1 / 4
    assert known.per_hit[0][1] and known.per_hit[0][1].level == 2
    assert known.keys[1] and known.keys[1].level == 3
    assert known.rate[1][0] and known.rate[1][0].level == 0


def test_orders_follow_the_stream(tmp_path: Path) -> None:
    """The input that lets nobody pass is asked first; when another one does, that one is."""
    join = flow(tmp_path, probe_cycle=1)
    keys = list(range(8))
    join.batch(batch(b=keys * 4, c=keys[:1]))
    for _ in range(4):
        join.batch(batch(a=keys))
    assert orders(join).orders[0] == [2, 1]
    join.batch(batch(c=[k for k in range(100, 200) for _ in range(9)], b=range(100, 110)))
    for _ in range(8):
        join.batch(batch(a=range(100, 200)))
    assert orders(join).orders[0] == [1, 2]


def test_an_older_manifest(tmp_path: Path) -> None:
    """A manifest of a version that kept no orders is read, and goes on with the first ones."""
    join = flow(tmp_path)
    join.batch(batch(a=[1], b=[1]))
    head, _, contents = join.units[0].partition(b"\n")
    older = {k: v for k, v in orjson.loads(head).items() if k != "probes"}
    join.units[0] = orjson.dumps(older) + b"\n" + contents

    assert decode(join.units[0]).probes == ()
    assert join.batch(batch(c=[1])) == [(0, 0, 0)]
    assert orders(join).orders == [[1, 2], [0, 2], [0, 1]]


def test_a_manifest_with_more(tmp_path: Path) -> None:
    """What another version kept beside the orders is left out."""
    join = flow(tmp_path)
    join.batch(batch(a=[1], b=[1]))
    manifest = decode(join.units[0])
    join.units[0] = replace(manifest, probes=tuple({**p, "seen": [1]} for p in manifest.probes)).encode()

    assert join.batch(batch(c=[1])) == [(0, 0, 0)]
    assert "seen" not in decode(join.units[0]).probes[0]


def test_small(tmp_path: Path) -> None:
    """What rides in a manifest of three inputs stays below a kilobyte."""
    join = flow(tmp_path)
    for n in range(20):
        join.batch(batch(a=range(n, 50), b=range(0, 40, 2), c=[n] * 5))

    assert len(orjson.dumps(decode(join.units[0]).probes)) < 1024


@pytest.mark.parametrize(("near", "ends"), [(math.inf, [1, 3, 7, 15, 23, 31]), (0.0, [*range(1, 32)][::2])])
def test_cycles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, near: float, ends: list[int]) -> None:
    """Cycles have 1, 2, 4, ... T batches; up to four times T while orders stay good; those without rows are none."""
    monkeypatch.setattr("joinlib.join.order.orders.NEAR", near)
    join, counted = flow(tmp_path, probe_cycle=2), []
    for n in range(32):
        before = orders(join).cycles if n else 0
        join.batch(batch(a=[n], b=[n], c=[n]))
        join.batch({})
        if orders(join).cycles > before:
            counted.append(n + 1)

    assert counted == ends


def test_a_whole_cycle_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An eighth of each large batch, wherever in the cycle it comes, and every eighth of the small ones."""
    counted = {name: [0] * 24 for name in "ab"}
    pieces = Watch.pieces

    def noted(self: Watch, origin: int, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        for piece in pieces(self, origin, rows):
            if self.counting and origin < 2:
                counted["ab"[origin]][n] += piece.num_rows
            yield piece

    monkeypatch.setattr(Watch, "pieces", noted)
    monkeypatch.setattr("joinlib.join.order.orders.NEAR", 0.0)
    monkeypatch.setattr("joinlib.join.order.watch.LEAST", 1024)
    join, large = flow(tmp_path, probe_cycle=8), 32 * 1024
    for n in range(24):
        join.batch(batch(a=range(large) if n in (9, 12, 20) else [n], b=[n], c=[n]))

    assert {n: rows for n, rows in enumerate(counted["a"]) if rows > 1} == dict.fromkeys(
        (9, 12, 20), large // 8
    )
    assert [n for n, rows in enumerate(counted["b"]) if rows] == [0, 2, 6, 14, 22]  # the last of each cycle
    assert orders(join).cycles == 5


def test_a_chunk_is_cut_only_where_its_pieces_are_large() -> None:
    """Pieces of a few thousand rows took 15 % more processor time than the whole: each of them searches every run."""
    watch = replace(first(3), cycles=9).watch(star(3), OrderPolicy())
    sizes = {
        rows: [len(piece) for piece in watch.pieces(0, batch(a=range(rows))["a"])]
        for rows in (36_000, 80_000)
    }
    assert sizes == {36_000: [36_000], 80_000: [10_000, 10_000, 60_000]}


def test_figures_are_those_of_all_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the cycle's large batches find a partner for each row, half of them none: γ is a half, not 0 or 1."""
    monkeypatch.setattr("joinlib.join.order.watch.LEAST", 1024)
    rows = 32 * 1024
    join = flow(tmp_path, probe_cycle=8)
    join.batch(batch(b=range(rows), c=range(rows)))
    while orders(join).cycles < 3:
        join.batch(batch(c=[0]))
    (asked, _) = orders(join).orders[0]
    for n in range(8):
        join.batch(batch(a=range(rows) if n % 2 else range(rows, 2 * rows)))

    assert orders(join).cycles == 4
    assert orders(join).statistics.rate[0][asked] == Trend(0.5)


def test_a_batch_again_counts_the_same(tmp_path: Path) -> None:
    """Counting on leaves what was read as it was."""
    known = first(3)
    one = replace(
        known,
        cycles=9,
        turns=[0, 6, 0],
        counts=ProbeCounts.none(3, 3).plain() or [[1] * 9] * 3 + [[0.5] * 3, [1] * 3, 0.5],
    )
    for _ in range(2):
        watch = one.watch(star(3), OrderPolicy())
        assert [len(rows) for rows in watch.pieces(1, batch(a=[1, 2])["a"])] == [2]
        watch.counts.asked[0] += 1
        assert (watch.turns, watch.counts.rows, watch.counts.asked[0]) == ([0, 7, 0], [1, 3, 1], 2)


def test_sorted_runs_are_costed_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Heads by their chains, sorted runs by what is in memory of them; all rows count."""
    seen: list[StateSize] = []

    def noted(side: Side) -> StateSize:
        seen.append(size(side))
        return seen[-1]

    monkeypatch.setattr("joinlib.join.order.orders.size", noted)
    monkeypatch.setattr("joinlib.join.order.orders.NEAR", 0.0)
    join = flow(tmp_path, probe_cycle=1, levelled=True, seal_rows=64, file_bytes=0)
    for n in range(6):
        join.batch(batch(a=range(n * 100, n * 100 + 100), b=[n] * 10, c=[n]))
    (a, b, c) = seen[-3:]

    assert (a.rows, b.rows, c.rows) == (600, 60, 6)
    assert 0 < sum(run.keys for run in a.runs if not run.slots) == pytest.approx(500)
    assert all(0 < run.cached <= 1 for run in a.runs)
    assert [run.slots > 0 for run in c.runs] == [True]


def test_an_input_of_every_second_batch_is_counted(tmp_path: Path) -> None:
    """Whichever of the two it is."""
    for late in (0, 1):
        join = flow(tmp_path / str(late), probe_cycle=8)
        for n in range(16):
            join.batch(batch(a=[0] if n % 2 == late else [], b=[0], c=[0]))

        assert all(t for t in orders(join).statistics.rate[0][1:])


def test_what_many_runs_hold_is_probed_together(tmp_path: Path) -> None:
    """Twelve runs of each input hold a partner: one chunk asks the next input, not twelve; one comes out, not 144."""
    stage = build(STAR, dict.fromkeys("abc", SOURCE), JoinOptions(units=1))
    flow = Flow(stage, tmp_path, Tuning(file_bytes=0, seal_rows=1, max_runs=12))
    row = pa.record_batch([pa.array([7]), pa.array([0])], SOURCE.schema)
    for _ in range(12):
        flow.batch({"b": row, "c": row})

    assert len(flow.batch({"a": row})) == flow.largest == 144
