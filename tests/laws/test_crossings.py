"""The law where two operators meet that are rarely met: what each batch leaves is DuckDB's answer over the rows that are there.

Streams append, change or are upserted, and may delete what is not there; nested queries of any operators, strategies and
budgets; other partitions and new processes in between. More examples: STREAMJOIN_CROSSINGS=5000.
"""

import datetime as dt
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, event, example, given, note, reject, settings
from hypothesis import strategies as st

from joinlib.errors import SpecError
from joinlib.model.tuning import Tuning
from joinlib.spec import StreamJoin
from tests.laws.cases import differences, tunings
from tests.laws.changelog import Answer, Changelog, bare
from tests.laws.crossed import KINDS, OPERATORS, STREAMS, Crossed, Told
from tests.laws.document import written
from tests.laws.histories import HOWS, START, Event, History, Values, histories
from tests.laws.oracle import duckdb_rows
from tests.laws.product import Course, Product, courses, own_folder, tells

EXAMPLES = int(os.environ.get("STREAMJOIN_CROSSINGS", "60"))
OP = "_change_type"
EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - as in most files, no zone
TABLE = ("k BIGINT", "j STRING", "v BIGINT", "low BIGINT", "high BIGINT")
TYPES = {"BIGINT": pa.int64(), "STRING": pa.string(), "TIMESTAMP": pa.timestamp("us")}
STRANGER = (99, "none", 99, None, 99)


@dataclass(frozen=True)
class Crossing:
    """A query, what happens to its inputs, and how it is run."""

    told: Told
    histories: dict[str, History]
    table: list[Values]
    cuts: dict[str, list[int]]  # of each stream, where its files end
    delay_s: int | None
    tuning: Tuning
    course: Course
    join: dict[str, Any]
    mode: str  # append, changelog, or upsert, which files are made to show
    hollow: bool = True  # whether there are files without rows

    @property
    def names(self) -> list[str]:
        """What the query reads."""
        words = self.told.ours.replace("(", " ").replace(")", " ").replace(",", " ").split()
        return [n for n in (*STREAMS, "p") if n in words]

    def rows(self, kinds: Sequence[str], rows: Sequence[Values]) -> pa.Table:
        schema = pa.schema([(c, TYPES[kind]) for c, kind in map(str.split, kinds)])
        return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)

    def write(self, folder: Path) -> StreamJoin:
        """The files, and the spec that reads them."""
        for name in self.names:
            (folder / name).mkdir(parents=True)
        for name, history in self.streams.items():
            for at, (start, end) in enumerate(zip([0, *self.cuts[name]], self.cuts[name], strict=False)):
                if start < end or self.hollow:
                    said = self._said(history, history.events[start:end])
                    pq.write_table(said, folder / name / f"{at:03d}.parquet")
        if "p" in self.names:
            pq.write_table(self.rows(TABLE, self.table), folder / "p" / "000.parquet")
        key = {"key": [*self.told.key]} if self.mode == "upsert" else {}
        spec = {
            "sql": self.told.ours,
            "inputs": {name: self._input(name) for name in self.names},
            "output": {
                "mode": "append" if self.mode == "append" else "changelog",
                "files": {"path": "out"},
                **key,
            },
            "checkpoint": {"path": "checkpoint", "sync": False},
            "join": self.join,
        }
        document = written(spec, folder)
        shown = document.spec.output.model_copy(update={"mode": self.mode})
        return document.model_copy(update={"spec": document.spec.model_copy(update={"output": shown})})

    @property
    def streams(self) -> dict[str, History]:
        return {n: h for n, h in self.histories.items() if n in self.names}

    @property
    def timeless(self) -> bool:
        """Whether a row has no event time."""
        return any(e.row[3] is None for h in self.streams.values() for e in h.events)

    def _said(self, history: History, events: Sequence[Event]) -> pa.Table:
        rows = self.rows(KINDS, [e.row for e in events])
        if history.words is None:
            return rows
        kind = pa.string() if isinstance(history.words["insert"], str) else pa.int32()
        return rows.append_column(OP, pa.array([history.words[e.op] for e in events], kind))

    def _input(self, name: str) -> dict[str, Any]:
        if name == "p":
            return {"schema": ", ".join(TABLE), "files": {"path": name}, "role": "table"}
        history, schema = self.histories[name], ", ".join(KINDS)
        more: dict[str, Any] = {}
        if self.delay_s is not None:
            more["eventTime"] = {"column": "t", "delay": f"{self.delay_s}s"}
        if history.words is not None:
            schema += f", {OP} {'STRING' if isinstance(history.words['insert'], str) else 'INT'}"
            more["changes"] = {"op": OP} | ({"onUnknownDelete": history.unknown} if history.unknown else {})
        if history.key is not None:
            more["upsert"] = {"key": [KINDS[at].split()[0] for at in history.key]}
        return {"schema": schema, "files": {"path": name, "maxFilesPerBatch": 1, "orderBy": "name"}, **more}

    def expected(self, read: dict[str, int]) -> Answer:
        """DuckDB's answer after so many events of each stream."""
        tables = {n: self.rows(KINDS, h.table(read[n])) for n, h in self.streams.items()}
        if "p" in self.names:
            tables["p"] = self.rows(TABLE, self.table)
        return duckdb_rows(
            self.told.duck.format(**{f"now_{n}": self._now(n, read.get(n, 0)) for n in STREAMS}), tables
        )

    def _now(self, name: str, read: int) -> str:
        """How far a stream has been read in time."""
        times = [t for e in self.histories[name].events[:read] if isinstance(t := e.row[3], dt.datetime)]
        return f"TIMESTAMP '{max(times) - dt.timedelta(seconds=self.delay_s or 0) if times else EPOCH}'"


class Appended:
    """What a reader has of rows that are final."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self.answer: Answer = Answer()

    def batch(self, number: int) -> None:
        for file in sorted((self.out / f"batch={number}").glob("*.parquet")):
            columns = pq.read_table(file, partitioning=None).columns
            self.answer.update(
                tuple(map(bare, row)) for row in zip(*(c.to_pylist() for c in columns), strict=True)
            )


def planned(case: Crossing, folder: Path) -> tuple[Crossing, Product]:
    """What is not final is not appended."""
    document = case.write(folder)
    try:
        run = Product(document, case.tuning, case.course)
    except SpecError:
        if case.mode != "append":
            raise
        shutil.rmtree(folder)
        folder.mkdir()
        return planned(replace(case, mode="changelog"), folder)
    tells(document)
    return case, run


def holds(case: Crossing) -> None:
    """The law."""
    note(case.told.ours)
    with own_folder() as folder:
        try:
            case, run = planned(case, folder / "spec")
        except SpecError as refused:
            event(f"refused: {refused}"[:110])
            reject()
        event(f"{case.mode}, {len(run.plan.pipeline.stages)} stages, {case.join.get('strategy')}")
        final, read = Appended(folder / "spec" / "out"), dict.fromkeys(case.streams, 0)
        key = tuple("kvjt".index(c) for c in case.told.key) if case.mode == "upsert" else ()
        seen = Changelog(folder / "spec" / "out", key, case.mode == "upsert")
        for batch in run.batches():
            read = {name: run.read(name) for name in case.streams}
            if case.mode == "append":
                final.batch(batch)
            else:
                seen.batch(batch, run.units_apart)
                assert differences(case.expected(read), seen.answer) == {}, f"after batch {batch}"
    if case.mode == "append" and case.timeless and any(run.figures.late):
        event("a row without a time is late where rows come out in the order of their times")
        reject()
    assert run.figures.late == (0,) * len(run.figures.late)
    assert differences(case.expected(read), (final if case.mode == "append" else seen).answer) == {}


@st.composite
def crossings(
    draw: st.DrawFn, strategies: Sequence[str], depths: Sequence[int], above: str | None = None
) -> Crossing:
    """`above`: the operator above joins of a stream with itself, whose rows most often only come."""
    delay_s = draw(st.sampled_from([0, 2, 7, 7, None]))
    drawn = Crossed(Random(draw(st.integers(0, 2**40))), delay_s is not None, above is not None)
    hows = HOWS if above is None else ("append",) * 2 * len(HOWS) + HOWS
    told = getattr(drawn, above or "query")(draw(st.sampled_from(depths)))
    times = st.sampled_from([*(START + dt.timedelta(seconds=s) for s in range(5)), None])
    shared = [
        st.sampled_from([0, 1, 1, None]),
        st.sampled_from(["x", "x", "y", None]),
        st.sampled_from([0, 1, 2]),
    ]
    timed = st.tuples(*shared, times, st.integers(0, 3))
    ranged = st.tuples(*shared, st.sampled_from([0, 1, None]), st.sampled_from([1, 2, None]))
    found = {
        n: draw(histories(timed, 3, delay_s, unique=False, stranger=STRANGER, hows=hows)) for n in STREAMS
    }
    random, count, units = (
        Random(draw(st.integers(0, 999))),
        draw(st.sampled_from([1, 4, 6])),
        draw(st.sampled_from([1, 2, 4])),
    )
    modes = ["changelog", "changelog", "append", *(["upsert"] if told.key else [])]
    memory = draw(st.sampled_from([{}, {}, {"memory": "1Mi"}]))
    return Crossing(
        told,
        found,
        draw(st.lists(ranged, max_size=4)),
        {
            n: [*sorted(random.randint(0, len(h.events)) for _ in range(count - 1)), len(h.events)]
            for n, h in found.items()
        },
        delay_s,
        replace(
            draw(tunings()),
            spool_bytes=draw(st.sampled_from([100, 1 << 16])),
            frame_rows=draw(st.sampled_from([2, 100_000])),
        ),
        draw(courses(units)),
        {"units": units, "strategy": draw(st.sampled_from(strategies)), **memory},
        draw(st.sampled_from(modes)),
        draw(st.booleans()),
    )


LIVELY = settings(suppress_health_check=list(HealthCheck), deadline=None)


# A rule for hot keys sent rows to units that were no longer there.
FEWER_UNITS = Crossing(
    Told(*["SELECT q1.k, p.v, q1.j, q1.t FROM a q1 LEFT JOIN p ON q1.k = p.k"] * 2),
    {
        "a": History(tuple(Event("insert", (0, "x", 0, START, 0)) for _ in range(8))),
        "b": History(),
        "c": History(),
    },
    [],
    {"a": [1, 4, 8]},
    delay_s=0,
    tuning=Tuning(),
    course=Course(units={1: 4, 2: 2}),
    join={"units": 1},
    mode="changelog",
)
# The group of all rows was not there: without rows there was no batch.
NO_ROWS = replace(
    FEWER_UNITS,
    told=Told(*["SELECT CAST(NULL AS BIGINT) AS k, count(*) AS v, max(j) AS j, min(t) AS t FROM b"] * 2),
    cuts={"b": [0]},
    course=Course(),
    hollow=False,
)


@pytest.mark.slow
@settings(LIVELY, max_examples=EXAMPLES)
@given(crossings(("auto",), (1, 2, 2)))
@example(FEWER_UNITS)
@example(NO_ROWS)
def test_any_operators(case: Crossing) -> None:
    holds(case)


@pytest.mark.slow
@settings(LIVELY, max_examples=EXAMPLES // 2)
@given(crossings(("biclique", "inequality", "binary"), (1, 1, 2)))
def test_any_strategy(case: Crossing) -> None:
    """Of one join of two streams in a nested query."""
    holds(case)


@pytest.mark.slow
@pytest.mark.parametrize("above", OPERATORS)
@settings(LIVELY, max_examples=EXAMPLES // 6)
@given(st.data())
def test_joins_of_a_stream_with_itself(above: str, data: st.DataObject) -> None:
    """Below any operator: a stream of rows that only come is stored once."""
    holds(data.draw(crossings(("auto",), (0,), above)))
