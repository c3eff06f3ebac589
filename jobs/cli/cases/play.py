"""Runs a case: its batches one after the other, and compares what the result is then with what is expected.

A batch of a case is one of the job, or none if its rows change nothing. Its time is that of the case, not of a clock.
"""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from jobs.cli import words
from jobs.cli.cases import given
from jobs.cli.cases.differ import difference
from jobs.cli.cases.rows import named, values
from jobs.cli.shell.contents import Contents
from joinlib.checkpoint.planned import plan_of
from joinlib.compiled import compiled
from joinlib.errors import StreamJoinError
from joinlib.inprocess import InProcess
from joinlib.model.stage import NamedResult, Pipeline
from joinlib.sink.changelog import latest
from joinlib.spec.cases import CaseFile, CaseMistake, Expected, SpecCase
from joinlib.spec.document import Place
from joinlib.spec.model import StreamJoin
from joinlib.spec.nearest import hint
from joinlib.worker import current

_FAR = 10**9  # rows of a result that are compared


def check(document: StreamJoin, file: CaseFile, numbers: Sequence[int]) -> None:
    """Check that cases have rows which fit the spec, before any of them is run.

    Raises:
        CaseMistake: One asks for what the spec does not have.
    """
    with tempfile.TemporaryDirectory(prefix="streamjoin-test-") as folder:
        job = given.job(document, Path(folder))
        pipeline = plan_of(job)
    for number in numbers:
        case, place = file.cases[number], ("cases", number)
        for n, batch in enumerate(case.batches):
            at = (*place, "batches", n)
            given.rows(job, case, n, file, at)
            _wanted(job, pipeline, batch.expect, file, (*at, "expect"))
        _wanted(job, pipeline, case.expect, file, (*place, "expect"))


def failure(document: StreamJoin, file: CaseFile, number: int) -> str:
    """Run a case; return in what it fails, a line for the first difference and then its rows, or nothing.

    Raises:
        CaseMistake: The case asks for what the spec does not have.
    """
    case, place = file.cases[number], ("cases", number)
    with tempfile.TemporaryDirectory(prefix="streamjoin-test-") as folder:
        try:
            with _running(given.job(document, Path(folder))) as play:
                return next(play.differences(case, file, place), "")
        except CaseMistake:
            raise
        except StreamJoinError as error:  # the rows of the case stop the job, as they would stop a run
            return file.told(place, f"case {case.name!r} stops: {str(error).replace(folder, '')}")


@contextmanager
def _running(job: StreamJoin) -> Iterator["CasePlay"]:
    """Yield a job; at the end nothing is left of it in this process or on the disk."""
    play = CasePlay(job)
    try:
        yield play
    finally:
        current().close()
        play.plan.join.forget_local()


class CasePlay:
    """A job of a case, and what its results are so far."""

    def __init__(self, job: StreamJoin) -> None:
        self.job, self.now = job, 0.0
        self.plan = compiled(job, 1)
        self._run: InProcess | None = None  # it looks at the tables, which the first batch writes
        self.contents = {result.name: Contents() for result in self.plan.pipeline.results}
        self.late = (0,) * len(self.plan.pipeline.inputs)

    def differences(self, case: SpecCase, file: CaseFile, place: Place) -> Iterator[str]:
        """Yield every difference from what the case expects."""
        for number, batch in enumerate(case.batches):
            at = (*place, "batches", number)
            given.write(self.job, case, number, file, at)
            self.now = (batch.at_us or 0) / 1e6 if batch.at_us is not None else self.now
            self._read()
            when = f"case {case.name!r}, after batch {number + 1}"
            yield from self._compared(batch.expect, file, (*at, "expect"), when)
        self.run.composer.bound()
        self._read()
        when = f"case {case.name!r}, at the end"
        yield from self._compared(case.expect, file, (*place, "expect"), when)

    @property
    def run(self) -> InProcess:
        if self._run is None:
            self._run = InProcess(self.plan, clock=lambda: self.now)
        return self._run

    def _read(self) -> None:
        """Join what is there and was not read."""
        while (end := self.run.next()) is not None:
            told = self.run.join(end)
            for result in self.plan.pipeline.results:
                for unit, block in told:
                    if block and unit.unit // self.plan.pipeline.units == result.stage:
                        self._add(result, pa.ipc.open_stream(block).read_all())
            late = [unit.late for unit, _ in told if unit.late]
            self.late = tuple(map(sum, zip(self.late, *late, strict=True)))
            self.run.done(end)

    def _add(self, result: NamedResult, rows: pa.Table) -> None:
        self.contents[result.name] = self.contents[result.name].after(rows)

    def _compared(self, expected: Expected | None, file: CaseFile, at: Place, when: str) -> Iterator[str]:
        for (name, place), wanted in _wanted(self.job, self.plan.pipeline, expected, file, at).items():
            there = self._rows(name, wanted.schema)
            found = difference(
                wanted.columns,
                wanted.rows,
                list(zip(*(there[c].to_pylist() for c in wanted.columns), strict=True)),
            )
            if found is not None:
                line = place if found.row is None else (*place, found.row, found.column or "")
                head = file.told(line, f"{when}: {found.text}")
                yield "\n  ".join([head, *found.lines, *self._remarks()])

    def _rows(self, name: str, schema: pa.Schema) -> pa.Table:
        """Return what an output holds now.

        Raises:
            SpecError: Several rows have the key of an output that keeps one of them.
        """
        output, contents = self.job.spec.results[name], self.contents[name]
        found = contents.first(_FAR) if contents.rows is not None else schema.empty_table()
        if output.mode == "upsert" and found.num_rows:
            latest(found.combine_chunks().to_batches()[0], output.key)
        return found

    def _remarks(self) -> Iterator[str]:
        """Say what may explain a difference."""
        for plan, late in zip(self.plan.pipeline.inputs, self.late, strict=True):
            if late:
                yield f"late and left out: {words.rows(late)} of {plan.source}"


@dataclass(frozen=True)
class WantedRows:
    """What an output is expected to hold: the columns that are compared, and their values."""

    schema: pa.Schema
    columns: Sequence[str]
    rows: Sequence[tuple[object, ...]]


def _wanted(
    job: StreamJoin, pipeline: Pipeline, expected: Expected | None, file: CaseFile, at: Place
) -> Mapping[tuple[str, Place], WantedRows]:
    """Return what is expected of each output, by its name and the place where it is written."""
    found, results = {}, {result.name: result for result in pipeline.results}
    for name, rows in (expected or {}).items():
        if name not in results:
            raise _no_output(job, name, file, at)
        place = (*at, name) if name else at
        schema = pipeline.stages[results[name].stage].schema
        columns = named(rows, schema, file, place)
        wanted = [values(row, schema, file, (*place, n)) for n, row in enumerate(rows)]
        found[name, place] = WantedRows(schema, columns, [tuple(row[c] for c in columns) for row in wanted])
    return found


def _no_output(job: StreamJoin, name: str, file: CaseFile, at: Place) -> CaseMistake:
    outputs = list(job.spec.outputs)
    if not outputs:
        said = f"there is one output, which has no name; write the rows of {name} without it"
    elif not name:
        said = f"there are several outputs; write rows for each: {', '.join(outputs)}"
    else:
        said = f"there is no output {name}; {hint(name, outputs, 'outputs')}"
    return file.mistake(at, said)
