"""Groups over rows that come and go: after each batch, what has come out is the query over what has come in."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from joinlib.aggregate import extremes
from joinlib.aggregate.partial import Partials
from joinlib.aggregate.unit import Block, GroupUnit
from joinlib.expr import Expr, ref
from joinlib.expr.compare import compare
from joinlib.expr.nodes import constant
from joinlib.model.grouping import AggregateCall, Grouping
from joinlib.model.time import ALWAYS, NEVER
from joinlib.model.tuning import Tuning
from joinlib.state.manifest import decode, empty
from tests.unit.aggregate.groups import stage, tick
from tests.unit.aggregate.histories import Row, answer, batch, counted, grouping, histories

TUNING = Tuning(file_bytes=1, retain_batches=1)
Part = list[tuple[Row, int]]


class Unit:
    """A unit that is restored from its manifest before each batch; keeps the sums of what came in and what came out."""

    def __init__(self, folder: str | Path, asked: Grouping) -> None:
        self.folder, self.asked, self.number, self.manifest = Path(folder), asked, 0, empty(1, 1)
        self.came: Counter[Row] = Counter()
        self.out: Counter[Row] = Counter()

    def batch(self, *parts: Part, watermark: int = NEVER) -> Counter[Row]:
        blocks: list[Block] = []
        for at, part in enumerate(parts):
            partials = Partials(self.asked)
            partials.add(batch(part, self.asked.changes))
            blocks += [(at, number, block) for number, block in partials.blocks()]
        self.came.update({row: 0 for part in parts for row, _ in part})
        for row, weight in (change for part in parts for change in part):
            self.came[row] += weight
        unit = GroupUnit(stage(self.asked), 0, self.folder, TUNING, decode(self.manifest.encode()))
        found = counted(list(unit.run(self.number, blocks, [tick(watermark)])))
        self.number, self.manifest = self.number + 1, unit.manifest
        for row, times in found.items():
            assert times == 1
            if self.asked.changelog:
                self.out[row[:-1]] += row[-1]
        return found


@settings(max_examples=20)
@given(histories(), st.integers(0, 2))
def test_the_changes_add_up_to_the_answer_after_each_batch(history: list[list[Part]], keys: int) -> None:
    """All functions over all types; NULL, NaN and -0.0 among keys and values; batches that only delete; keys that come back."""
    # Windows of one row: what is in one segment is taken back in another, behind the window.
    with TemporaryDirectory() as folder, patch.multiple(extremes, WINDOW=1, WIDER=2):
        unit = Unit(folder, grouping(keys, changes=True, changelog=True))
        for parts in history:
            found = unit.batch(*parts)
            assert not {row[:-1] for row in found if row[-1] < 0} & {row[:-1] for row in found if row[-1] > 0}
            assert +unit.out == answer(+unit.came, unit.asked)
            assert min(unit.out.values(), default=0) >= 0


@settings(max_examples=10)
@given(histories(changes=False), st.integers(0, 2))
def test_rows_that_only_come_give_the_same(history: list[list[Part]], keys: int) -> None:
    """The new functions need no weights."""
    asked = grouping(keys, changelog=True)
    exact = [c for c in asked.calls if c.function not in ("sum", "avg") or c.source != pa.float64()]
    asked = replace(asked, calls=tuple(exact), select=_selected(asked, exact))
    with TemporaryDirectory() as folder:
        unit = Unit(folder, asked)
        for parts in history:
            unit.batch(*parts)
            assert +unit.out == answer(+unit.came, asked)


def _selected(asked: Grouping, calls: list[AggregateCall]) -> tuple[tuple[str, Expr], ...]:
    names = {k.name for k in asked.keys} | {c.name for c in calls}
    return tuple(column for column in asked.select if column[0] in names)


@settings(max_examples=10)
@given(histories(), st.integers(0, 2))
def test_groups_come_out_when_the_inputs_are_closed(history: list[list[Part]], keys: int) -> None:
    """Once, as they are then; nothing is kept of them."""
    with TemporaryDirectory() as folder:
        unit = Unit(folder, grouping(keys, changes=True))
        for parts in history:
            assert not unit.batch(*parts)
        assert unit.batch(watermark=ALWAYS) == answer(+unit.came, unit.asked)
        assert not unit.batch(watermark=ALWAYS)
        assert not any(side.rows for side in unit.manifest.sides)


@settings(max_examples=10)
@given(histories(), st.booleans())
def test_having_and_distinct(history: list[list[Part]], distinct: bool) -> None:
    """A group goes when its condition is not true any more, and when its last row goes."""
    asked = grouping(2, changes=True, changelog=True)
    few = replace(asked, having=compare("<", ref("$a", pa.int64()), constant(pa.scalar(3), "3")))
    if distinct:
        few = replace(asked, calls=(), select=asked.select[:2])
    with TemporaryDirectory() as folder:
        unit = Unit(folder, few)
        for parts in history:
            unit.batch(*parts)
            expected = answer(+unit.came, few)
            assert +unit.out == (expected if distinct else Counter(r for r in expected if r[2] < 3))


def test_state_follows_what_lives(tmp_path: Path) -> None:
    """Of ever new values, and of groups that have gone, nothing stays, and no file."""
    every = grouping(1, changes=True, changelog=True)
    wanted = [c for c in every.calls if c.sql in ("min($x0)", "count(DISTINCT $x3)", "var_pop($x2)")]
    unit = Unit(tmp_path, replace(every, calls=tuple(wanted), select=_selected(every, wanted)))
    kept: list[Row] = []
    for at in range(24):
        rows: list[Row] = [(f"k{at % 3}", None, at, None, at * 0.1, str(at), None)]
        unit.batch([(row, 1) for row in rows], [(row, -1) for row in kept])
        kept = rows
    assert max(side.rows for side in unit.manifest.sides) <= 2 * 24  # limbs of one number, and those that go
    unit.batch([(row, -1) for row in kept])
    unit.batch()

    assert +unit.out == Counter()
    assert sum(side.rows for side in unit.manifest.sides) <= 24
    assert {f.name for f in tmp_path.iterdir()} == unit.manifest.names
