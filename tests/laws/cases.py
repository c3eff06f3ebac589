"""What is drawn: queries, rows from tiny domains, arrival orders, cuts, thresholds and troubles."""

import datetime as dt
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pyarrow as pa
from hypothesis import strategies as st

from joinlib.model.stage import Stage
from joinlib.model.tuning import Tuning
from joinlib.plan.build import build
from joinlib.plan.options import JoinOptions
from joinlib.plan.source import SourceInput
from joinlib.route.biclique import Rules
from tests.laws.harness import Batch, Flow, Trouble, cut
from tests.laws.oracle import Condition, Query, Row, Tree, apart, differ, missing, same

UTC = pa.timestamp("us", "UTC")
NTZ = pa.timestamp("us")
DAY = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
SECOND = 1_000_000

KEYS: dict[pa.DataType, list[object]] = {
    pa.int64(): [0, 1, 2, None],
    pa.int32(): [0, -1, None],
    pa.float64(): [0.0, -0.0, float("nan"), 1.5, None],
    pa.float32(): [0.0, -0.0, float("nan"), None],
    pa.string(): ["", "a", "b" * 9, None],
    pa.binary(): [b"", b"\0", None],
    pa.decimal128(5, 2): [Decimal("0.00"), Decimal("-1.50"), None],
    pa.bool_(): [True, False, None],
    pa.date32(): [dt.date(2024, 1, 1), dt.date(1969, 12, 31), None],
    UTC: [DAY, DAY - dt.timedelta(days=40_000), None],
}


@dataclass(frozen=True)
class Case:
    """One run of one query."""

    query: Query
    key: pa.DataType
    time: pa.DataType
    rows: dict[str, list[tuple[object, ...]]]  # (k, j, v, seconds) by input, in the order of their arrival
    delay_s: int
    cuts: dict[str, list[int]]
    units: int
    tuning: Tuning
    trouble: Trouble
    spooled_rows: int
    strategy: str = "auto"
    subgroups: int | None = None
    rules: tuple[Rules, ...] = (Rules(),)  # of ContRand, by batch
    itself: bool = False  # a and b are names of one input

    def with_itself(self) -> "Case":
        """The same join of the rows of `a` with themselves, in units of which none stores rows of one name alone."""
        rows, cuts = (dict.fromkeys("ab", of["a"]) for of in (self.rows, self.cuts))
        return replace(self, rows=rows, cuts=cuts, units=4 if self.units == 2 else self.units, itself=True)

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([("k", self.key), ("j", pa.string()), ("v", pa.int64()), ("t", self.time)])

    def stage(self) -> Stage:
        source = SourceInput(self.schema, "t", self.delay_s * SECOND)
        inputs = dict.fromkeys("s" if self.itself else self.rows, source)
        return build(
            self.query.sql.replace("FROM a JOIN b", "FROM s a JOIN s b") if self.itself else self.query.sql,
            inputs,
            JoinOptions(units=self.units, strategy=self.strategy, subgroups=self.subgroups),
        )

    def batches(self) -> list[Batch]:
        parts = {name: cut(self.table(rows), self.cuts[name]) for name, rows in self.rows.items()}
        batches = [dict(zip(parts, row)) for row in zip(*parts.values(), strict=True)]
        return [{"s": batch["a"]} for batch in batches] if self.itself else batches

    def table(self, rows: Sequence[tuple[object, ...]]) -> pa.RecordBatch:
        return pa.RecordBatch.from_pylist([self.plain(r) for r in rows], self.schema)

    def plain(self, row: tuple[object, ...]) -> Row:
        k, j, v, seconds = row
        start = DAY if self.time == UTC else DAY.replace(tzinfo=None)
        return {
            "k": k,
            "j": j,
            "v": v,
            "t": None if seconds is None else start + dt.timedelta(seconds=seconds),
        }

    def punctual(self, stage: Stage) -> tuple[dict[str, list[tuple[object, ...]]], dict[str, int]]:
        """The rows that are not late, batch by batch, and how many are: the watermark once more, in its plainest form."""
        timed = [i.alias for i in stage.inputs if i.time is not None and i.alias in self.rows]
        keys = {i.alias: () if i.keep_null_keys else tuple(k[2:] for k in i.keys) for i in stage.inputs}
        keys = {n: (*k, *self.query.compared.get(n, ())) for n, k in keys.items()}
        taken: dict[str, list[tuple[object, ...]]] = {name: [] for name in self.rows}
        late = dict.fromkeys(self.rows, 0)
        highest: dict[str, int | None] = dict.fromkeys(timed)
        mark = -(10**9)
        for n in range(len(next(iter(self.cuts.values())))):
            for name, rows in self.rows.items():
                start = self.cuts[name][n - 1] if n else 0
                for row in rows[start : self.cuts[name][n]]:
                    if name in timed and row[3] is not None and row[3] < mark:
                        late[name] += all(
                            self.plain(row)[k] is not None for k in keys[name]
                        )  # others were filtered out
                    else:
                        taken[name].append(row)
            for name in timed:
                seen = [r[3] for r in self.rows[name][: self.cuts[name][n]] if r[3] is not None]
                highest[name] = max(seen, default=None)
            if timed and None not in highest.values():
                mark = max(mark, min(highest.values()) - self.delay_s)  # type: ignore[type-var,operator]
        return taken, late


def holds(case: Case, check: Callable[[Flow], None] = lambda _: None, runs: type[Flow] = Flow) -> None:
    """The law: what comes out is what a nested loop and DuckDB find among the rows that are not late."""
    stage = case.stage()
    taken, late = case.punctual(stage)
    with TemporaryDirectory() as folder:
        flow = runs(stage, Path(folder), case.tuning, case.trouble, case.spooled_rows, case.rules)
        result = flow.run(case.batches())
        check(flow)
    expected = case.query.nested_loop({name: [case.plain(r) for r in rows] for name, rows in taken.items()})

    assert differences(expected, result) == {}
    assert {name: flow.late[name] for name in late} == late
    assert (
        differences(expected, case.query.duckdb({n: pa.table(case.table(r)) for n, r in taken.items()})) == {}
    )


def differences(
    expected: Counter[tuple[object, ...]], found: Counter[tuple[object, ...]]
) -> dict[tuple[object, ...], int]:
    """How many of each row are too many (or too few)."""
    return {r: found[r] - expected[r] for r in expected.keys() | found.keys() if found[r] != expected[r]}


# --- queries ---------------------------------------------------------------------------------------------------------


@st.composite
def bounds(draw: st.DrawFn, left: str, right: str) -> Condition:
    low, high = draw(st.sampled_from([(-1, 2), (0, 0), (0, 3), (-4, -1), (1, 4), (-2, None), (None, 1)]))
    return apart(f"{left}.t", f"{right}.t", low, high, draw(st.integers(0, 2)) == 0)


@st.composite
def conditions(draw: st.DrawFn, lefts: str, right: str, timed: bool | None = None) -> tuple[Condition, ...]:
    """ON clauses between `right` and inputs among `lefts`; the first carries the key."""
    on = [same(f"{lefts[0]}.k", f"{right}.k")]
    if draw(st.booleans()) if timed is None else timed:
        on += [draw(bounds(x, right)) for x in lefts if x == lefts[-1] or draw(st.booleans())]
    if draw(st.integers(0, 3)) == 0:
        on.append(differ(f"{lefts[-1]}.v", f"{right}.v"))
    return tuple(on)


@st.composite
def pairs(draw: st.DrawFn, timed: bool | None = None) -> Query:
    """Two inputs, every kind."""
    kind = draw(st.sampled_from(["inner", "left", "right", "full", "semi", "anti"]))
    on = draw(conditions("a", "b", timed))
    if draw(st.integers(0, 3)) == 0:
        on = (*on, same("a.j", "b.j"))
    columns = (
        ("a.k", "a.v", "a.t") if kind in ("semi", "anti") else ("a.k", "a.v", "a.t", "b.k", "b.v", "b.t")
    )
    where = (missing("b.v"),) if kind in ("left", "full") and draw(st.integers(0, 5)) == 0 else ()
    return Query(columns, (kind, "a", "b", on), where)


@st.composite
def trees(draw: st.DrawFn) -> Query:
    """Three inputs: n-way inner joins, and any kind above any other that carries the key on."""
    below = draw(st.sampled_from(["inner", "inner", "left", "semi", "anti"]))
    above = draw(st.sampled_from(["inner", "inner", "left", "right", "full", "semi", "anti"]))
    seen = "a" if below in ("semi", "anti") else draw(st.sampled_from(["a", "ab"]))
    tree: Tree = (below, "a", "b", draw(conditions("a", "b")))
    on = draw(conditions(seen, "c"))
    if len(seen) == 2 and draw(st.integers(0, 3)) == 0:
        on = (*on, draw(bounds("a", "b")))  # of the left side alone
    shown = ("a" if below in ("semi", "anti") else "ab") + ("" if above in ("semi", "anti") else "c")
    return Query(tuple(f"{x}.{c}" for x in shown for c in "vt"), (above, tree, "c", on))


@st.composite
def stars(draw: st.DrawFn, timed: bool | None = None) -> Query:
    """Four inputs of one key class: one n-way inner join."""
    tree: Tree = "a"
    for seen, name in (("a", "b"), ("ab", "c"), ("abc", "d")):
        tree = ("inner", tree, name, draw(conditions(seen, name, timed)))
    return Query(tuple(f"{x}.{c}" for x in "abcd" for c in "vt"), tree)


# --- runs ------------------------------------------------------------------------------------------------------------


@st.composite
def tunings(draw: st.DrawFn) -> Tuning:
    """Thresholds small enough to be hit."""
    runs, fan = draw(st.sampled_from([1, 2, 12])), draw(st.sampled_from([2, 4]))
    return Tuning(
        hash_bits=draw(st.sampled_from([64, 64, 3])),
        seal_rows=draw(st.sampled_from([1, 3, 1000])),
        seal_bytes=draw(st.sampled_from([1 << 30, 1 << 30, 200])),
        levelled=draw(st.booleans()),
        fanout=draw(st.sampled_from([2, 3, 10])),
        piece_bytes=draw(st.sampled_from([1, 200, 1 << 26])),
        merge_segments=fan,
        file_bytes=draw(st.sampled_from([0, 100, 1 << 12])),
        small_bytes=draw(st.sampled_from([0, 1 << 14])),
        max_segments=runs + 2 + fan + draw(st.sampled_from([0, 9])),
        max_runs=runs,
        spans=draw(st.sampled_from([1, 8])),
        retain_batches=1,
        probe_pairs=draw(st.sampled_from([1, 5, 1000])),
        share_rows=draw(st.sampled_from([1, 1000])),
    )


@st.composite
def troubles(draw: st.DrawFn, batches: int) -> Trouble:
    some = st.frozensets(st.integers(0, batches), max_size=3)
    restart = draw(st.sampled_from([frozenset(), frozenset(range(batches + 1))])) or draw(some)
    return Trouble(
        restart,
        draw(some),
        draw(st.dictionaries(st.integers(0, batches), st.integers(0, 3), max_size=2)),
        draw(some),
        draw(some),
    )


def leaves(tree: Tree) -> str:
    """The inputs of a tree, in the order of the text."""
    return tree if isinstance(tree, str) else leaves(tree[1]) + leaves(tree[2])


@st.composite
def cases(
    draw: st.DrawFn,
    queries: st.SearchStrategy[Query],
    cuts: Sequence[int] = (1, 2, 7),
    units: Sequence[int] = (1, 2, 8),
    most: int = 20,
    least: int = 0,
) -> Case:
    query = draw(queries)
    key = draw(st.sampled_from(list(KEYS)))
    row = st.tuples(
        st.sampled_from(KEYS[key]),
        st.sampled_from(["x", "y", None]),
        st.integers(0, 3),
        st.sampled_from([*range(7), None]),
    )
    names = leaves(query.tree)
    count = draw(st.sampled_from(cuts))
    random = Random(draw(st.integers(0, 999)))
    haste = draw(st.sampled_from([0, 0, 2, 6]))  # how far rows overtake each other
    rows = {}
    for name in names:
        drawn = draw(st.lists(row, min_size=least, max_size=most))
        rows[name] = sorted(drawn, key=lambda r: (r[3] or 0) + random.randint(0, haste))
    return Case(
        query=query,
        key=key,
        time=draw(st.sampled_from([UTC, UTC, NTZ])),
        rows=rows,
        delay_s=draw(st.sampled_from([0, haste])),
        cuts={
            n: [*sorted(random.randint(0, len(r)) for _ in range(count - 1)), len(r)] for n, r in rows.items()
        },
        units=draw(st.sampled_from(units)),
        tuning=draw(tunings()),
        trouble=draw(troubles(count)),
        spooled_rows=draw(st.sampled_from([1, 2, 1000])),
    )
