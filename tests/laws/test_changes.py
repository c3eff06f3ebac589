"""Law 1, of the whole product: after each batch the sum of all changes that came out is DuckDB's answer over the tables as they
then are, whatever came, changed and went, in whatever batches, units and partitions, and whoever began anew in between.

Outer and anti joins do not wait. More examples: STREAMJOIN_CHANGES=5000.
"""

import datetime as dt
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, assume, event, given, reject, settings
from hypothesis import strategies as st

from joinlib.errors import SpecError
from joinlib.model.tuning import Tuning
from joinlib.spec import StreamJoin
from tests.laws.any_paths import any_paths
from tests.laws.cases import differences, tunings
from tests.laws.changelog import Answer, Changelog
from tests.laws.combined import KEYS, STRANGERS, STREAMS, TABLES, TYPES, Question, column, questions, shown
from tests.laws.document import written
from tests.laws.histories import START, Event, History, Values, histories
from tests.laws.oracle import Row, duckdb_rows
from tests.laws.product import Course, Product, courses, own_folder, tells

EXAMPLES = int(os.environ.get("STREAMJOIN_CHANGES", "120"))
OP = "_change_type"
LIVELY = settings(suppress_health_check=list(HealthCheck))  # many examples are thrown away


@dataclass(frozen=True)
class Case:
    """A question, what happens to its inputs, and how it is run."""

    question: Question
    key: tuple[str, str]  # types of k in streams and in tables
    histories: dict[str, History]  # of streams
    tables: dict[str, list[Values]]
    cuts: dict[str, list[int]]  # of each stream, where its files end
    delay_s: int | None  # None: the streams have no event time
    at_once: int  # files of a batch
    units: int
    tuning: Tuning
    course: Course
    strategy: str = "auto"
    output_key: tuple[str, ...] = ()
    mode: str = "changelog"
    twin: str | None = None  # this stream is the stream a once more
    retention_s: int | None = None

    @property
    def answered(self) -> Question:
        return self.question if self.retention_s is None else self.question.within(self.retention_s)

    def sql(self, question: Question) -> str:
        if self.twin is None:
            return question.sql
        return re.sub(rf"(JOIN|FROM) {self.twin}\b", rf"\1 a AS {self.twin}", question.sql)

    def columns(self, name: str) -> list[tuple[str, str]]:
        first = [("k", self.key[name in TABLES]), ("j", "STRING"), ("v", "BIGINT")]
        if name in TABLES:
            return [*first, ("low", "BIGINT"), ("high", "BIGINT")]
        return [*first, ("t", "TIMESTAMP"), ("id", "BIGINT")]

    def table(self, name: str, rows: Sequence[Values]) -> pa.Table:
        schema = pa.schema([(c, TYPES[kind]) for c, kind in self.columns(name)])
        return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)

    def write(self, folder: Path) -> StreamJoin:
        """The files, and the spec that reads them."""
        for name, history in self.histories.items():
            (folder / name).mkdir()
            for at, (start, end) in enumerate(zip([0, *self.cuts[name]], self.cuts[name], strict=False)):
                rows = self._said(name, history, history.events[start:end])
                pq.write_table(rows, folder / name / f"{at:03d}.parquet")
        for name, found in self.tables.items():
            (folder / name).mkdir()
            pq.write_table(self.table(name, found), folder / name / "000.parquet")
        output = {"mode": "changelog", "files": {"path": "out"}} | (
            {"key": [*self.output_key]} if self.output_key else {}
        )
        spec = {
            "sql": self.sql(self.question),
            "inputs": {name: self._input(name) for name in (*self.histories, *self.tables)},
            "output": output,
            "checkpoint": {"path": "checkpoint", "sync": False},
            "join": {"units": self.units, "strategy": self.strategy}
            | ({} if self.retention_s is None else {"retention": f"{self.retention_s}s"}),
        }
        document = written(spec, folder)
        # Files take no upserts; here they show what a table would be told.
        shown = document.spec.output.model_copy(update={"mode": self.mode})
        return document.model_copy(update={"spec": document.spec.model_copy(update={"output": shown})})

    def _said(self, name: str, history: History, events: Sequence[Event]) -> pa.Table:
        rows = self.table(name, [e.row for e in events])
        if history.words is None:
            return rows
        kind = pa.string() if isinstance(history.words["insert"], str) else pa.int32()
        return rows.append_column(OP, pa.array([history.words[e.op] for e in events], kind))

    def _input(self, name: str) -> dict[str, Any]:
        schema, files = ", ".join(" ".join(c) for c in self.columns(name)), {"path": name}
        if name in TABLES:
            return {"schema": schema, "files": files, "role": "table"}
        history = self.histories[name]
        more: dict[str, Any] = (
            {} if self.delay_s is None else {"eventTime": {"column": "t", "delay": f"{self.delay_s}s"}}
        )
        if history.words is not None:
            schema += f", {OP} {'STRING' if isinstance(history.words['insert'], str) else 'INT'}"
            more["changes"] = {"op": OP} | ({"onUnknownDelete": history.unknown} if history.unknown else {})
        if history.key is not None:
            more["upsert"] = {"key": [self.columns(name)[at][0] for at in history.key]}
        files |= {"maxFilesPerBatch": self.at_once, "orderBy": "name"}
        return {"schema": schema, "files": files, **more}

    def there(self, read: dict[str, int] | None = None) -> dict[str, pa.Table]:
        """The tables after so many events of each stream; by default after all."""
        found = {n: self.table(n, h.table((read or {}).get(n))) for n, h in self.histories.items()}
        return found | {n: self.table(n, rows) for n, rows in self.tables.items()}

    def expected(self, read: dict[str, int] | None = None) -> Answer:
        return duckdb_rows(self.sql(self.answered), self.there(read))

    def loops(self) -> Answer:
        """The answer by definition, at the end."""
        rows: dict[str, list[Row]] = {n: found.to_pylist() for n, found in self.there().items()}
        if self.twin is not None:
            rows[self.twin] = rows["a"]
        return self.answered.loops(rows)


def holds(case: Case) -> None:
    """The law."""
    with own_folder() as folder:
        document = case.write(folder)
        try:
            run = Product(document, case.tuning, case.course)
        except SpecError as refused:
            event(f"refused: {refused}"[:150])
            reject()
        tells(document)
        names = [name for name, _ in run_columns(case)]
        seen = Changelog(
            folder / "out", tuple(names.index(k) for k in case.output_key), case.mode == "upsert"
        )
        for batch in run.batches():
            seen.batch(batch, run.units_apart)
            read = {name: run.read(name) for name in case.histories}
            assert differences(case.expected(read), seen.answer) == {}, f"after batch {batch}"
    assert run.figures.late == (0,) * len(run.figures.late)
    assert differences(case.expected(), seen.answer) == {}
    assert differences(case.loops(), case.expected()) == {}


def run_columns(case: Case) -> list[tuple[str, object]]:
    asked = case.question
    return [(f"c{at}", value) for at, value in enumerate((*asked.keys, *asked.calls))]


# --- cases -----------------------------------------------------------------------------------------------------------


@st.composite
def cases(
    draw: st.DrawFn,
    asked: st.SearchStrategy[Question],
    strategies: Sequence[str],
    *,
    retained: bool = False,
    keyed: bool = False,
) -> Case:
    """`keyed`: the output has a key."""
    question, key = draw(asked), draw(st.sampled_from(list(KEYS)))
    delay_s = draw(st.sampled_from([0, 2, 7, 7, *([] if retained else [None])]))
    ks = draw(st.lists(st.sampled_from(KEYS[key]), min_size=1, max_size=3))  # few, so that rows meet
    shared = [
        st.sampled_from(ks),
        st.sampled_from(["x", "x", "x", "y", None]),
        st.sampled_from([0, 1, 1, 1, 2]),
    ]
    times = st.sampled_from([*(START + dt.timedelta(seconds=s) for s in range(5)), None])
    timed = st.tuples(*shared, times, st.integers(0, 3))
    ranged = st.tuples(*shared, st.sampled_from([0, 1, 2, None]), st.sampled_from([1, 2, 3, None]))
    streams = [n for n in question.inputs if n in STREAMS]
    twin = draw(st.sampled_from([None, None, None, *streams[1:2]])) if "a" in streams else None
    told = {
        n: draw(
            histories(timed, 3, delay_s, unique=keyed, stranger=(STRANGERS[key[0]], "none", 99, None, 99))
        )
        for n in streams
        if n != twin
    }
    if keyed:
        question, output_key = _with_key(question)
    random, count = Random(draw(st.integers(0, 999))), draw(st.sampled_from([1, 4, 6]))
    units = draw(st.sampled_from([1, 2, 4, 8]))
    case = Case(
        question=question,
        key=key,
        histories=told,
        tables={n: draw(st.lists(ranged, max_size=6)) for n in question.inputs if n in TABLES},
        cuts={
            n: [
                *sorted(random.randint(0, len(h.events)) for _ in range(count - 1)),
                len(h.events),
            ]
            for n, h in told.items()
        },
        delay_s=delay_s,
        at_once=draw(st.sampled_from([1, 1, 2])),
        units=units,
        tuning=replace(
            draw(tunings()),
            spool_bytes=draw(st.sampled_from([100, 1 << 16])),
            frame_rows=draw(st.sampled_from([2, 100_000])),
        ),
        course=draw(courses(units)),
        strategy=draw(st.sampled_from(strategies)),
        output_key=output_key if keyed else (),
        mode=draw(st.sampled_from(["changelog", "upsert"])) if keyed else "changelog",
        twin=twin,
        retention_s=draw(st.sampled_from([1, 3])) if retained else None,
    )
    half = {name: len(h.events) // 2 for name, h in told.items()}
    assume(
        draw(st.integers(0, 5)) == 0 or case.expected() or case.expected(half)
    )  # most questions have answers
    return case


def _with_key(question: Question) -> tuple[Question, tuple[str, ...]]:
    """A key that its rows have: that of the groups, all columns of distinct rows, the ids of what was joined."""
    if not question.grouped and not question.distinct:
        there = [n for n in shown(question.joins.tree) if n in STREAMS]
        ids = tuple(column(f"{n}.id") for n in there)
        start = len(question.keys)
        question = replace(question, keys=(*question.keys, *ids))
        return question, tuple(f"c{start + at}" for at in range(len(ids)))
    return question, tuple(f"c{at}" for at in range(len(question.keys)))


def _unique(question: Question) -> bool:
    """Are its rows told apart by keys and ids?"""
    if question.grouped or question.distinct:
        return bool(question.keys)
    return not any(n in TABLES for n in shown(question.joins.tree))


@pytest.mark.slow
@settings(LIVELY, max_examples=EXAMPLES)
@given(cases(questions(many=True), ("auto", "auto", "binary", "multiway")))
def test_joins_by_equality(case: Case) -> None:
    """One to four streams in one stage or several, tables anywhere among them, joins of every kind."""
    holds(case)


@pytest.mark.slow
@settings(LIVELY, max_examples=EXAMPLES // 2)
@given(cases(questions(inner=True, many=True, least=3), ("paths",)), st.integers(0, 999))
def test_joins_by_paths(case: Case, seed: int) -> None:
    """Three or four streams by any paths, with tables and groups behind them."""
    with any_paths(seed):
        holds(case)


@pytest.mark.slow
@settings(LIVELY, max_examples=EXAMPLES // 4)
@given(cases(questions(inner=True, least=3), ("paths",), retained=True), st.integers(0, 999))
def test_paths_and_retention(case: Case, seed: int) -> None:
    """Rows by each key are dropped for themselves; what is taken back in time is taken back."""
    with any_paths(seed):
        holds(case)


@pytest.mark.slow
@settings(LIVELY, max_examples=EXAMPLES // 2)
@given(cases(questions(two=True, many=True), ("auto", "auto", "binary", "biclique", "inequality")))
def test_two_streams_by_any_strategy(case: Case) -> None:
    """By equality, by comparisons, by both or by anything else."""
    holds(case)


@pytest.mark.slow
@settings(LIVELY, max_examples=EXAMPLES // 2)
@given(cases(questions(kinds=("not in", "not in", "in")), ("auto",)))
def test_not_in(case: Case) -> None:
    """A NULL on either side comes and goes, and decides about rows of every unit."""
    holds(case)


@pytest.mark.slow
@settings(LIVELY, max_examples=EXAMPLES // 4)
@given(cases(questions(inner=True), ("auto", "binary"), retained=True))
def test_retention(case: Case) -> None:
    """Old rows are dropped in every stage; what is taken back in time is taken back."""
    holds(case)


@pytest.mark.slow
@settings(LIVELY, max_examples=EXAMPLES // 2)
@given(cases(questions(many=True).filter(_unique), ("auto", "binary"), keyed=True))
def test_output_with_a_key(case: Case) -> None:
    """What a unit says of a key in a batch is one row, or a pair."""
    holds(case)
