"""Rows of a map task that wait for each other before they are split."""

from collections import defaultdict
from pathlib import Path

import pyarrow as pa
import pytest

from joinlib.engine import edge
from joinlib.engine.exchange import receive
from joinlib.engine.wire import BLOCK, ExchangeRow
from joinlib.route.slots import slots
from joinlib.route.split import block_schema
from tests.unit.engine.bench import TUNING, UNITS, Bench

SQL = "SELECT a.k AS k, b.v AS v FROM a JOIN b ON a.k = b.k WHERE a.v <> 3"
SCHEMA = "k BIGINT, v BIGINT"
PARTS = (5, 0, 40, 1, 7, 200, 3)  # rows of each


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path, {"a": SCHEMA, "b": SCHEMA}, False, SQL)


def sent(bench: Bench, gathering: bool) -> dict[int, list[tuple[int, pa.RecordBatch]]]:
    """The blocks of each unit, in the order of their numbers."""
    pipeline = bench.plan.pipeline
    plan = pipeline.stages[0].inputs[0]
    sender = edge.senders(pipeline, bench.folder, TUNING, None)[0]
    way = edge.edge(pipeline, 0, plan, sender, TUNING.hash_bits, gathering)
    made, first = [], 0
    for number, rows in enumerate(PARTS, 9):
        values = pa.array(range(first, first + rows), pa.int64())
        made += way.rows(
            number, pa.record_batch([values, pa.array([n % 4 for n in range(rows)])], ["k", "v"])
        )
        first += rows
    made += way.end(0)
    rows = [row for batch in made for row in zip(*(c.to_pylist() for c in batch.columns), strict=True)]
    of = defaultdict(list)
    for unit, slot in enumerate(slots(UNITS)):
        blocks = receive([row for row in rows if row[0] == slot], pipeline.stages[0].inputs, bench.folder)
        of[unit] = [(sequence, block) for _, sequence, block, _ in sorted(blocks.rows, key=lambda b: b[1])]
    return of


def test_small_parts_make_one_block(bench: Bench) -> None:
    """Every unit has the rows that it would have of each part alone, but in one block."""
    alone, together = sent(bench, False), sent(bench, True)
    assert {unit: [number for number, _ in blocks] for unit, blocks in together.items()} == {
        unit: [15] for unit in range(UNITS)
    }
    for unit, blocks in alone.items():
        assert len(blocks) > 2
        apart = pa.Table.from_batches([block for _, block in blocks])
        assert apart.sort_by("a.k").equals(pa.Table.from_batches([together[unit][0][1]]).sort_by("a.k"))


@pytest.mark.parametrize(
    ("rows", "before", "copied"), [(10_000, 0, False), (10_000, 8, False), (10_000, 3, True), (64, 0, True)]
)
def test_blocks_are_used_where_they_lie(bench: Bench, rows: int, before: int, copied: bool) -> None:
    """In the memory of the exchange rows, if they are large, and aligned there; else they are copied."""
    inputs = bench.plan.pipeline.stages[0].inputs
    schema = block_schema(inputs[0])
    made = pa.record_batch([pa.array(range(rows)).cast(f.type) for f in schema], schema=schema).serialize()
    whole = pa.py_buffer(bytes(before) + made.to_pybytes() + bytes(8))
    row = ExchangeRow(0, 0, BLOCK, block=whole.slice(before, made.size))
    ((_, _, found, _),) = receive([row], inputs, bench.folder).rows
    values = found.column(0).buffers()[1]
    assert (whole.address <= values.address < whole.address + whole.size) != copied
    assert values.address % 8 == 0
    assert found.column(0).to_pylist() == [*range(rows)]


def test_no_more_rows_wait_than_are_split_at_once(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A part that is larger goes alone; the numbers of blocks rise."""
    monkeypatch.setattr(edge, "SPLIT_ROWS", 50)
    blocks: dict[int, int] = defaultdict(int)
    for unit in sent(bench, True).values():
        assert [number for number, _ in unit] == sorted({number for number, _ in unit})
        for number, block in unit:
            blocks[number] += block.num_rows
    rows = {n: sum(1 for v in range(size) if v % 4 != 3) for n, size in enumerate(PARTS, 9)}
    assert blocks == {13: sum(rows[n] for n in (9, 11, 12, 13)), 14: rows[14], 15: rows[15]}


def test_wide_rows_do_not_wait(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits is bounded in bytes as well."""
    monkeypatch.setattr(edge, "SPLIT_BYTES", 1)
    numbers = {number for unit in sent(bench, True).values() for number, _ in unit}
    assert numbers == {number for unit in sent(bench, False).values() for number, _ in unit}
