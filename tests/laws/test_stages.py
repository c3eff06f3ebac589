"""The law of joins by several keys: stages in a row give what one join of everything gives."""

from dataclasses import replace
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joinlib.model.stage import Pipeline
from joinlib.model.tuning import Tuning
from joinlib.plan import JoinOptions, SourceInput, pipeline
from tests.laws.cases import SECOND, UTC, Case, bounds, cases, differences
from tests.laws.chain import Chain
from tests.laws.harness import CALM
from tests.laws.oracle import Condition, Query, Tree, apart, differ, same

NEVER = -(10**9)


def planned(case: Case, retention_s: int | None = None) -> Pipeline:
    source = SourceInput(case.schema, "t", case.delay_s * SECOND)
    retention_us = None if retention_s is None else retention_s * SECOND
    return pipeline(
        case.query.sql,
        dict.fromkeys(case.rows, source),
        JoinOptions(units=case.units, retention_us=retention_us),
    )


def punctual(case: Case, plan: Pipeline) -> dict[str, list[tuple[object, ...]]]:
    """The rows that are not late: the watermark of each stage once more, in its plainest form."""
    taken: dict[str, list[tuple[object, ...]]] = {name: [] for name in case.rows}
    marks = [NEVER] * len(plan.stages)
    for n in range(len(next(iter(case.cuts.values())))):
        before = list(marks)
        for number, stage in enumerate(plan.stages):
            tops: list[int] = []
            for i in (i for i in stage.inputs if i.again is None):
                if i.upstream is not None:
                    tops += [marks[i.upstream]] if i.time else []
                    continue
                rows, cuts = case.rows[i.alias], case.cuts[i.alias]
                for row in rows[cuts[n - 1] if n else 0 : cuts[n]]:
                    if i.time is None or row[3] is None or row[3] >= before[number]:
                        taken[i.alias].append(row)
                seen = [r[3] - case.delay_s for r in rows[: cuts[n]] if r[3] is not None]
                tops += [max(seen, default=NEVER)] if i.time else []
            if tops:
                marks[number] = max(marks[number], min(tops))
    return taken


def holds(case: Case, plan: Pipeline, further: tuple[Condition, ...] = ()) -> None:
    """What comes out is what a nested loop and DuckDB find; `further`: conditions that the text does not say."""
    taken = punctual(case, plan)
    with TemporaryDirectory() as folder:
        chain = Chain(plan, Path(folder), case.tuning, case.trouble, case.spooled_rows)
        result = chain.run(case.batches())
    query = replace(case.query, where=(*case.query.where, *further))
    expected = query.nested_loop({name: [case.plain(r) for r in rows] for name, rows in taken.items()})

    assert differences(expected, result) == {}
    assert differences(expected, query.duckdb({n: pa.table(case.table(r)) for n, r in taken.items()})) == {}


@st.composite
def graphs(
    draw: st.DrawFn,
    last: tuple[str, ...] = ("inner",),
    before: tuple[str, ...] = ("inner",),
    timed: bool = True,
) -> Query:
    """Two to five inputs: each is joined with one before it by one of three columns, and perhaps by more.

    `last`, `before`: the kinds of the last join and of those before it.
    """
    names = "abcde"[: draw(st.integers(2, 5))]
    tree: Tree = "a"
    seen = "a"  # those whose columns can be named
    for name in names[1:]:
        column = draw(st.sampled_from("kjv"))
        on = [same(f"{draw(st.sampled_from(seen))}.{column}", f"{name}.{column}")]
        for _ in range(draw(st.sampled_from([0, 0, 1, 2]))):
            other, column = draw(st.sampled_from(seen)), draw(st.sampled_from("kjv"))
            more = [same(f"{other}.{column}", f"{name}.{column}"), differ(f"{other}.v", f"{name}.v")]
            on.append(draw(st.sampled_from([*more, draw(bounds(other, name))] if timed else more)))
        kind = draw(st.sampled_from(last if name == names[-1] else before))
        tree = (kind, tree, name, tuple(on))
        seen += "" if kind in ("semi", "anti") else name
    return Query(tuple(f"{x}.{c}" for x in seen for c in "vt"), tree)


SOME = ("inner", "inner", "semi")
ANY = ("inner", "left", "right", "full", "semi", "anti")


@pytest.mark.slow
@settings(max_examples=40)
@given(cases(graphs(SOME, SOME), cuts=(1, 2, 5), units=(1, 4), most=8))
def test_inner_and_semi_joins(case: Case) -> None:
    """Any graph of equalities, conditions and time bounds."""
    holds(case, planned(case))


@pytest.mark.slow
@settings(max_examples=30)
@given(cases(graphs(timed=False), cuts=(2, 5), units=(1, 4), most=8), st.integers(1, 4))
def test_retention(case: Case, retention_s: int) -> None:
    """Retention is a condition on every pair of inputs, in whichever stages they meet."""
    pairs = combinations(case.rows, 2)
    further = tuple(apart(f"{a}.t", f"{b}.t", -retention_s, retention_s) for a, b in pairs)

    holds(case, planned(case, retention_s), further)


@pytest.mark.slow
@settings(max_examples=50)
@given(cases(graphs(ANY, ANY), cuts=(1, 2, 5), units=(1, 4), most=8))
def test_any_join_anywhere(case: Case) -> None:
    """A row that an outer join has kept back finds its partners in the next stage, however long that was."""
    holds(case, planned(case))


@pytest.mark.slow
@settings(max_examples=40)
@given(cases(graphs(ANY, ANY, timed=False), cuts=(1, 3), units=(1, 4), most=6))
def test_any_join_anywhere_without_times(case: Case) -> None:
    """What an outer join lets out at the end meets, in the next stage, all that has come."""
    holds(case, planned(case))


def test_partners_are_kept_for_rows_that_a_stage_holds_back() -> None:
    """b comes just in time and brings the row of an old a with it: the old c that matches must still be there."""
    query = Query(
        ("a.t", "b.t", "c.t"),
        ("inner", ("inner", "a", "b", (same("a.k", "b.k"),)), "c", (same("b.j", "c.j"),)),
    )
    rows = {
        "a": [(1, "x", 0, 0), (0, None, 0, 3)],
        "b": [(0, None, 0, 3), (1, "x", 0, 3)],
        "c": [(0, "x", 0, 0), (0, None, 0, 3)],
    }
    cuts = {"a": [1, 2, 2], "b": [0, 1, 2], "c": [1, 2, 2]}
    case = Case(query, pa.int64(), UTC, rows, 0, cuts, 1, Tuning(seal_rows=1), CALM, 1000)
    further = tuple(apart(f"{a}.t", f"{b}.t", -4, 4) for a, b in combinations("abc", 2))

    holds(case, planned(case, 4), further)


def test_partners_are_kept_for_rows_without_one() -> None:
    """a waits four seconds for a b; the c that was there with it must be there when it comes out alone, and is then dropped."""
    query = Query(
        ("a.t", "b.t", "c.t"),
        (
            "inner",
            ("left", "a", "b", (same("a.k", "b.k"), apart("a.t", "b.t", 0, 4))),
            "c",
            (same("a.j", "c.j"), apart("a.t", "c.t", -1, 1)),
        ),
    )
    rows = {
        "a": [(1, "x", 0, 0), (0, None, 0, 3), (0, None, 0, 9), (0, None, 0, 20)],
        "b": [(2, None, 0, 0), (2, None, 0, 3), (2, None, 0, 9), (2, None, 0, 20)],
        "c": [(0, "x", 0, 0), (0, None, 0, 3), (0, None, 0, 9), (0, None, 0, 20)],
    }
    cuts = {name: [1, 2, 3, 4] for name in "abc"}
    case = Case(query, pa.int64(), UTC, rows, 0, cuts, 1, Tuning(seal_rows=1), CALM, 1000)
    plan = planned(case)

    assert plan.last.inputs[0].behind == (("a.t", 4 * SECOND),)
    holds(case, plan)
    with TemporaryDirectory() as folder:
        chain = Chain(plan, Path(folder), case.tuning)
        out = [chain.batch(batch) for batch in case.batches()]
        assert [len(rows) for rows in out] == [0, 0, 1, 0]
        assert chain.stored == [2, 0]  # a and b of the last batch; c has no key


def test_what_no_partner_can_reach_is_dropped() -> None:
    """In every stage: a run of many batches holds no more rows than a short one."""
    query = Query(
        ("a.v", "b.v", "c.v"),
        ("inner", ("inner", "a", "b", (same("a.k", "b.k"),)), "c", (same("b.j", "c.j"),)),
    )
    rows = {name: [(t % 3, "x", t, t) for t in range(60)] for name in "abc"}
    cuts = {name: list(range(2, 62, 2)) for name in "abc"}
    case = Case(
        query,
        pa.int64(),
        UTC,
        rows,
        0,
        cuts,
        1,
        Tuning(seal_rows=1, max_runs=40, max_segments=50),
        CALM,
        1000,
    )
    with TemporaryDirectory() as folder:
        chain = Chain(planned(case, 2), Path(folder), case.tuning)
        stored = []
        for batch in case.batches():
            chain.batch(batch)
            stored.append(chain.stored)

    assert all(late <= early for early, late in zip(stored[9], stored[-1], strict=True))
