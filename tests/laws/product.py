"""Runs a spec on the product's own path, in this process: what Spark does between its tasks is played, and nothing else.

    spec ─► compiled ─► InProcess: batch after batch, with trouble on request ─► publish

Rows come in any order; batches run twice, in new processes, over other partitions, or are torn between two outputs.
"""

import os
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson
from hypothesis import strategies as st

from jobs.figures import Figures, beginning
from joinlib.checkpoint.identity import identify
from joinlib.checkpoint.planned import in_units
from joinlib.checkpoint.units import divide, finish
from joinlib.compiled import Compiled, compiled, with_tables
from joinlib.direct.report import Report
from joinlib.engine.checks import tables
from joinlib.engine.composer import Offset
from joinlib.engine.receipt import Receipt
from joinlib.inprocess import InProcess
from joinlib.model.fingerprint import as_json, compare, fingerprint
from joinlib.model.stage import NamedResult
from joinlib.model.tuning import Tuning
from joinlib.plan import pipeline_of
from joinlib.plan.explain import cautions, explain
from joinlib.plan.explain.formats import render
from joinlib.sink.publish import publish
from joinlib.source.files import FileInput
from joinlib.spec.model import StreamJoin
from joinlib.state.manifests import Manifests
from joinlib.worker import current
from tests.laws.harness import state_of

TASKS = 3  # that read a batch, and may share a file: rows and blocks keep their order and their numbers


@dataclass(frozen=True)
class Course:
    """How the batches of a run are run."""

    partitions: tuple[int, ...] = (1,)  # of each batch, the last forever
    # All tasks of the batch run, what they say is lost, and they run again.
    twice: frozenset[int] = frozenset()
    # Before it all processes are new, and what they kept beside the checkpoint is gone.
    restart: frozenset[int] = frozenset()
    seed: int = 0  # of the order in which rows arrive
    # The first of several outputs has the batch when all processes die; it runs again, for all.
    torn: frozenset[int] = frozenset()
    # Before the batch the state is divided among so many units, where it can be.
    units: Mapping[int, int] = field(default_factory=dict)
    scarce: bool = False  # tables are looked up as those of databases are that are larger than their budgets


class Product(InProcess):
    """A run to the end of its inputs. `figures`: what its receipts come to."""

    def __init__(self, document: StreamJoin, tuning: Tuning, course: Course) -> None:
        self.course, draw = course, random.Random(course.seed)
        self.tuning = tuning
        self.units_apart = False  # whether each file of the last batch is of one unit
        super().__init__(self._compiled(document), lambda rows: draw.sample(rows, len(rows)))
        self.figures: Figures = beginning(len(self.plan.pipeline.inputs), 0.0)

    def _compiled(self, document: StreamJoin) -> Compiled:
        plan = compiled(document, TASKS, self.tuning)
        looked_up = [
            replace(task.lookup, caching=replace(task.lookup.caching, scarce=self.course.scarce))
            for task in plan.source.tables
        ]
        pairs = zip(plan.source.tables, looked_up, strict=True)
        return with_tables(plan, tuple(replace(task, lookup=lookup) for task, lookup in pairs))

    def batches(self) -> Iterator[int]:
        """Runs one batch after the other; gives the number of each once its rows can be seen."""
        while (end := self.next()) is not None:
            if self.batch in self.course.units:
                self.divide(self.course.units[self.batch])
            if self.batch in self.course.restart:
                self._restart()
            if self.batch in self.course.torn:
                self._publish(self._run(end), self.plan.pipeline.results[:1])
                self._restart()
            told = self._run(end)
            if self.batch in self.course.twice:
                before, told = (told, self._states()), self._run(end)
                assert _rows_out(before[0]) == _rows_out(told), "two attempts of one batch differ"
                assert before[1] == self._states(), "two attempts of one batch leave other states"
            self._publish(told, self.plan.pipeline.results)
            self.figures = self.figures.after(Report(self.batch, told), float(self.batch))
            number, self.units_apart = self.batch, self._partitions == self.plan.pipeline.units
            self.done(end)
            yield number

    def renew(self) -> None:
        """The inputs are read to the end of what is there."""
        super().renew()
        self.composer.bound()

    def read(self, source: str) -> int:
        """Rows of a stream that have been read so far."""
        known = self.composer.inputs[source]
        assert isinstance(known, FileInput)
        return known.rows_before(self.offset["inputs"][source])

    def _publish(self, told: Iterable[Receipt], results: Sequence[NamedResult]) -> None:
        if self.plan.join.letters is not None:
            letters = [name for r in told for name in r.letters]
            publish(self.plan.join.letters.folder, self.batch, letters, mark=f"{self.batch:016x}")
        sinks = dict(zip(self.plan.pipeline.results, self.plan.join.sinks, strict=True))
        for result in results:
            made = [r for r in told if r.unit // self.plan.pipeline.units == result.stage]
            folder, names = sinks[result].folder, [name for r in made for name in r.files]
            if folder is not None:  # else its tasks have sent what there is
                publish(folder, self.batch, names, mark=f"{self.batch:016x}")

    def _restart(self) -> None:
        current().close()
        self.plan.join.forget_local()
        self.renew()

    def divide(self, units: int) -> None:
        """Go on with another number of units, as a job does whose spec has changed."""
        if units == self.plan.pipeline.units or not self.batch:
            return  # it is not asked to
        was, checkpoint, tuning = self.plan.pipeline, self.plan.checkpoint, self.plan.join.tuning
        plan = self._compiled(in_units(self.plan.document, units))
        if compare(as_json(was), as_json(plan.pipeline)):
            return  # it cannot
        identify(checkpoint, "law", was)
        current().close()
        divide(checkpoint, self.batch - 1, plan.pipeline, was.units, tuning)
        finish(checkpoint, synced=False)
        self.plan = with_tables(plan, tables(plan.source.tables))
        self.renew()

    @property
    def _partitions(self) -> int:
        most = self.course.partitions[min(self.batch, len(self.course.partitions) - 1)]
        return min(most, self.plan.pipeline.units)

    def _run(self, end: Offset) -> tuple[Receipt, ...]:
        return tuple(told.receipt for told in self.join(end, self._partitions))

    def _states(self) -> list[Any]:
        """Of every unit of every stage after this batch."""
        task, count = self.plan.join, self._partitions
        saved = [
            Manifests(task.states, stage, partition, count).after(self.batch)
            for stage in range(len(self.plan.pipeline.stateful))
            for partition in range(count)
        ]
        return [{unit: state_of(manifest) for unit, manifest in known.items()} for known in saved]


def _rows_out(told: Iterable[Receipt]) -> dict[int, int]:
    return {r.unit: r.rows_out for r in told}


@contextmanager
def own_folder() -> Iterator[Path]:
    """A folder of one example, indexes among it."""
    with TemporaryDirectory() as name:
        before = os.environ.get("STREAMJOIN_LOCAL_DIR")
        os.environ["STREAMJOIN_LOCAL_DIR"] = f"{name}/local"
        try:
            yield Path(name)
        finally:
            os.environ.pop("STREAMJOIN_LOCAL_DIR")
            os.environ |= {} if before is None else {"STREAMJOIN_LOCAL_DIR": before}


@st.composite
def courses(draw: st.DrawFn, units: int) -> Course:
    some = st.frozensets(st.integers(0, 4), max_size=2)
    counts = [n for n in (1, 2, 4, 8) if n <= units]
    partitions = draw(st.lists(st.sampled_from(counts), min_size=1, max_size=3))
    divided = draw(st.dictionaries(st.integers(1, 5), st.sampled_from([1, 2, 4, 8]), max_size=2))
    return Course(
        tuple(partitions),
        draw(some),
        draw(some),
        draw(st.integers(0, 999)),
        units=divided,
        scarce=draw(st.booleans()),
    )


def tells(document: StreamJoin) -> None:
    """A plan that runs can be told in every form, and its checkpoint be known again."""
    pipeline = pipeline_of(document)
    assert explain(pipeline)
    assert all(cautions(pipeline))
    assert all(render(pipeline, form) for form in ("json", "mermaid"))
    assert not list(compare(orjson.loads(orjson.dumps(fingerprint(pipeline))), fingerprint(pipeline)))
