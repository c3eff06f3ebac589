"""Runs a spec on the product's own path, in this process: what Spark does between its tasks is played, and nothing else.

    spec ─► compiled ─► Composer: offsets, parts ─► exchange rows ─► by slot to partitions ─► turns ─► receipts ─► publish

Tables, tables' versions, stages, groups, manifests, staged files: all are made by what makes them in a job. Played are the
shuffle (rows come in any order), the number of the batch that a task is told, the log of offsets, and trouble on request.
"""

import os
import random
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson
import pyarrow as pa
from hypothesis import strategies as st

from jobs.figures import Figures, beginning
from joinlib.compiled import compiled, with_tables
from joinlib.engine import checks as inputs
from joinlib.engine import receipt
from joinlib.engine.composer import Composer, Offset
from joinlib.engine.operators import forwarded, receipts
from joinlib.engine.reading import read
from joinlib.engine.task import JoinTask
from joinlib.engine.turn import Turn
from joinlib.model.fingerprint import compare, fingerprint
from joinlib.model.stage import NamedResult
from joinlib.model.tuning import Tuning
from joinlib.plan import pipeline_of
from joinlib.plan.explain import cautions, explain
from joinlib.plan.explain.formats import render
from joinlib.route.slots import slots
from joinlib.sink.publish import publish
from joinlib.source.files import FileInput
from joinlib.spark.job import Report
from joinlib.spec.model import StreamJoin
from joinlib.state.location import local_folder
from joinlib.state.manifests import Manifests
from joinlib.worker import current
from tests.laws.harness import state_of

Rows = list[pa.RecordBatch]


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


class Product:
    """A run to the end of its inputs. `figures`: what its receipts come to."""

    def __init__(self, document: StreamJoin, tuning: Tuning, course: Course) -> None:
        plan = compiled(document, 2, tuning)
        self.plan = with_tables(plan, inputs.tables(plan.source.tables))
        self.course, self.draw = course, random.Random(course.seed)
        self.composer = self._composer()
        self.offset: Offset = self.composer.initial()
        self.batch = 0
        self.figures: Figures = beginning(len(self.plan.pipeline.inputs), 0.0)

    def batches(self) -> Iterator[int]:
        """Runs one batch after the other; gives the number of each once its rows can be seen."""
        while (end := self._next()) is not None:
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
            self.composer.commit(end)
            self.figures = self.figures.after(Report(self.batch, told), float(self.batch))
            self.offset = end
            yield self.batch
            self.batch += 1

    def read(self, source: str) -> int:
        """Rows of a stream that have been read so far."""
        known = self.composer.inputs[source]
        assert isinstance(known, FileInput)
        return known.rows_before(self.offset["inputs"][source])

    def _publish(self, told: Iterable[receipt.Receipt], results: Sequence[NamedResult]) -> None:
        sinks = dict(zip(self.plan.pipeline.results, self.plan.join.sinks, strict=True))
        for result in results:
            made = [r for r in told if r.unit // self.plan.pipeline.units == result.stage]
            folder, names = sinks[result].folder, [name for r in made for name in r.files]
            assert folder is not None
            publish(folder, self.batch, names, mark=f"{self.batch:016x}")

    def _composer(self) -> Composer:
        composer = Composer(self.plan.source)
        composer.bound()
        return composer

    def _next(self) -> Offset | None:
        end = self.composer.after(self.offset)
        return None if end == self.offset else orjson.loads(orjson.dumps(end))

    def _restart(self) -> None:
        current().close()
        for task in chain.from_iterable(self.plan.join.levels()):
            shutil.rmtree(local_folder(task.state), ignore_errors=True)
        self.composer = self._composer()

    @property
    def _partitions(self) -> int:
        return self.course.partitions[min(self.batch, len(self.course.partitions) - 1)]

    def _run(self, end: Offset) -> tuple[receipt.Receipt, ...]:
        parts = self.composer.parts(self.offset, end)
        rows = [sent for part in parts for sent in read(self.plan.source, part, self.batch)]
        *links, last = self.plan.join.levels()
        for link in links:
            rows = self._stage(link, forwarded, rows)
        told = self._stage(last, lambda turns, own: receipts(turns, 0, own), rows)
        return tuple(receipt.decode(row["receipt"]) for some in told for row in some.to_pylist())

    def _stage(
        self,
        tasks: tuple[JoinTask, ...],
        run: Callable[[list[Turn], Iterator[pa.RecordBatch]], Iterable[pa.RecordBatch]],
        rows: Rows,
    ) -> Rows:
        made: Rows = []
        for partition, own in self._shuffled(rows).items():
            at = {"partition": partition, "partitions": self._partitions, "batch": self.batch}
            made += run([Turn(task, **at) for task in tasks], iter(own))
        return made

    def _shuffled(self, rows: Rows) -> Mapping[int, Rows]:
        """What each partition is given."""
        count = self._partitions
        unit_of = {slot: unit for unit, slot in enumerate(slots(self.plan.pipeline.units))}
        found: dict[int, Rows] = {partition: [] for partition in range(count)}
        for some in self.draw.sample(rows, len(rows)):
            to = [unit_of[slot] % count for slot in some.column("slot").to_pylist()]
            for partition, own in found.items():
                own.append(some.filter(pa.array([t == partition for t in to], pa.bool_())))
        return found

    def _states(self) -> list[Any]:
        """Of every unit of every stage after this batch."""
        task, count = self.plan.join, self._partitions
        saved = [
            Manifests(task.states, stage, partition, count).after(self.batch)
            for stage in range(len(self.plan.pipeline.stages))
            for partition in range(count)
        ]
        return [{unit: state_of(manifest) for unit, manifest in known.items()} for known in saved]


def _rows_out(told: Iterable[receipt.Receipt]) -> dict[int, int]:
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
    return Course(tuple(partitions), draw(some), draw(some), draw(st.integers(0, 999)))


def tells(document: StreamJoin) -> None:
    """A plan that runs can be told in every form, and its checkpoint be known again."""
    pipeline = pipeline_of(document)
    assert explain(pipeline)
    assert all(cautions(pipeline))
    assert all(render(pipeline, form) for form in ("json", "mermaid"))
    assert not list(compare(orjson.loads(orjson.dumps(fingerprint(pipeline))), fingerprint(pipeline)))
