"""The first rows of partitions, of which tasks leave out others before they send: on the product's own path, against DuckDB.

Law: after each batch the sum of what has come out is the query over the rows read so far, whoever left out which.
"""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinlib.aggregate import pile
from joinlib.expr.types import name
from joinlib.model.stage import OverStage
from joinlib.spec import StreamJoin
from tests.laws.changelog import Answer, Changelog, bare
from tests.laws.document import written
from tests.laws.harness import SMALL
from tests.laws.product import Course, Product, courses, own_folder
from tests.laws.windows import MINUTE, SCHEMA, START, Case, Row, batch, row, told

TABLES = {
    "s": "s",
    "joined": "(SELECT a.* FROM s a JOIN s b ON a.v = b.v)",  # rows that are equal, from units of a join
    "united": "(SELECT * FROM s WHERE b UNION ALL SELECT * FROM s)",
}
EVERY = ", ".join(SCHEMA.names)


@contextmanager
def merged_from(rows: int) -> Iterator[None]:
    """Piles are merged from so many rows on."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pile, "CHUNK", rows)
        yield


def question(dice: random.Random) -> Case:
    """The first rows of partitions, or of all; rows that are equal in ORDER BY are told apart by all columns."""
    keys = [
        f"{key} {dice.choice(['ASC', 'DESC'])} NULLS {dice.choice(['FIRST', 'LAST'])}"
        for key in dice.sample(["t", "v", "x", "m", "s", "b"], dice.randint(1, 2))
    ]
    total = ", ".join([*keys, *(f"{n} ASC NULLS FIRST" for n in SCHEMA.names)])
    by, table = ", ".join(keys), dice.choice(list(TABLES.values()))
    if dice.random() < 0.25:
        text = f"SELECT {EVERY} FROM {table} q ORDER BY {{}} LIMIT {dice.randint(1, 5)}"
        return Case(text.format(by), text.format(total))
    part = dice.choice(["PARTITION BY k", "PARTITION BY k, b", "PARTITION BY x"])
    rank = dice.choice(["row_number", "row_number", "rank", "dense_rank"])
    text = (
        f"SELECT {EVERY}, {rank}() OVER ({part} ORDER BY {{}}) AS r,"
        f" count(v) OVER ({part} ORDER BY {{}} ROWS 2 PRECEDING) AS n"
        f" FROM {table} q QUALIFY r <= {dice.randint(1, 3)} AND n >= {dice.choice([0, 0, 1])}"
    )
    return Case(text.format(by, by), text.format(total if rank == "row_number" else by, total))


def spec(folder: Path, files: Sequence[Sequence[Row]], sql: str, mode: str, at_once: int = 3) -> StreamJoin:
    """Write the files; return what reads some of them a batch."""
    (folder / "s").mkdir()
    for at, rows in enumerate(files):
        pq.write_table(pa.Table.from_batches([batch(rows)]), folder / "s" / f"{at:03d}.parquet")
    source = {
        "schema": ", ".join(f"{f.name} {name(f.type)}" for f in SCHEMA),
        "files": {"path": "s", "maxFilesPerBatch": at_once, "orderBy": "name"},
        "eventTime": {"column": "t", "delay": "1m"},
    }
    asked: dict[str, Any] = {
        "sql": sql,
        "inputs": {"s": source},
        "output": {"mode": mode, "files": {"path": "out"}},
        "checkpoint": {"path": "checkpoint", "sync": False},
        "join": {"units": 4},
    }
    return written(asked, folder)


def expected(asked: Case, rows: Sequence[Row]) -> Answer:
    return Counter({tuple(map(bare, found)): n for found, n in told(asked, rows).items()})


@pytest.mark.slow
@given(st.integers(0, 2**32), courses(4))
def test_what_tasks_leave_out_was_never_in_the_answer(seed: int, course: Course) -> None:
    """With ties, NULLs, times behind the watermark; batches run twice, processes are new, partitions change."""
    dice = random.Random(seed)
    asked = question(dice)
    files = [[row(dice) for _ in range(dice.choice([0, 1, 4, 12]))] for _ in range(9)]
    rows = [one for some in files for one in some]
    with own_folder() as folder, merged_from(dice.choice([1, 3, 1000])):
        run = Product(spec(folder, files, asked.ours, "changelog"), SMALL, course)
        assert [s.over.cuts for s in run.plan.pipeline.stages if isinstance(s, OverStage)] == [True]
        seen = Changelog(folder / "out")
        for number in run.batches():
            seen.batch(number, units_apart=False)
            assert seen.answer == expected(asked, rows[: run.read("s")]), asked.ours
        if len(run.plan.pipeline.stages) == 1:
            read = len(run.plan.pipeline.inputs) * len(rows)
            assert sum(run.figures.rows_in) == read, "rows that were left out were read"


def test_a_row_that_is_late_leaves_out_none_that_is_not() -> None:
    """In mode append: of two rows of one task the first one is late, so the second is the partition's first."""
    sql = "SELECT k, t FROM s QUALIFY row_number() OVER (PARTITION BY k ORDER BY t) <= 1"
    files = [[_at("b", 20)], [_at("a", 1), _at("a", 22), _at("a", 21), _at("b", 30), _at("a", None)]]
    with own_folder() as folder:
        run = Product(spec(folder, files, sql, "append", at_once=1), SMALL, Course())
        assert not any(s.over.cuts for s in run.plan.pipeline.stages if isinstance(s, OverStage))
        out = [row for n in run.batches() for row in _appended(folder / "out", n)]
    assert sorted(out) == [("a", _naive(21)), ("b", _naive(20))]


def _at(key: str, minutes: int | None) -> Row:
    return (key, None if minutes is None else START + minutes * MINUTE, 1, 0.0, None, "", True)


def _naive(minutes: int) -> datetime:
    return (START + minutes * MINUTE).replace(tzinfo=None)


def _appended(out: Path, number: int) -> Iterator[tuple[object, ...]]:
    for file in sorted((out / f"batch={number}").glob("*.parquet")):
        table = pq.read_table(file, partitioning=None)
        yield from (
            tuple(map(bare, found)) for found in zip(*(c.to_pylist() for c in table.columns), strict=True)
        )
