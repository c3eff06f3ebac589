"""Which rows are up to the top rank, also where they are found part by part, and with which numbers they are sent."""

import random
from pathlib import Path

import pyarrow as pa
import pytest

from joinlib.aggregate import pile
from joinlib.engine.edge import TopWay, edge, senders
from joinlib.engine.wire import SCHEMA
from joinlib.model.over import Over
from joinlib.model.stage import OverStage, Pipeline
from joinlib.model.tuning import Tuning
from joinlib.over.compute import computed
from joinlib.over.top import Top, top
from joinlib.plan import JoinOptions, SourceInput, pipeline
from joinlib.plan.explain import explain
from joinlib.route.split import prepare

ROWS = pa.schema([("k", pa.int64()), ("j", pa.string()), ("v", pa.int64()), ("w", pa.string())])


def plan(rank: str, most: int, part: str = "k") -> Pipeline:
    sql = f"SELECT * FROM s QUALIFY {rank}() OVER (PARTITION BY {part} ORDER BY v DESC NULLS LAST) <= {most}"
    return pipeline(sql, {"s": SourceInput(ROWS)}, JoinOptions(units=2), mode="changelog")


def over(found: Pipeline) -> Over:
    assert isinstance(found.last, OverStage)
    return found.last.over


def rows(dice: random.Random, count: int) -> pa.RecordBatch:
    """Many of them are equal, in some columns or in all."""
    columns: list[list[object]] = [
        [
            dice.choice(["a", "b", None]) if f.type == pa.string() else dice.choice([None, 1, 2, 3])
            for _ in range(count)
        ]
        for f in ROWS
    ]
    return pa.record_batch([pa.array(c, f.type) for c, f in zip(columns, ROWS, strict=True)], schema=ROWS)


def listed(batch: pa.RecordBatch) -> list[str]:
    return sorted(map(str, batch.to_pylist()))


@pytest.mark.parametrize("rank", ["row_number", "rank", "dense_rank"])
@pytest.mark.parametrize("part", ["k", "k, j"])
def test_parts_are_cut_as_the_whole_is(rank: str, part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is what the ranks of all rows say."""
    dice = random.Random(7)
    for most in (0, 1, 2, 3, 50):
        found = plan(rank, most, part)
        asked, own = over(found), found.inputs[0]
        blocks = [prepare(own, rows(dice, dice.choice([0, 1, 5, 30])), n) for n in range(6)]
        whole = pa.concat_batches(blocks)
        ranks = computed(asked, whole)
        wanted = ranks.layout.rows[ranks.values["$w0"].to_numpy() <= most]
        assert listed(top(whole, asked)) == listed(whole.take(pa.array(wanted)))
        for chunk in (1, 20, 1000):
            monkeypatch.setattr(pile, "CHUNK", chunk)
            best = Top(asked)
            for block in blocks:
                best.add(block)
            assert listed(best.rows()) == listed(whole.take(pa.array(wanted)))


def sent(numbered: list[tuple[int, pa.RecordBatch]], tmp_path: Path) -> list[tuple[int, int]]:
    """The numbers of the blocks that a task sends, and how many rows of how many units have them."""
    found = plan("row_number", 1)
    sender = senders(found, tmp_path, Tuning(), 0)[0]
    way = edge(found, 0, found.inputs[0], sender, 64)
    assert isinstance(way, TopWay)
    made = [out for at, some in numbered for out in way.rows(at, some)] + list(way.end(7))
    assert all(one.schema == SCHEMA for one in made)
    pairs = [(one.column("sequence")[0].as_py(), sum(one.column("rows").to_pylist())) for one in made]
    assert len({at for at, _ in pairs}) == len(pairs), "blocks of one number have no order"
    return pairs


def test_rows_are_sent_at_the_end_with_the_number_of_the_last_of_them(tmp_path: Path) -> None:
    """No other task has it."""
    same = pa.record_batch(
        [
            pa.array(column, f.type)
            for column, f in zip([[1] * 3, ["a"] * 3, [1, 3, 2], ["x"] * 3], ROWS, strict=True)
        ],
        schema=ROWS,
    )
    assert sent([(5 << 32, same), (5 << 32 | 1, same)], tmp_path) == [(5 << 32 | 1, 1)]
    assert sent([], tmp_path) == []


def test_where_hardly_a_row_is_left_out_they_are_sent_as_they_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Holding them back would only take memory."""
    monkeypatch.setattr(pile, "CHUNK", 5)

    def some(first: int) -> pa.RecordBatch:
        columns = [list(range(first, first + 4)), ["a"] * 4, [1] * 4, ["x"] * 4]
        return pa.record_batch([pa.array(c, f.type) for c, f in zip(columns, ROWS, strict=True)], schema=ROWS)

    numbered = [(20 + at, some(4 * at)) for at in range(4)]
    assert sent(numbered, tmp_path) == [(21, 8), (22, 4), (23, 4)]
    assert sent([(20 + at, some(0)) for at in range(4)], tmp_path) == [(23, 4)]


def test_a_plan_says_where_rows_are_left_out() -> None:
    """Not where they may come back, and not where late ones are dropped later."""
    assert "each task that reads the input sends, of each partition, only its rows up to rank 2" in explain(
        plan("rank", 2)
    )
    changing = pipeline(
        "SELECT k FROM s QUALIFY rank() OVER (PARTITION BY k ORDER BY v) = 1",
        {"s": SourceInput(ROWS, changes=True)},
        JoinOptions(),
        mode="changelog",
    )
    assert not over(changing).cuts and "phase 1" not in explain(changing)
