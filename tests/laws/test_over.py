"""Window functions over changing rows, against DuckDB after every batch; the unit is restored before each.

Law: the sum of what has come out is the query over the sum of what has come in.
"""

import random
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp

from joinlib.errors import SpecError
from joinlib.expr import ref
from joinlib.model.inputs import WEIGHT, InputPlan, StoredColumn
from joinlib.model.over import Over
from joinlib.model.tuning import Tuning
from joinlib.model.watermark import Tick
from joinlib.over.unit import OverUnit
from joinlib.route.content import weights
from joinlib.route.split import prepare
from joinlib.sql.graph import Table
from joinlib.sql.over import over_of
from joinlib.sql.parse import parse
from joinlib.state.manifest import decode, empty
from tests.laws.document import written
from tests.laws.product import Course, Product
from tests.laws.windows import MINUTE, SCHEMA, START, Case, Row, batch, case, counted, row, told

SEEDS = st.integers(0, 2**32)


def over(text: str, **more: object) -> Over:
    """Return the plan of a query over `s`."""
    query = parse(text)
    assert isinstance(query, exp.Select)
    return replace(over_of(text, query, Table("s", SCHEMA, "t")), **more)


def plan(asked: Over) -> InputPlan:
    """Return how rows of the source reach the unit."""
    columns = tuple(StoredColumn(name, ref(name, kind)) for name, kind in asked.columns)
    time = None if asked.settles_by is None else "s.t"
    return InputPlan(
        0, "s", "s", tuple(SCHEMA.names), None, columns, asked.partition, time, 0, None, True,
        changes=asked.changes, null_is_value=True,
    )  # fmt: skip


class Unit:
    """A unit that is restored from its manifest before each batch."""

    def __init__(self, folder: Path, asked: Over, file_bytes: int = 1) -> None:
        self.folder, self.asked, self.plan = folder, asked, plan(asked)
        self.tuning, self.number, self.manifest = (
            Tuning(file_bytes=file_bytes, retain_batches=1),
            0,
            empty(1, 1),
        )

    def batch(
        self,
        rows: Sequence[Row],
        weights: Sequence[int] | None = None,
        highest: int | None = None,
        closed: bool = False,
    ) -> list[pa.RecordBatch]:
        given = batch(rows)
        if self.asked.changes:
            given = given.append_column(pa.field(WEIGHT, pa.int64()), pa.array(weights, pa.int64()))
        cut = len(rows) // 2
        blocks = [
            (0, n, prepare(self.plan, b, 0)) for n, b in enumerate((given.slice(0, cut), given.slice(cut)))
        ]
        tick = Tick(0, closed=closed) if highest is None else Tick(0, highest, closed=closed)
        unit = OverUnit(self.asked, (self.plan,), 0, self.folder, self.tuning, decode(self.manifest.encode()))
        out = list(unit.run(self.number, blocks[::-1], [tick]))
        self.number, self.manifest = self.number + 1, unit.manifest
        return out


@pytest.mark.slow
@given(SEEDS)
def test_a_changelog_is_the_query_after_every_batch(seed: int) -> None:
    """Rows come and go, with equals and NULLs."""
    dice = random.Random(seed)
    asked, changes = case(dice), dice.random() < 0.6
    live: list[Row] = []
    with TemporaryDirectory() as folder:
        unit = Unit(Path(folder), over(asked.ours, changes=changes, changelog=True))
        out = counted([])
        for _ in range(4):
            rows, weights = [row(dice) for _ in range(dice.choice([0, 3, 9]))], []
            if changes:
                gone = dice.sample(live, min(len(live), dice.choice([0, 2, 5])))
                weights, rows = [1] * len(rows) + [-1] * len(gone), rows + gone
                for one in gone:
                    live.remove(one)
                live += [r for r, w in zip(rows, weights, strict=True) if w > 0]
            else:
                live += rows
            more = unit.batch(rows, weights)
            out.update(counted(more))
            assert {r: n for r, n in out.items() if n} == dict(told(asked, live)), asked.ours
            for one in more:
                assert all(len(signs) == 1 for signs in _signs(one).values())


def _signs(out: pa.RecordBatch) -> dict[Row, set[bool]]:
    """Whether each row comes or goes: one that does both would come for nothing. Equal rows may come one by one."""
    found: dict[Row, set[bool]] = {}
    for *values, weight in zip(*(c.to_pylist() for c in out.columns), strict=True):
        found.setdefault(tuple(values), set()).add(weight > 0)
    return found


@pytest.mark.slow
@given(SEEDS)
def test_rows_come_out_once_when_the_watermark_has_passed_them(seed: int) -> None:
    """Whatever the watermarks and the cut into batches, values are those of all rows that were not late."""
    dice = random.Random(seed)
    asked = case(dice, settling=True)
    plan_ = over(asked.ours)
    assert plan_.time == "s.t"
    out, seen, top, clock = counted([]), [], 0, -1
    with TemporaryDirectory() as folder:
        unit = Unit(Path(folder), plan_)
        for at in range(6):
            rows = [
                row(dice, time=dice.randint(max(0, clock - 1), top + 3))
                for _ in range(dice.choice([0, 3, 9]))
            ]
            seen += [r for r in rows if r[1] >= START + clock * MINUTE]
            top = max([top, *(int((r[1] - START) / MINUTE) for r in rows)])
            clock = max(clock, dice.randint(0, top))
            now = int((START + clock * MINUTE).timestamp() * 1_000_000)
            out.update(counted(unit.batch(rows, highest=now, closed=at == 5)))
            if at < 5:
                final = _before(told(asked, seen), START + clock * MINUTE)
                assert out == final, asked.ours
        assert out == told(asked, seen), asked.ours
        assert unit.manifest.sides[0].rows == 0


def _before(answer: dict[Row, int], before: object) -> dict[Row, int]:
    return {r: n for r, n in answer.items() if r[1] < before}


@pytest.mark.slow
@given(SEEDS)
def test_of_rows_that_only_come_those_behind_the_top_are_not_kept(seed: int) -> None:
    """The answer is that over all rows; without equals, state is what the ranks allow."""
    dice = random.Random(seed)
    name, limit = dice.choice(["row_number", "rank", "dense_rank"]), dice.choice([1, 2, 3])
    by = f"v {dice.choice(['ASC', 'DESC'])} NULLS LAST"
    total = by + "".join(f", {n} NULLS FIRST" for n in SCHEMA.names) * (name == "row_number")
    text = "SELECT k, t, v, x, m, s, b, {}() OVER (PARTITION BY k ORDER BY {}) AS r FROM s QUALIFY r <= {}"
    asked = Case(text.format(name, by, limit), text.format(name, total, limit))
    seen: list[Row] = []
    with TemporaryDirectory() as folder:
        plan_ = over(asked.ours, changelog=True)
        assert plan_.top == ("$w0", limit)
        unit, out = Unit(Path(folder), plan_), counted([])
        for _ in range(5):
            rows = [row(dice) for _ in range(9)]
            seen += rows
            out.update(counted(unit.batch(rows)))
            answer = told(asked, seen)
            assert {r: n for r, n in out.items() if n} == dict(answer)
        assert _weight(unit) == answer.total()


def test_of_rows_that_wait_for_the_watermark_those_behind_the_top_are_not_kept() -> None:
    """A row that is late leaves out none that is not, and is not counted among those that are ahead."""
    asked = over("SELECT k, t, row_number() OVER (PARTITION BY k ORDER BY t) AS r FROM s QUALIFY r <= 2")
    assert asked.settles_by == "s.t" and not asked.cuts
    dice = random.Random(1)
    with TemporaryDirectory() as folder:
        unit = Unit(Path(folder), asked)
        unit.batch([("b", *row(dice, time=10)[1:])], highest=_moment(10))
        given = [("a", row(dice, time=at)) for at in (3, 15, 12, 14, 13)]
        unit.batch([(key, *rest) for key, (_, *rest) in given], highest=_moment(10))
        assert unit.manifest.sides[0].rows == 1 + 2
        out = counted(unit.batch([], closed=True))
    assert {(r[1], r[2]) for r in out if r[0] == "a"} >= {(START + 12 * MINUTE, 1), (START + 13 * MINUTE, 2)}


def _moment(minutes: int) -> int:
    return int((START + minutes * MINUTE).timestamp() * 1_000_000)


def _weight(unit: Unit) -> int:
    """How many rows the segments hold, less those that they take back."""
    rows = OverUnit(unit.asked, (unit.plan,), 0, unit.folder, unit.tuning, unit.manifest).stored[0]
    return sum(int(weights(rows.read(s)).sum()) for s in rows.segments)


SESSION = (
    "SELECT k, t, v, `$session_start`(t, INTERVAL 2 MINUTES) OVER (PARTITION BY k ORDER BY t) AS a,"
    " `$session_end`(t, INTERVAL 2 MINUTES) OVER (PARTITION BY k ORDER BY t) AS z FROM s"
)
SESSION_DUCK = """
    SELECT k, t, v, min(t) OVER w AS a, max(t) OVER w + INTERVAL 2 MINUTE AS z FROM (
        SELECT *, count(*) FILTER (WHERE far) OVER (PARTITION BY k ORDER BY t) AS n FROM (
            SELECT *, t - lag(t) OVER (PARTITION BY k ORDER BY t) > INTERVAL 2 MINUTE AS far FROM s))
    WINDOW w AS (PARTITION BY k, n)"""


@pytest.mark.slow
@given(SEEDS, st.booleans())
def test_sessions_end_when_nothing_comes_for_longer_than_their_gap(seed: int, changelog: bool) -> None:
    """As a changelog they grow, merge and fall apart; by time they come out once no row can lengthen them."""
    dice, asked = random.Random(seed), Case(SESSION, SESSION_DUCK)
    seen: list[Row] = []
    clock = -1
    with TemporaryDirectory() as folder:
        unit, out = Unit(Path(folder), over(SESSION, changelog=changelog)), counted([])
        for _ in range(5):
            rows = [row(dice, time=dice.randint(0, 25)) for _ in range(dice.choice([0, 2, 6]))]
            seen += rows if changelog else [r for r in rows if r[1] >= START + clock * MINUTE]
            clock = max(clock, dice.randint(0, 20))
            now = int((START + clock * MINUTE).timestamp() * 1_000_000)
            out.update(counted(unit.batch(rows, highest=now)))
            answer = dict(told(asked, seen))
            final = {r: n for r, n in answer.items() if changelog or r[4] < START + clock * MINUTE}
            assert {r: n for r, n in out.items() if n} == final
        out.update(counted(unit.batch([], closed=True)))
        assert {r: n for r, n in out.items() if n} == answer


def test_a_mean_with_too_many_digits_is_told(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    table = pa.table({"m": pa.array([Decimal(10**32 - 1)] * 2, pa.decimal128(38, 6))})
    pq.write_table(table, tmp_path / "s" / "0.parquet")
    spec = {
        "sql": "SELECT avg(m) OVER () AS a FROM s",
        "inputs": {"s": {"schema": "m DECIMAL(38,6)", "files": {"path": "s"}}},
        "output": {"mode": "changelog", "files": {"path": "out"}},
        "checkpoint": {"path": "checkpoint"},
    }
    with pytest.raises(SpecError, match=r"is too large for DECIMAL\(38,10\); CAST its argument"):
        list(Product(written(spec, tmp_path), Tuning(), Course()).batches())
