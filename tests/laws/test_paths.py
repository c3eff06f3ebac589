"""The law of joins by paths: by any arrangements and any paths, what comes out is what one join of everything gives."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest
from hypothesis import assume, event, given, reject, settings
from hypothesis import strategies as st

from joinlib.model.inputs import WEIGHT
from joinlib.model.stage import PathStage, Pipeline
from joinlib.model.tuning import Tuning
from joinlib.plan import JoinOptions, SourceInput, pipeline
from tests.laws.any_paths import any_paths
from tests.laws.cases import SECOND, Case, bounds, cases, differences, leaves, troubles, tunings
from tests.laws.chain import Chain
from tests.laws.harness import SMALL, Trouble, cut
from tests.laws.oracle import Condition, Query, Tree, apart, differ, next_to, same
from tests.laws.test_graphs import MIXED
from tests.laws.test_graphs import graphs as any_joins
from tests.laws.test_stages import ANY, SOME, holds
from tests.laws.test_stages import graphs as timed_joins

Values = tuple[object, ...]
Weighted = tuple[Values, int]

# --- queries ---------------------------------------------------------------------------------------------------------


def as_double(left: str, right: str) -> Condition:
    """An equality of a number and of another as it is in another type."""
    return Condition(f"CAST({left} AS DOUBLE) = {right}", same(left, right).test, keyed=True)


def sum_differs(one: str, two: str, three: str) -> Condition:
    """A condition of three inputs that may fail: the sum of two may overflow."""

    def test(row: dict[str, object]) -> bool | None:
        a, b, c = row.get(one), row.get(two), row.get(three)
        return None if a is None or b is None or c is None else a + b != c  # type: ignore[operator]

    return Condition(f"{one} + {two} <> {three}", test)


def between(one: str, two: str, three: str) -> Condition:
    """A condition of three inputs that cannot fail."""

    def test(row: dict[str, object]) -> bool | None:
        a, b, c = row.get(one), row.get(two), row.get(three)
        if a is None or b is None or c is None:
            return None
        return a <= b or b >= c  # type: ignore[operator]

    return Condition(f"({one} <= {two} OR {two} >= {three})", test)


@st.composite
def equalities(draw: st.DrawFn, left: str, right: str) -> Condition:
    """Of two columns, or of a column and what is computed of the other."""
    column = draw(st.sampled_from("kkjjvv+d"))
    if column == "+":
        return next_to(f"{left}.v", f"{right}.v")
    if column == "d":
        return as_double(f"{left}.v", f"{right}.v")
    return same(f"{left}.{column}", f"{right}.{column}")


@st.composite
def graphs(draw: st.DrawFn, least: int = 3, most: int = 8, timed: bool = True) -> Query:
    """Each input is equal in something to one before it; more equalities close cycles or make keys of several columns."""
    names = "abcdefgh"[: draw(st.sampled_from([3, 3, 4, 4, 5, 6, 8]).filter(lambda n: least <= n <= most))]
    tree: Tree = "a"
    for at, name in enumerate(names[1:], 1):
        before = names[:at]
        on = [draw(equalities(draw(st.sampled_from(before)), name))]
        for _ in range(draw(st.sampled_from([0, 0, 1, 2]))):
            other = draw(st.sampled_from(before))
            more = [draw(equalities(other, name)), differ(f"{other}.v", f"{name}.v")]
            on.append(draw(st.sampled_from([*more, draw(bounds(other, name))] if timed else more)))
        tree = ("inner", tree, name, tuple(on))
    where = tuple(
        draw(st.sampled_from([sum_differs, between]))(*(f"{x}.v" for x in draw(st.permutations(names))[:3]))
        for _ in range(draw(st.sampled_from([0, 0, 1, 2])))
    )
    shown = [f"{x}.{c}" for x in names for c in "vt"[: 2 if timed else 1]]
    some = draw(st.sampled_from([shown, shown[:1], shown[-2:]]))
    return Query(tuple(some), tree, where)


def planned(case: Case, seed: int, retention_s: int | None = None) -> Pipeline:
    """The query by some paths."""
    source = SourceInput(case.schema, "t", case.delay_s * SECOND)
    options = JoinOptions(
        units=case.units,
        strategy="paths",
        retention_us=None if retention_s is None else retention_s * SECOND,
    )
    with any_paths(seed):
        plan = pipeline(case.query.sql, dict.fromkeys(case.rows, source), options)
    assume(any(isinstance(stage, PathStage) for stage in plan.stages))
    event(f"levels: {len(plan.levels)}")
    return plan


# --- rows that only come ---------------------------------------------------------------------------------------------


SEEDS = st.integers(0, 10**6)


@pytest.mark.slow
@settings(max_examples=80)
@given(cases(graphs(), cuts=(1, 2, 5), units=(1, 4), most=6), SEEDS)
def test_any_graph(case: Case, seed: int) -> None:
    """Cycles, keys of several columns, conditions of three inputs, time bounds."""
    holds(case, planned(case, seed))


@pytest.mark.slow
@settings(max_examples=40)
@given(cases(any_joins(MIXED, least=4) | timed_joins(ANY, SOME), (1, 3), (1, 4), most=6, least=2), SEEDS)
def test_joins_of_every_kind(case: Case, seed: int) -> None:
    """Outer, semi and anti joins below, between and above the inner ones, which are done by paths."""
    holds(case, planned(case, seed))


@pytest.mark.slow
@settings(max_examples=40)
@given(cases(graphs(most=5, timed=False), cuts=(2, 5), units=(1, 4), most=8), SEEDS, st.integers(1, 4))
def test_retention(case: Case, seed: int, retention_s: int) -> None:
    """Retention is a condition on every pair of inputs, wherever they meet."""
    pairs = combinations(case.rows, 2)
    further = tuple(apart(f"{a}.t", f"{b}.t", -retention_s, retention_s) for a, b in pairs)

    holds(case, planned(case, seed, retention_s), further)


# --- rows that come and go -------------------------------------------------------------------------------------------

FIELDS = pa.schema([("k", pa.int64()), ("j", pa.string()), ("v", pa.int64())])


@dataclass(frozen=True)
class Changing:
    """A query, and by input and batch the rows that come and go."""

    query: Query
    moves: dict[str, list[list[Weighted]]]
    changes: frozenset[str]  # inputs whose rows may go
    units: int
    tuning: Tuning
    trouble: Trouble
    spooled_rows: int

    def planned(self, seed: int) -> Pipeline:
        inputs = {name: SourceInput(FIELDS, changes=name in self.changes) for name in self.moves}
        options = JoinOptions(units=self.units, strategy="paths")
        with any_paths(seed):
            return pipeline(self.query.sql, inputs, options, mode="changelog")

    def batches(self) -> Iterator[dict[str, pa.RecordBatch]]:
        """The batches as they are read."""
        for at in range(len(next(iter(self.moves.values())))):
            yield {name: self._read(name, moves[at]) for name, moves in self.moves.items()}

    def _read(self, name: str, moves: Sequence[Weighted]) -> pa.RecordBatch:
        plain = table([row for row, _ in moves])
        weights = pa.array([w for _, w in moves], pa.int64())
        return plain.append_column(WEIGHT, weights) if name in self.changes else plain

    def there(self, batch: int) -> dict[str, list[Values]]:
        """The rows that are there after a batch."""
        found = {}
        for name, moves in self.moves.items():
            bag: Counter[Values] = Counter()
            for row, weight in (move for some in moves[: batch + 1] for move in some):
                bag[row] += weight
            assert min(bag.values(), default=0) >= 0
            found[name] = [*bag.elements()]
        return found


def table(rows: Sequence[Values]) -> pa.RecordBatch:
    """Rows as they are read."""
    return pa.RecordBatch.from_pylist([dict(zip(FIELDS.names, row, strict=True)) for row in rows], FIELDS)


def follows(case: Changing, seed: int, orders: Sequence[tuple[int, ...]] = ()) -> None:
    """After each batch the sum of all that came out is the join of what is there."""
    plan = case.planned(seed)
    if not any(isinstance(stage, PathStage) for stage in plan.stages):
        reject()
    answer: Counter[Values] = Counter()
    with TemporaryDirectory() as folder:
        chain = Chain(plan, Path(folder), case.tuning, case.trouble, case.spooled_rows)
        for at, batch in enumerate(case.batches()):
            for row in chain.batch(batch):
                weight = row[-1] if plan.changes else 1
                assert isinstance(weight, int)
                answer[row[:-1] if plan.changes else row] += weight
            there = case.there(at)
            named = {n: [dict(zip(FIELDS.names, r, strict=True)) for r in rows] for n, rows in there.items()}
            expected = case.query.nested_loop(named)
            assert differences(expected, +answer) == {}, f"after batch {at}"
            assert min(answer.values(), default=0) >= 0
    tables = {name: pa.table(table(rows)) for name, rows in there.items()}
    assert differences(expected, case.query.duckdb(tables)) == {}


ROW = st.tuples(st.sampled_from([0, 1, None]), st.sampled_from(["x", "x", "x", "y", None]), st.integers(0, 2))


@st.composite
def histories(draw: st.DrawFn, batches: int, *, changes: bool) -> list[list[Weighted]]:
    """What comes, and what of it goes: also in the batch in which it came, and comes again in that in which it goes."""
    there, found = list[Values](), []
    for _ in range(batches):
        moves = list[Weighted]()
        for row in draw(st.lists(ROW, max_size=3)):
            if changes and there and draw(st.booleans()):
                gone = there.pop(draw(st.integers(0, len(there) - 1)))
                moves.append((gone, -1))
            if draw(st.integers(0, 3)):
                there.append(row)
                moves.append((row, 1))
        found.append(moves)
    return found


@st.composite
def changing(draw: st.DrawFn) -> Changing:
    """Few rows that often meet, of inputs most of which change."""
    query = draw(graphs(timed=False, most=6))
    names, batches = leaves(query.tree), draw(st.sampled_from([2, 4, 7]))
    changes = frozenset(n for n in names if draw(st.integers(0, 3)))
    return Changing(
        query=query,
        moves={n: draw(histories(batches, changes=n in changes)) for n in names},
        changes=changes,
        units=draw(st.sampled_from([1, 4])),
        tuning=draw(tunings()),
        trouble=draw(troubles(batches)),
        spooled_rows=draw(st.sampled_from([1, 2, 1000])),
    )


@pytest.mark.slow
@settings(max_examples=120)
@given(changing(), SEEDS)
def test_rows_come_and_go(case: Changing, seed: int) -> None:
    """In all inputs, in one batch, of rows that match each other."""
    follows(case, seed)


MOVES = ("", "+", "-", "-+")
"""What an input does in a batch: its oldest row goes, a new one comes; in this order."""


def every_move(random: Random) -> dict[str, list[list[Weighted]]]:
    """All combinations of what three inputs do in one batch, each followed by all of them again."""
    found: dict[str, list[list[Weighted]]] = {"a": [], "b": [], "c": []}
    there: dict[str, list[Values]] = {name: [] for name in found}
    steps = [*product(MOVES, repeat=3)]
    random.shuffle(steps)
    for at, step in enumerate([("+",) * 3, ("+",) * 3, *steps]):
        for name, moves in zip(found, step, strict=True):
            came = list[Weighted]()
            for move in moves:
                rows = there[name]
                if move == "-" and rows:
                    came.append((rows.pop(0), -1))
                elif move == "+" or (move == "-" and not rows):
                    rows.append((1, "x", at))
                    came.append((rows[-1], 1))
            if len(there[name]) > 3:
                came.append((there[name].pop(0), -1))
            found[name].append(came)
    return found


@pytest.mark.parametrize("order", ["abc", "acb", "bac", "cab"])
def test_every_combination_of_moves_in_a_batch(order: str) -> None:
    """a meets b by k and c by j, wherever it is in the text: −a+b, −a−b, +a−b, all at once."""
    edges = {"b": same("a.k", "b.k"), "c": same("a.j", "c.j")}
    one, two, three = order
    first, last = (edges[two if one == "a" else one],), (edges[three],)
    query = Query(("a.v", "b.v", "c.v"), ("inner", ("inner", one, two, first), three, last))
    random = Random(order)
    moves = every_move(random)
    small = replace(SMALL, file_bytes=0)
    case = Changing(query, moves, frozenset("abc"), 1, small, Trouble(), 1000)

    follows(case, random.randint(0, 999))


@pytest.mark.parametrize("seed", range(6))
def test_what_closes_a_cycle_is_compared(seed: int) -> None:
    """A triangle: whichever two sides the probes go by, the third is compared."""
    tree: Tree = ("inner", "a", "b", (same("a.k", "b.k"),))
    query = Query(("a.v", "b.v", "c.j"), ("inner", tree, "c", (same("b.j", "c.j"), same("a.v", "c.v"))))
    random = Random(seed)
    moves = {
        name: [
            [((random.randint(0, 1), random.choice("xy"), random.randint(0, 1)), 1) for _ in range(3)]
            for _ in range(3)
        ]
        for name in "abc"
    }

    follows(Changing(query, moves, frozenset("b"), 1, SMALL, Trouble(), 1000), seed)


# --- what is kept ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=30)
@given(st.data(), SEEDS)
def test_windows_of_rows(data: st.DataObject, seed: int) -> None:
    """Rows of any two inputs match only if their numbers are less than the window apart."""
    window = data.draw(st.sampled_from([1, 2, 5, 40]))
    batches = data.draw(st.sampled_from([1, 3, 8]))
    value = st.tuples(st.integers(0, 1), st.integers(0, 1))
    values = {name: data.draw(st.lists(value, max_size=15)) for name in "abc"}
    schema = pa.schema([("v", pa.int64()), ("w", pa.int64())])
    sql = "SELECT a.v AS x, b.w AS y, c.v AS z FROM a JOIN b ON a.v = b.v JOIN c ON b.w = c.w"
    options = JoinOptions(units=data.draw(st.sampled_from([1, 4])), window_rows=window, strategy="paths")
    with any_paths(seed):
        plan = pipeline(sql, dict.fromkeys("abc", SourceInput(schema, numbered=True)), options)
    tables = {
        n: pa.RecordBatch.from_pylist([{"v": v, "w": w} for v, w in rows], schema)
        for n, rows in values.items()
    }
    cuts = {
        n: [*sorted(data.draw(st.integers(0, len(r))) for _ in range(batches - 1)), len(r)]
        for n, r in values.items()
    }
    parts = {n: cut(t, cuts[n]) for n, t in tables.items()}
    expected = Counter(
        (a[0], b[1], c[0])
        for i, a in enumerate(values["a"])
        for j, b in enumerate(values["b"])
        for k, c in enumerate(values["c"])
        if a[0] == b[0] and b[1] == c[1] and max(i, j, k) - min(i, j, k) < window
    )
    with TemporaryDirectory() as folder:
        small = replace(SMALL, seal_rows=data.draw(st.sampled_from([1, 5, 50])))
        chain = Chain(plan, Path(folder), small, data.draw(troubles(batches)))
        found = chain.run([dict(zip(parts, row)) for row in zip(*parts.values(), strict=True)], close=False)
    assert differences(expected, found) == {}


def test_what_no_partner_can_reach_is_dropped(tmp_path: Path) -> None:
    """By each key: a run of many batches holds no more rows than a short one."""
    schema = pa.schema([("k", pa.int64()), ("j", pa.int64()), ("t", pa.timestamp("us", "UTC"))])
    sql = "SELECT a.t AS t FROM a JOIN b ON a.k = b.k JOIN c ON b.j = c.j"
    options = JoinOptions(units=2, retention_us=2 * SECOND, strategy="paths")
    with any_paths(1):
        plan = pipeline(sql, dict.fromkeys("abc", SourceInput(schema, "t")), options)
    many = Tuning(seal_rows=1, max_runs=40, max_segments=50)
    chain, stored = Chain(plan, tmp_path, many), []
    for at in range(40):
        rows = [{"k": at % 3, "j": at % 2, "t": at * SECOND}] * 2
        chain.batch(dict.fromkeys("abc", pa.RecordBatch.from_pylist(rows, schema)))
        stored.append(chain.stored)

    assert stored[20] == stored[-1]
    assert stored[-1][1:] == [0] * (len(plan.stages) - 1), "later levels store nothing"
