"""The law of self-joins that store their stream once: the same pairs as a nested loop, each row stored by one side."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joinlib.engine.reading import read
from joinlib.engine.wire import BLOCK, TICK
from joinlib.model.tuning import Tuning
from joinlib.plan import JoinOptions, SourceInput, build
from joinlib.spec import StreamJoin
from tests.laws.cases import Case, bounds, cases, holds, tunings
from tests.laws.document import written
from tests.laws.harness import Flow, counted, cut
from tests.laws.oracle import Query, same
from tests.laws.product import Course, Product, courses, own_folder
from tests.laws.test_biclique import SELECTED, keyed, runs, skewed


def stored_once(flow: Flow) -> None:
    """No unit holds a row of `b`, and those of `a` are whole; a band that is wider to one side stores both."""
    cells = flow.stage.route.cells if flow.stage.route is not None else None
    if cells is not None and cells.low != -cells.high:
        return
    assert [side.of for side in flow.sides] == [None, 0]
    assert all(not manifest.sides[1].segments for manifest in flow.manifests)


BANDS = (
    "ABS(a.v - b.v) <= 1",
    "a.v - b.v BETWEEN -1 AND 1",
    "b.v BETWEEN a.v - 1 AND a.v + 1",
)  # the same, of either name


@st.composite
def equalities(draw: st.DrawFn) -> Case:
    """An equality of one column or two, with a bound on time or none."""
    on = [same("a.k", "b.k"), *([same("a.j", "b.j")] if draw(st.booleans()) else [])]
    if draw(st.booleans()):
        on.append(draw(bounds("a", "b")))
    return draw(cases(st.just(Query(SELECTED, ("inner", "a", "b", tuple(on)))), units=(1, 4)))


@pytest.mark.slow
@settings(max_examples=60)
@given(st.one_of(equalities(), runs(), skewed(), keyed()))
def test_any_join_of_an_input_with_itself(case: Case) -> None:
    """Equalities, comparisons, bands and time bounds, by every route and index."""
    holds(case.with_itself(), stored_once)


@settings(max_examples=10)
@given(st.one_of(equalities(), runs()))
def test_joins_of_an_input_with_itself(case: Case) -> None:
    """The same, few of them, in each run of the tests."""
    holds(case.with_itself(), stored_once)


@settings(max_examples=10)
@given(
    st.sampled_from(["a.v <= b.v", "a.v = b.v", "a.v <> b.v", *BANDS]),
    st.lists(st.integers(0, 4), max_size=30),
    st.lists(st.integers(0, 30), max_size=4),
    st.sampled_from([1, 2, 5, 40]),
    tunings(),
)
def test_windows_of_rows(on: str, values: list[int], ends: list[int], window: int, tuning: Tuning) -> None:
    """Rows match that are less than the window apart, a row with itself among them, however the input is cut."""
    source = SourceInput(pa.schema([("v", pa.int64())]), numbered=True)
    sql = f"SELECT a.v AS x, b.v AS y FROM s a JOIN s b ON {on}"
    stage = build(sql, {"s": source}, JoinOptions(units=4, window_rows=window))
    rows = pa.record_batch([pa.array(values, pa.int64())], source.schema)
    test = {"a.v <= b.v": int.__le__, "a.v = b.v": int.__eq__, "a.v <> b.v": int.__ne__}.get(
        on, lambda x, y: abs(x - y) <= 1
    )
    numbered = list(enumerate(values))
    expected = [(x, y) for i, x in numbered for j, y in numbered if abs(i - j) < window and test(x, y)]

    with own_folder() as folder:
        flow = Flow(stage, folder, tuning)
        parts = cut(rows, [*sorted(min(end, len(values)) for end in ends), len(values)])
        assert flow.run([{"s": part} for part in parts], close=False) == counted(expected)
        stored_once(flow)


def test_rows_of_one_batch_meet_each_other_and_themselves(tmp_path: Path) -> None:
    """As they do rows of other batches: each pair once, by either name."""
    source = SourceInput(pa.schema([("v", pa.int64())]))
    stage = build(
        "SELECT a.v AS x, b.v AS y FROM s a JOIN s b ON a.v <= b.v", {"s": source}, JoinOptions(units=4)
    )
    flow = Flow(stage, tmp_path)
    rows = pa.record_batch([pa.array([1, 2])], source.schema)

    assert Counter(flow.batch({"s": rows})) == counted([(1, 1), (1, 2), (2, 2)])
    assert Counter(flow.batch({"s": rows})) == counted([(1, 1), (1, 2), (2, 2)] * 3)
    stored_once(flow)


def _document(pairs: Sequence[tuple[int, int]], on: str, folder: Path) -> StreamJoin:
    """A self-join of rows of k and v, seven in a file and a file in a batch."""
    (folder / "s").mkdir()
    for at in range(0, len(pairs), 7):
        columns = [pa.array(c, pa.int64()) for c in zip(*pairs[at : at + 7], strict=True)]
        pq.write_table(pa.table(columns, ["k", "v"]), folder / "s" / f"{at:03d}.parquet")
    files = {"path": "s", "maxFilesPerBatch": 1, "orderBy": "name"}
    spec = {
        "sql": f"SELECT a.k AS ak, a.v AS av, b.k AS bk, b.v AS bv FROM s a JOIN s b ON {on}",
        "inputs": {"s": {"schema": "k BIGINT, v BIGINT", "files": files}},
        "output": {"files": {"path": "out"}},
        "checkpoint": {"path": "checkpoint", "sync": False},
        "join": {"units": 4},
    }
    return written(spec, folder)


@pytest.mark.slow
@pytest.mark.parametrize("on", ["a.k = b.k", "a.k = b.k AND a.v < b.v", "a.v < b.v", *BANDS])
@settings(max_examples=5)
@given(st.data())
def test_on_the_product_s_own_path(on: str, data: st.DataObject) -> None:
    """Rows are sent once; tasks run twice, processes begin anew, and the state of an equality is divided among other units."""
    pairs = data.draw(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 4)), max_size=30))
    test = {"a.k = b.k": lambda a, b: a[0] == b[0], "a.v < b.v": lambda a, b: a[1] < b[1]}.get(
        on, lambda a, b: (a[0] == b[0] and a[1] < b[1]) if "a.k" in on else abs(a[1] - b[1]) <= 1
    )
    with own_folder() as folder:
        run = Product(_document(pairs, on, folder), data.draw(tunings()), data.draw(courses(4)))
        assert [side.of for side in run.plan.pipeline.last.sides] == [None, 0]
        found = Counter[tuple[object, ...]]()
        for batch in run.batches():
            for file in sorted((folder / "out" / f"batch={batch}").glob("*.parquet")):
                columns = pq.read_table(file, partitioning=None).columns
                found.update(zip(*(c.to_pylist() for c in columns), strict=True))
        assert found == Counter((*a, *b) for a in pairs for b in pairs if test(a, b))
        assert not pairs or run.figures.rows_in == (len(pairs),) * 2


def test_rows_are_sent_once() -> None:
    """As those of the first name; of both it is told how far they have come."""
    with own_folder() as folder:
        run = Product(_document([(1, 2), (3, 4)], "a.v < b.v", folder), Tuning(), Course())
        end = run.next()
        assert end is not None
        parts = run.composer.parts(run.offset, end)
        sent = [
            rows for part in parts for some in read(run.plan.source, part, 0) for rows in some.to_pylist()
        ]

    assert {row["input"] for row in sent if row["kind"] == BLOCK} == {0}
    assert {row["input"] for row in sent if row["kind"] == TICK} == {0, 1}
