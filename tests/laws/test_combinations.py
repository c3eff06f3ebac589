"""The law of the whole product: stages, tables, groups, kinds of join, strategies, outputs, units, cuts and thresholds, *combined*.

After all batches, and after each one where nothing waits, what can be read is what DuckDB answers over the rows that were
read; and plain loops say the same as DuckDB. More examples: STREAMJOIN_COMBINATIONS=5000.
"""

import datetime as dt
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import event, given, reject, settings
from hypothesis import strategies as st

from joinlib.errors import SpecError
from joinlib.model.tuning import Tuning
from joinlib.spec import StreamJoin
from tests.laws.cases import differences, tunings
from tests.laws.changelog import Answer, bare
from tests.laws.combined import KEYS, STREAMS, TABLES, TYPES, Question, questions
from tests.laws.document import written
from tests.laws.oracle import Row, duckdb_rows
from tests.laws.product import Course, Product, courses, own_folder, tells

EXAMPLES = int(os.environ.get("STREAMJOIN_COMBINATIONS", "120"))
_START = dt.datetime(2026, 1, 1)  # noqa: DTZ001 - as in most files, no zone


@dataclass(frozen=True)
class Case:
    """A question, its rows and files, and how it is run."""

    question: Question
    key: tuple[str, str]  # types of k in streams and in tables
    rows: dict[str, list[tuple[object, ...]]]  # in the order of their arrival
    cuts: dict[str, list[int]]  # of each input, where its files end
    delay_s: int
    at_once: int  # files of a batch
    units: int
    tuning: Tuning
    course: Course
    strategy: str
    changelog: bool
    retention_s: int | None = None

    def columns(self, name: str) -> list[tuple[str, str]]:
        first = [("k", self.key[name in TABLES]), ("j", "STRING"), ("v", "BIGINT")]
        return [
            *first,
            *([("low", "BIGINT"), ("high", "BIGINT")] if name in TABLES else [("t", "TIMESTAMP")]),
        ]

    def table(self, name: str, rows: Sequence[tuple[object, ...]]) -> pa.Table:
        schema = pa.schema([(c, TYPES[kind]) for c, kind in self.columns(name)])
        return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)

    def write(self, folder: Path) -> StreamJoin:
        """The files, and the spec that reads them."""
        for name, ends in self.cuts.items():
            (folder / name).mkdir()
            for at, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
                rows = self.table(name, self.rows[name][start:end])
                pq.write_table(rows, folder / name / f"{at:03d}.parquet")
        spec = {
            "sql": self.question.sql,
            "inputs": {name: self._input(name) for name in self.cuts},
            "output": {"mode": "changelog" if self.changelog else "append", "files": {"path": "out"}},
            "checkpoint": {"path": "checkpoint", "sync": False},
            "join": {"units": self.units, "strategy": self.strategy}
            | ({} if self.retention_s is None else {"retention": f"{self.retention_s}s"}),
        }
        return written(spec, folder)

    def _input(self, name: str) -> dict[str, Any]:
        schema, files = ", ".join(" ".join(c) for c in self.columns(name)), {"path": name}
        if name in TABLES:
            return {"schema": schema, "files": files, "role": "table"}
        time = {"column": "t", "delay": f"{self.delay_s}s"}
        files |= {"maxFilesPerBatch": self.at_once, "orderBy": "name"}
        return {"schema": schema, "files": files, "eventTime": time}

    @property
    def answered(self) -> Question:
        """With what the spec asks for beside its text."""
        return self.question if self.retention_s is None else self.question.within(self.retention_s)

    def expected(self, read: dict[str, int] | None = None) -> Answer:
        """DuckDB's answer over so many rows of each stream; by default over all."""
        tables = {n: self.table(n, rows[: (read or {}).get(n)]) for n, rows in self.rows.items()}
        return duckdb_rows(self.answered.sql, tables)

    def loops(self) -> Answer:
        """The answer by definition."""
        rows: dict[str, list[Row]] = {n: self.table(n, found).to_pylist() for n, found in self.rows.items()}
        return self.answered.loops(rows)


class Seen:
    """What a reader of the output has after each batch: all rows, or the table that a changelog keeps."""

    def __init__(self, case: Case, out: Path) -> None:
        self.case, self.out = case, out
        self.rows: Answer = Counter()
        self.changes: Answer = Counter()

    def batch(self, number: int) -> None:
        for file in sorted((self.out / f"batch={number}").glob("*.parquet")):
            table = pq.read_table(file, partitioning=None)
            for row in zip(*(c.to_pylist() for c in table.columns), strict=True):
                self._row(tuple(map(bare, row)))

    def _row(self, row: tuple[object, ...]) -> None:
        if not self.case.changelog:
            self.rows[row] += 1
            return
        *values, change, _ = row
        self.changes[tuple(values)] += 1 if change == "insert" else -1
        assert self.changes[tuple(values)] >= 0, "what is deleted is what was there"

    @property
    def answer(self) -> Answer:
        return +self.changes if self.case.changelog else self.rows


def holds(case: Case) -> None:
    """The law."""
    with own_folder() as folder:
        document = case.write(folder)
        try:
            run = Product(document, case.tuning, case.course)
        except SpecError as refused:
            event(f"refused: {refused}"[:90])
            reject()
        tells(document)
        seen = Seen(case, folder / "out")
        final = run.plan.pipeline.final_close or case.question.waits
        for batch in run.batches():
            seen.batch(batch)
            if not final:
                read = {name: run.read(name) for name in case.rows if name in STREAMS}
                assert differences(case.expected(read), seen.answer) == {}, f"after batch {batch}"
    assert run.figures.late == (0,) * len(run.figures.late)
    assert differences(case.expected(), seen.answer) == {}
    assert differences(case.loops(), case.expected()) == {}


# --- runs ------------------------------------------------------------------------------------------------------------


@st.composite
def cases(
    draw: st.DrawFn, asked: st.SearchStrategy[Question], strategies: Sequence[str], retained: bool = False
) -> Case:
    question, key = draw(asked), draw(st.sampled_from(list(KEYS)))
    shared = [st.sampled_from(KEYS[key]), st.sampled_from(["x", "y", None]), st.integers(0, 3)]
    timed = st.tuples(*shared, st.sampled_from([*range(7), None]))
    ranged = st.tuples(*shared, st.sampled_from([0, 1, 2, None]), st.sampled_from([1, 2, 3, None]))
    random, haste = Random(draw(st.integers(0, 999))), draw(st.sampled_from([0, 0, 2, 6]))
    rows: dict[str, list[tuple[object, ...]]] = {}
    for name in question.inputs:
        drawn = draw(st.lists(ranged if name in TABLES else timed, max_size=6 if name in TABLES else 9))
        if name in STREAMS:
            drawn.sort(key=lambda r: (r[3] or 0) + random.randint(0, haste))
            drawn = [(*r[:3], None if r[3] is None else _START + dt.timedelta(seconds=r[3])) for r in drawn]
        rows[name] = list(drawn)
    count = draw(st.sampled_from([1, 2, 4]))
    units = draw(st.sampled_from([1, 2, 4, 8]))
    return Case(
        question=question,
        key=key,
        rows=rows,
        cuts={
            n: [*sorted(random.randint(0, len(r)) for _ in range(random.randrange(count))), len(r)]
            for n, r in rows.items()
        },
        delay_s=haste,
        at_once=draw(st.sampled_from([1, 1, 2])),
        units=units,
        tuning=replace(
            draw(tunings()),
            spool_bytes=draw(st.sampled_from([100, 1 << 16])),
            frame_rows=draw(st.sampled_from([2, 100_000])),
        ),
        course=draw(courses(units)),
        strategy=draw(st.sampled_from(strategies)),
        changelog=question.grouped and draw(st.booleans()),
        retention_s=draw(st.sampled_from([1, 3])) if retained else None,
    )


@pytest.mark.slow
@settings(max_examples=EXAMPLES)
@given(cases(questions(), ("auto", "auto", "binary", "multiway")))
def test_joins_by_equality(case: Case) -> None:
    """One to four streams in one stage or several, tables anywhere among them, joins of every kind."""
    holds(case)


@pytest.mark.slow
@settings(max_examples=EXAMPLES // 2)
@given(cases(questions(two=True), ("auto", "auto", "binary", "biclique", "inequality")))
def test_two_streams_by_any_strategy(case: Case) -> None:
    """By equality, by comparisons, by both or by anything else."""
    holds(case)


@pytest.mark.slow
@settings(max_examples=EXAMPLES // 2)
@given(cases(questions(kinds=("not in", "not in", "in")), ("auto",)))
def test_not_in(case: Case) -> None:
    """A NULL on either side decides about rows of every unit, in whichever stage they meet."""
    holds(case)


@pytest.mark.slow
@settings(max_examples=EXAMPLES // 4)
@given(cases(questions(inner=True), ("auto", "binary"), retained=True))
def test_retention(case: Case) -> None:
    """Old rows are dropped in every stage, and no answer is lost."""
    holds(case)
